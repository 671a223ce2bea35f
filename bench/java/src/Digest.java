import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.zip.CRC32;
import org.apache.kafka.common.record.internal.Record;

/** The untimed visitor: everything that both sides of a comparison must agree on; see bench/digest.py. */
final class Digest implements Visitor {
    private final CRC32 keys = new CRC32();
    private final CRC32 values = new CRC32();
    private final CRC32 lengths = new CRC32();
    private final ByteBuffer pair = ByteBuffer.allocate(8).order(ByteOrder.LITTLE_ENDIAN);
    private long records;
    private long offsets;
    private long timestamps;
    private long keyBytes;
    private long valueBytes;

    @Override
    public void record(Record record) {
        records++;
        offsets += record.offset();
        timestamps += record.timestamp();
        int keyLength = add(keys, record.key());
        int valueLength = add(values, record.value());
        keyBytes += Math.max(keyLength, 0);
        valueBytes += Math.max(valueLength, 0);
        pair.clear();
        pair.putInt(keyLength).putInt(valueLength);
        lengths.update(pair.array());
    }

    private static int add(CRC32 crc, ByteBuffer bytes) {
        if (bytes == null)
            return -1;
        int length = bytes.remaining();
        crc.update(bytes);
        return length;
    }

    @Override
    public String json() {
        return "\"records\":" + records + ",\"offset_sum\":" + offsets + ",\"timestamp_sum\":" + timestamps
            + ",\"key_bytes\":" + keyBytes + ",\"value_bytes\":" + valueBytes
            + ",\"key_crc\":" + keys.getValue() + ",\"value_crc\":" + values.getValue()
            + ",\"length_crc\":" + lengths.getValue();
    }
}
