import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.DefaultRecordBatch;
import org.apache.kafka.common.record.internal.EndTransactionMarker;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.MutableRecordBatch;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.utils.internals.ByteBufferOutputStream;

/**
 * Kafka's own classes, asked line by line; each line is answered by one. Fields are separated by blanks,
 * bytes are hexadecimal, "-" is null. A record is offset,timestamp,key,value,headers; a header key:value.
 *
 *   build CODEC LEVEL APPEND_TIME BASE_OFFSET LEADER_EPOCH ID EPOCH SEQUENCE TRANSACTIONAL HORIZON
 *         LAST_OFFSET RECORD...
 *   read BATCH                            its records, after its CRC was checked
 *   stamp BATCH LOG_APPEND_TIME MAX_TIMESTAMP
 *   marker BASE_OFFSET TIMESTAMP LEADER_EPOCH ID EPOCH COMMIT COORDINATOR_EPOCH
 *   empty BASE_OFFSET LAST_OFFSET MAX_TIMESTAMP LOG_APPEND_TIME LEADER_EPOCH ID EPOCH SEQUENCE
 *         TRANSACTIONAL CONTROL
 */
final class Batches {
    private static final HexFormat HEX = HexFormat.of();
    private static final String NULL = "-";

    public static void main(String[] arguments) throws IOException {
        InputStreamReader input = new InputStreamReader(System.in, StandardCharsets.US_ASCII);
        BufferedReader lines = new BufferedReader(input);
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            try {
                System.out.println(answer(line.split(" ")));
            } catch (RuntimeException e) {
                System.out.println("error " + e);
            }
        }
    }

    private static String answer(String[] words) {
        return switch (words[0]) {
            case "build" -> build(words);
            case "read" -> read(words[1]);
            case "stamp" -> stamp(words);
            case "marker" -> marker(words);
            case "empty" -> empty(words);
            default -> throw new IllegalArgumentException(words[0]);
        };
    }

    private static Compression compression(String codec, String level) {
        if (level.equals(NULL))
            return Compression.of(codec).build();
        int number = Integer.parseInt(level);
        return switch (codec) {
            case "gzip" -> Compression.gzip().level(number).build();
            case "lz4" -> Compression.lz4().level(number).build();
            default -> Compression.zstd().level(number).build();
        };
    }

    private static String build(String[] words) {
        boolean appended = !words[3].equals(NULL);
        ByteBufferOutputStream stream = new ByteBufferOutputStream(1024);
        MemoryRecordsBuilder builder = new MemoryRecordsBuilder(
            stream, RecordBatch.MAGIC_VALUE_V2, compression(words[1], words[2]),
            appended ? TimestampType.LOG_APPEND_TIME : TimestampType.CREATE_TIME, Long.parseLong(words[4]),
            appended ? Long.parseLong(words[3]) : RecordBatch.NO_TIMESTAMP, Long.parseLong(words[6]),
            Short.parseShort(words[7]), Integer.parseInt(words[8]), Boolean.parseBoolean(words[9]), false,
            Integer.parseInt(words[5]), Integer.MAX_VALUE,
            words[10].equals(NULL) ? RecordBatch.NO_TIMESTAMP : Long.parseLong(words[10]));
        for (int i = 12; i < words.length; i++)
            append(builder, words[i].split(",", -1));
        if (!words[11].equals(NULL))
            builder.overrideLastOffset(Long.parseLong(words[11]));
        return hex(builder.build().buffer());
    }

    private static void append(MemoryRecordsBuilder builder, String[] fields) {
        List<Header> headers = new ArrayList<>();
        for (int i = 4; i < fields.length; i++) {
            String[] parts = fields[i].split(":", -1);
            headers.add(new RecordHeader(
                new String(HEX.parseHex(parts[0]), StandardCharsets.UTF_8), bytes(parts[1])));
        }
        builder.appendWithOffset(Long.parseLong(fields[0]), Long.parseLong(fields[1]), bytes(fields[2]),
            bytes(fields[3]), headers.toArray(new Header[0]));
    }

    private static String read(String batch) {
        StringBuilder text = new StringBuilder("records");
        for (MutableRecordBatch each : MemoryRecords.readableRecords(buffer(batch)).batches()) {
            each.ensureValid();
            for (Record record : each) {
                record.ensureValid();
                text.append(' ').append(record.offset()).append(',').append(record.timestamp()).append(',')
                    .append(hex(record.key())).append(',').append(hex(record.value()));
                for (Header header : record.headers())
                    text.append(',').append(HEX.formatHex(header.key().getBytes(StandardCharsets.UTF_8)))
                        .append(':').append(header.value() == null ? NULL : HEX.formatHex(header.value()));
            }
        }
        return text.toString();
    }

    private static String stamp(String[] words) {
        ByteBuffer buffer = buffer(words[1]);
        MutableRecordBatch batch = MemoryRecords.readableRecords(buffer).batches().iterator().next();
        batch.setMaxTimestamp(type(words[2]), Long.parseLong(words[3]));
        return hex(buffer);
    }

    private static String marker(String[] words) {
        ControlRecordType type =
            Boolean.parseBoolean(words[6]) ? ControlRecordType.COMMIT : ControlRecordType.ABORT;
        return hex(MemoryRecords.withEndTransactionMarker(Long.parseLong(words[1]), Long.parseLong(words[2]),
            Integer.parseInt(words[3]), Long.parseLong(words[4]), Short.parseShort(words[5]),
            new EndTransactionMarker(type, Integer.parseInt(words[7]))).buffer());
    }

    private static String empty(String[] words) {
        ByteBuffer buffer = ByteBuffer.allocate(DefaultRecordBatch.RECORD_BATCH_OVERHEAD);
        DefaultRecordBatch.writeEmptyHeader(buffer, RecordBatch.MAGIC_VALUE_V2, Long.parseLong(words[6]),
            Short.parseShort(words[7]), Integer.parseInt(words[8]), Long.parseLong(words[1]),
            Long.parseLong(words[2]), Integer.parseInt(words[5]), type(words[4]), Long.parseLong(words[3]),
            Boolean.parseBoolean(words[9]), Boolean.parseBoolean(words[10]));
        buffer.flip();
        return hex(buffer);
    }

    private static TimestampType type(String logAppendTime) {
        boolean appended = Boolean.parseBoolean(logAppendTime);
        return appended ? TimestampType.LOG_APPEND_TIME : TimestampType.CREATE_TIME;
    }

    private static ByteBuffer buffer(String text) {
        return ByteBuffer.wrap(HEX.parseHex(text));
    }

    private static byte[] bytes(String text) {
        return text.equals(NULL) ? null : HEX.parseHex(text);
    }

    private static String hex(ByteBuffer buffer) {
        if (buffer == null)
            return NULL;
        byte[] bytes = new byte[buffer.remaining()];
        buffer.duplicate().get(bytes);
        return HEX.formatHex(bytes);
    }
}
