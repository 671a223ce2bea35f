import java.io.File;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.Random;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.DefaultRecordBatch;
import org.apache.kafka.common.record.internal.EndTransactionMarker;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.server.util.KafkaScheduler;
import org.apache.kafka.storage.internals.log.UnifiedLog;

/**
 * Writes a partition directory through Kafka's own UnifiedLog: segment, indexes, transaction index and
 * producer snapshot are those of a broker. The same options give the same bytes.
 *
 * Options: directory (…/topic-N), bytes, shape (10, 100, 1024 or mixed), codec, batch (bytes of records a
 * batch before compression), producers (0: not transactional), aborted (percent of the transactions), seed.
 */
final class Generate {
    private static final int BATCHES_PER_TRANSACTION = 4;
    private static final int POOL = 20_000;
    private static final long START_MS = 1_700_000_000_000L;
    private static final Map<String, Object> ONE_SEGMENT = Map.of(
        "segment.bytes", Integer.MAX_VALUE, "segment.ms", Long.MAX_VALUE, "retention.ms", -1L);

    private final File directory;
    private final long bytes;
    private final String shape;
    private final Compression compression;
    private final int batchBytes;
    private final int producers;
    private final int abortedPercent;
    private final Random random;

    private final byte[][] keys;
    private final byte[][] values;
    private final ByteBuffer buffer;
    private int next;
    private long offset;
    private long timestamp = START_MS;

    Generate(Map<String, String> options) {
        directory = new File(options.get("directory"));
        bytes = Long.parseLong(options.get("bytes"));
        shape = options.get("shape");
        compression = Compression.of(options.get("codec")).build();
        batchBytes = Integer.parseInt(options.get("batch"));
        producers = Integer.parseInt(options.get("producers"));
        abortedPercent = Integer.parseInt(options.get("aborted"));
        random = new Random(Long.parseLong(options.get("seed")));
        int size = shape.equals("1024") ? POOL / 10 : POOL;
        keys = new byte[size][];
        values = new byte[size][];
        for (int i = 0; i < size; i++)
            fill(i);
        buffer = ByteBuffer.allocate(2 * batchBytes + 4096);
    }

    private void fill(int i) {
        if (shape.equals("mixed")) {
            keys[i] = random.nextInt(10) == 0 ? null : letters(random.nextInt(40));
            values[i] = random.nextInt(50) == 0 ? null : json(random.nextInt(300));
        } else {
            keys[i] = shape.equals("10") ? null : letters(16);
            values[i] = json(Integer.parseInt(shape));
        }
    }

    private byte[] letters(int length) {
        byte[] letters = new byte[length];
        for (int i = 0; i < length; i++)
            letters[i] = (byte) ('a' + random.nextInt(26));
        return letters;
    }

    private byte[] json(int length) {
        StringBuilder text = new StringBuilder();
        while (text.length() < length)
            text.append("{\"customer\":").append(random.nextInt(100_000))
                .append(",\"amount\":").append(random.nextInt(500))
                .append('.').append(10 + random.nextInt(90))
                .append(",\"region\":\"eu-west-").append(random.nextInt(4)).append("\"}");
        return text.substring(0, length).getBytes(StandardCharsets.US_ASCII);
    }

    String run() throws IOException {
        KafkaScheduler scheduler = new KafkaScheduler(1);
        scheduler.startup();
        UnifiedLog log = Logs.create(directory, ONE_SEGMENT, scheduler);
        long records = producers == 0 ? plain(log) : transactions(log);
        long size = log.size();
        log.close();
        try {
            scheduler.shutdown();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        return "\"records\":" + records + ",\"bytes\":" + size + ",\"end_offset\":" + offset;
    }

    private long plain(UnifiedLog log) throws IOException {
        while (log.size() < bytes)
            append(log, batch(RecordBatch.NO_PRODUCER_ID, RecordBatch.NO_SEQUENCE, false));
        return offset;
    }

    /** Producers take turns, so that transactions overlap; every transaction is complete at the end. */
    private long transactions(UnifiedLog log) throws IOException {
        long records = 0;
        int[] sequences = new int[producers];
        int[] batches = new int[producers];
        for (int turn = 0; log.size() < bytes || turn % (producers * BATCHES_PER_TRANSACTION) != 0; turn++) {
            int producer = turn % producers;
            long before = offset;
            append(log, batch(1000 + producer, sequences[producer], true));
            sequences[producer] += (int) (offset - before);
            records += offset - before;
            if (++batches[producer] == BATCHES_PER_TRANSACTION) {
                batches[producer] = 0;
                mark(log, 1000 + producer);
            }
        }
        return records;
    }

    private void mark(UnifiedLog log, long producerId) throws IOException {
        boolean abort = random.nextInt(100) < abortedPercent;
        ControlRecordType type = abort ? ControlRecordType.ABORT : ControlRecordType.COMMIT;
        append(log, MemoryRecords.withEndTransactionMarker(
            offset++, timestamp, 0, producerId, (short) 0, new EndTransactionMarker(type, 0)));
    }

    private MemoryRecords batch(long producerId, int sequence, boolean transactional) {
        buffer.clear();
        short epoch = producerId < 0 ? RecordBatch.NO_PRODUCER_EPOCH : 0;
        MemoryRecordsBuilder builder = MemoryRecords.builder(
            buffer, RecordBatch.MAGIC_VALUE_V2, compression, TimestampType.CREATE_TIME, offset,
            RecordBatch.NO_TIMESTAMP, producerId, epoch, sequence, transactional, 0);
        int size = DefaultRecordBatch.RECORD_BATCH_OVERHEAD;
        while (true) {
            byte[] key = keys[next];
            byte[] value = values[next];
            size += 9 + (key == null ? 0 : key.length) + (value == null ? 0 : value.length);
            if (size > batchBytes)
                break;
            builder.append(timestamp, key, value);
            next = (next + 1) % keys.length;
            offset++;
            timestamp += shape.equals("mixed") ? random.nextInt(100) : offset % 4 == 0 ? 1 : 0;
        }
        return builder.build();
    }

    private void append(UnifiedLog log, MemoryRecords records) throws IOException {
        log.appendAsFollower(records, 0);
        log.updateHighWatermark(offset);
    }
}
