import java.nio.ByteBuffer;
import org.apache.kafka.common.record.internal.Record;

/** The timed visitor: reads offset, timestamp, key and value of each record and sums them up. */
final class Touch implements Visitor {
    private long records;
    private long sum;

    @Override
    public void record(Record record) {
        ByteBuffer key = record.key();
        ByteBuffer value = record.value();
        sum += record.offset() + record.timestamp()
            + (key == null ? 0 : key.remaining()) + (value == null ? 0 : value.remaining());
        records++;
    }

    @Override
    public String json() {
        return "\"records\":" + records + ",\"sum\":" + sum;
    }
}
