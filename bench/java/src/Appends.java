import java.io.File;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.server.util.KafkaScheduler;
import org.apache.kafka.storage.internals.log.UnifiedLog;

/**
 * Appends the batches of a file to logs, in turn, as a leader does with what producers send. With a group of
 * G every log is flushed after each G appends; the first group, which makes files and names, is not timed.
 */
final class Appends {
    private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();

    private final List<ByteBuffer> batches = new ArrayList<>();

    Appends(Path input) throws IOException {
        ByteBuffer all = ByteBuffer.wrap(Files.readAllBytes(input));
        while (all.hasRemaining()) {
            byte[] batch = new byte[all.getInt(all.position() + 8) + 12];
            all.get(batch);
            batches.add(ByteBuffer.wrap(batch));
        }
    }

    /** One round: new logs below {@code directory}, which must be empty. Opening and closing are not timed. */
    String run(File directory, int partitions, int group) throws IOException, InterruptedException {
        KafkaScheduler scheduler = new KafkaScheduler(1);
        scheduler.startup();
        UnifiedLog[] logs = new UnifiedLog[partitions];
        for (int i = 0; i < partitions; i++)
            logs[i] = Logs.create(new File(directory, "bench-" + i), Logs.KEPT, scheduler);
        for (ByteBuffer batch : batches)
            batch.putLong(0, 0);  // the last round left its offset there
        append(logs, group, 0, group);
        long wall = System.nanoTime();
        long cpu = THREADS.getCurrentThreadCpuTime();
        append(logs, group, group, batches.size());
        cpu = THREADS.getCurrentThreadCpuTime() - cpu;
        wall = System.nanoTime() - wall;
        for (UnifiedLog log : logs)
            log.close();
        scheduler.shutdown();
        return "\"batches\":" + (batches.size() - group) + ",\"cpu_ns\":" + cpu + ",\"wall_ns\":" + wall;
    }

    private void append(UnifiedLog[] logs, int group, int begin, int end) throws IOException {
        for (int i = begin; i < end; i++) {
            logs[i % logs.length].appendAsLeader(MemoryRecords.readableRecords(batches.get(i)), 0);
            if (group > 0 && (i + 1) % group == 0)
                for (UnifiedLog log : logs)
                    log.flush(false);
        }
    }
}
