import java.io.File;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.ApiException;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MutableRecordBatch;
import org.apache.kafka.common.record.internal.Records;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import org.apache.kafka.storage.internals.log.DuplicateLookup;
import org.apache.kafka.storage.internals.log.LogOffsetMetadata;
import org.apache.kafka.storage.internals.log.ProducerAppendInfo;
import org.apache.kafka.storage.internals.log.ProducerStateEntry;
import org.apache.kafka.storage.internals.log.ProducerStateManager;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;

/**
 * ProducerStateManager on headers of client batches, called as in UnifiedLog: find a duplicate, prepare,
 * append, update.
 *
 * <pre>
 * producers before=FILE batches=FILE    the batches; those of before are never timed
 * ask-producers for=append              one round over the batches, from the state after those of before
 * ask-producers for=write               one snapshot of the state of the last round, not forced to the disk
 * ask-producers for=load                one reload of that snapshot
 * ask-producers for=state               the state after the last round, and its bytes of heap
 * </pre>
 */
final class Producers {
    private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();
    private static final TopicPartition PARTITION = new TopicPartition("bench", 0);

    private final ByteBuffer before;
    private final ByteBuffer batches;
    private final File directory;
    private ProducerStateManager manager;
    private long appended;
    private long duplicates;
    private long endOffset;

    Producers(Map<String, String> options) throws IOException {
        before = mapped(options.get("before"));
        batches = mapped(options.get("batches"));
        directory = new File(Files.createTempDirectory("producers").toFile(), "bench-0");
        Files.createDirectory(directory.toPath());
    }

    private static ByteBuffer mapped(String file) throws IOException {
        try (FileChannel channel = FileChannel.open(Path.of(file))) {
            return channel.map(FileChannel.MapMode.READ_ONLY, 0, channel.size()).load();
        }
    }

    String answer(String command) throws IOException {
        switch (command) {
            case "append":
                manager = empty();
                appendAll(before);
                appended = duplicates = 0;
                return timed(() -> appendAll(batches));
            case "write":
                Map<Long, ProducerStateEntry> entries = manager.activeProducers();
                return timed(() -> ProducerStateManager.writeSnapshot(snapshot(), entries, false));
            case "load":
                ProducerStateManager loaded = empty();
                String times = timed(() -> loaded.truncateAndReload(0, endOffset, 0));
                if (loaded.producerIdCount() != manager.producerIdCount())
                    throw new IllegalStateException("the snapshot was not loaded");
                return times;
            default:
                return state();
        }
    }

    private interface Work {
        void run() throws IOException;
    }

    private String timed(Work work) throws IOException {
        long wall = System.nanoTime();
        long cpu = THREADS.getCurrentThreadCpuTime();
        work.run();
        cpu = THREADS.getCurrentThreadCpuTime() - cpu;
        wall = System.nanoTime() - wall;
        return "\"cpu_ns\":" + cpu + ",\"wall_ns\":" + wall + ",\"batches\":" + (appended + duplicates)
            + ",\"producers\":" + manager.producerIdCount();
    }

    private File snapshot() {
        return new File(directory, String.format("%020d.snapshot", endOffset));
    }

    private ProducerStateManager empty() throws IOException {
        ProducerStateManagerConfig config = new ProducerStateManagerConfig(86_400_000, true);
        return new ProducerStateManager(PARTITION, directory, 900_000, config, Time.SYSTEM);
    }

    /** Each batch in separate records, since an append of a client has only one batch. */
    private void appendAll(ByteBuffer bytes) {
        int size;
        for (int position = 0; position < bytes.limit(); position += size) {
            size = bytes.getInt(position + Records.SIZE_OFFSET) + Records.LOG_OVERHEAD;
            append(MemoryRecords.readableRecords(bytes.slice(position, size)));
        }
    }

    private void append(MemoryRecords records) {
        for (MutableRecordBatch batch : records.batches()) {
            Optional<ProducerStateEntry> last = manager.lastEntry(batch.producerId());
            if (last.isPresent() && DuplicateLookup.isDuplicate(last.get(), batch)) {
                duplicates++;
                continue;
            }
            ProducerAppendInfo info = manager.prepareUpdate(batch.producerId(), AppendOrigin.CLIENT);
            try {
                info.append(batch, Optional.of(new LogOffsetMetadata(batch.baseOffset())));
            } catch (ApiException refused) {
                throw new IllegalStateException("no batch should be refused", refused);
            }
            manager.update(info);
            endOffset = batch.lastOffset() + 1;
            manager.updateMapEndOffset(endOffset);
            appended++;
        }
    }

    private String state() {
        long sequences = 0;
        long offsets = 0;
        for (ProducerStateEntry entry : manager.activeProducers().values()) {
            sequences += DuplicateLookup.lastSequence(entry);
            offsets += entry.lastDataOffset();
        }
        String found = "\"appended\":" + appended + ",\"duplicates\":" + duplicates
            + ",\"sequences\":" + sequences + ",\"offsets\":" + offsets;
        long heap = used();
        manager = null;
        return found + ",\"bytes\":" + (heap - used());
    }

    private static long used() {
        for (int i = 0; i < 3; i++)
            System.gc();
        Runtime runtime = Runtime.getRuntime();
        return runtime.totalMemory() - runtime.freeMemory();
    }
}
