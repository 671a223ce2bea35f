import java.io.File;
import java.io.IOException;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.util.Scheduler;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogOffsetsListener;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

/** Kafka's log of one partition, outside of a broker. */
final class Logs {
    /** Topic settings: Kafka's defaults, except that records with old timestamps are kept. */
    static final Map<String, Object> KEPT = Map.of("retention.ms", -1L);

    private Logs() {
    }

    static UnifiedLog create(File directory, Map<String, Object> settings, Scheduler scheduler)
        throws IOException {
        directory.mkdirs();
        return UnifiedLog.create(
            directory, new LogConfig(settings), 0L, 0L, scheduler, new BrokerTopicStats(), Time.SYSTEM,
            900_000,
            new ProducerStateManagerConfig(86_400_000, false), 600_000, new LogDirFailureChannel(1), true,
            Optional.empty(), new ConcurrentHashMap<>(), false, LogOffsetsListener.NO_OP_OFFSETS_LISTENER);
    }
}
