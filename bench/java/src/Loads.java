import com.sun.management.OperatingSystemMXBean;
import java.io.File;
import java.lang.management.ManagementFactory;
import java.util.List;
import java.util.Properties;
import kafka.log.LogManager;
import kafka.server.builders.LogManagerBuilder;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.util.KafkaScheduler;
import org.apache.kafka.storage.internals.log.CleanerConfig;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
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
    String load(File directory) {
        scheduler = new KafkaScheduler(1);
        scheduler.startup();
        manager = manager(directory, scheduler);
        long heap = heap();
        long wall = System.nanoTime();
        long cpu = PROCESS.getProcessCpuTime();
        manager.startup(scala.collection.immutable.Set$.MODULE$.<String>empty(), log -> false);
        cpu = PROCESS.getProcessCpuTime() - cpu;
        wall = System.nanoTime() - wall;
        heap = heap() - heap;
        long logs = 0;
        long offsets = 0;
        scala.collection.Iterator<UnifiedLog> each = manager.allLogs().iterator();
        for (; each.hasNext(); logs++)
            offsets += each.next().logEndOffset();
        return "\"logs\":" + logs + ",\"offsets\":" + offsets + ",\"bytes\":" + heap
            + ",\"cpu_ns\":" + cpu + ",\"wall_ns\":" + wall;
    }

    /** Closes the logs as a broker does at a clean stop. */
    String unload() throws InterruptedException {
        manager.shutdown(-1);
        scheduler.shutdown();
        return "\"unloaded\":true";
    }

    private static LogManager manager(File directory, KafkaScheduler scheduler) {
        return new LogManagerBuilder()
            .setLogDirs(List.of(directory))
            .setInitialOfflineDirs(List.of())
            .setConfigRepository(resource -> new Properties())
            .setInitialDefaultConfig(new LogConfig(Logs.KEPT))
            .setCleanerConfig(new CleanerConfig(false))
            .setRecoveryThreadsPerDataDir(2)
            .setFlushCheckMs(HOURS)
            .setFlushRecoveryOffsetCheckpointMs(HOURS)
            .setFlushStartOffsetCheckpointMs(HOURS)
            .setRetentionCheckMs(HOURS)
            .setInitialTaskDelayMs(HOURS)
            .setMaxTransactionTimeoutMs(900_000)
            .setProducerStateManagerConfig(86_400_000, false)
            .setScheduler(scheduler)
            .setBrokerTopicStats(new BrokerTopicStats())
            .setLogDirFailureChannel(new LogDirFailureChannel(1))
            .setTime(Time.SYSTEM)
            .setRemoteStorageSystemEnable(false)
            .build();
    }

    private static long heap() {
        System.gc();
        return Runtime.getRuntime().totalMemory() - Runtime.getRuntime().freeMemory();
    }
}
