import com.sun.management.OperatingSystemMXBean;
import java.io.File;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.util.List;
import java.util.Properties;
import java.util.Set;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.util.KafkaScheduler;
import org.apache.kafka.storage.internals.log.CleanerConfig;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogManager;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

/**
 * Opens a log directory as a broker does when it starts, with the broker's LogManager and its two loading
 * threads. CPU time is that of the whole JVM: loaders, compiler, collector.
 */
final class Loads {
    private static final OperatingSystemMXBean PROCESS =
        (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
    private static final int HOURS = 3_600_000;

    private KafkaScheduler scheduler;
    private LogManager manager;

    /** One round; the logs stay open. */
    String load(File directory) throws Exception {
        scheduler = new KafkaScheduler(1);
        scheduler.startup();
        manager = manager(directory, scheduler);
        long heap = heap();
        long wall = System.nanoTime();
        long cpu = PROCESS.getProcessCpuTime();
        manager.startup(Set.of(), log -> false);
        cpu = PROCESS.getProcessCpuTime() - cpu;
        wall = System.nanoTime() - wall;
        heap = heap() - heap;
        long logs = 0;
        long offsets = 0;
        for (UnifiedLog each : manager.allLogs()) {
            logs++;
            offsets += each.logEndOffset();
        }
        return "\"logs\":" + logs + ",\"offsets\":" + offsets + ",\"bytes\":" + heap
            + ",\"cpu_ns\":" + cpu + ",\"wall_ns\":" + wall;
    }

    /** Closes the logs as a broker does at a clean stop. */
    String unload() throws Exception {
        manager.shutdown(-1);
        scheduler.shutdown();
        return "\"unloaded\":true";
    }

    private static LogManager manager(File directory, KafkaScheduler scheduler) throws IOException {
        return new LogManager(
            List.of(directory), List.of(), resource -> new Properties(), new LogConfig(Logs.KEPT),
            new CleanerConfig(false), 2, HOURS, HOURS, HOURS, HOURS, 900_000,
            new ProducerStateManagerConfig(86_400_000, false), HOURS, scheduler, new BrokerTopicStats(),
            new LogDirFailureChannel(1), Time.SYSTEM, false, HOURS,
            (config, directories, logs, failures, time) -> null);  // the cleaner is off
    }

    private static long heap() {
        System.gc();
        return Runtime.getRuntime().totalMemory() - Runtime.getRuntime().freeMemory();
    }
}
