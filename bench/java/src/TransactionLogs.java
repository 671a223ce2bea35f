import java.io.File;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.util.Arrays;
import java.util.Map;
import org.apache.kafka.coordinator.transaction.TransactionConfig;
import kafka.coordinator.transaction.TransactionStateManager;
import kafka.server.ReplicaManager;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.EndTransactionMarker;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.coordinator.transaction.TransactionMetadata;
import org.apache.kafka.server.common.RequestLocal;
import org.apache.kafka.server.storage.log.FetchIsolation;
import org.apache.kafka.server.util.KafkaScheduler;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import org.apache.kafka.storage.internals.log.FetchDataInfo;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.internals.log.VerificationGuard;
import scala.Option;

/** Rounds over one log that is full of transactions, with Kafka's own classes. */
final class TransactionLogs {
    private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();
    private static final long TIMESTAMP = 1_700_000_000_000L;

    private final UnifiedLog log;

    /** Recovers the log of a partition directory that has nothing but its segment. */
    TransactionLogs(File directory) throws IOException {
        KafkaScheduler scheduler = new KafkaScheduler(1);
        scheduler.startup();
        log = Logs.create(directory, Logs.KEPT, scheduler);
        log.updateHighWatermark(log.logEndOffset());
    }

    String run(Map<String, String> options) throws Exception {
        return switch (options.get("kind")) {
            case "open" -> end(
                Integer.parseInt(options.get("first")), Integer.parseInt(options.get("count")));
            case "aborted" -> fetch(
                Arrays.stream(options.get("offsets").split(",")).mapToLong(Long::parseLong).toArray(),
                Integer.parseInt(options.get("bytes")));
            default -> load();
        };
    }

    private String end(int first, int count) throws IOException {
        MemoryRecords[] markers = new MemoryRecords[count];
        for (int i = 0; i < count; i++)
            markers[i] = MemoryRecords.withEndTransactionMarker(
                TIMESTAMP, first + i, (short) 0, new EndTransactionMarker(ControlRecordType.COMMIT, 0));
        long sum = 0;
        long wall = System.nanoTime();
        long cpu = THREADS.getCurrentThreadCpuTime();
        for (MemoryRecords marker : markers) {
            log.appendAsLeader(marker, 0, AppendOrigin.COORDINATOR, RequestLocal.noCaching(),
                VerificationGuard.SENTINEL, (short) 0);
            log.updateHighWatermark(log.logEndOffset());
            sum += log.lastStableOffset();
        }
        return answer(count, sum, since(wall, cpu));
    }

    private String fetch(long[] offsets, int bytes) throws IOException {
        long sum = 0;
        long wall = System.nanoTime();
        long cpu = THREADS.getCurrentThreadCpuTime();
        for (long offset : offsets) {
            FetchDataInfo found = log.read(offset, bytes, FetchIsolation.TXN_COMMITTED, true);
            sum += found.abortedTransactions.get().size();
        }
        return answer(offsets.length, sum, since(wall, cpu));
    }

    /** What a broker does when it becomes the coordinator of a partition, but for pending transactions. */
    private String load() throws Exception {
        TopicPartition partition = log.topicPartition();
        TransactionConfig config = new TransactionConfig(604_800_000, 900_000, 1, (short) 1, 1 << 20,
            5 << 20, 1, 10_000, 3_600_000, false, 30_000);
        TransactionStateManager manager = new TransactionStateManager(
            1, null, replicas(log), null, config, Time.SYSTEM, new Metrics());
        Method load = TransactionStateManager.class.getDeclaredMethod(
            "loadTransactionMetadata", TopicPartition.class, int.class);
        load.setAccessible(true);
        manager.addLoadingPartition(partition.partition(), 0);
        long wall = System.nanoTime();
        long cpu = THREADS.getCurrentThreadCpuTime();
        Map<?, ?> loaded = (Map<?, ?>) load.invoke(manager, partition, 0);
        String times = since(wall, cpu);
        long sum = 0;
        for (Object state : loaded.values())
            sum += ((TransactionMetadata) state).producerEpoch();
        return answer(loaded.size(), sum, times);
    }

    private static String since(long wall, long cpu) {
        cpu = THREADS.getCurrentThreadCpuTime() - cpu;
        wall = System.nanoTime() - wall;
        return ",\"cpu_ns\":" + cpu + ",\"wall_ns\":" + wall;
    }

    private static String answer(int units, long sum, String times) {
        return "\"units\":" + units + ",\"sum\":" + sum + times;
    }

    /** A replica manager that knows one log; its constructor, which wants a whole broker, is not run. */
    private static Replicas replicas(UnifiedLog log) throws ReflectiveOperationException {
        Class<?> unsafe = Class.forName("sun.misc.Unsafe");
        Field field = unsafe.getDeclaredField("theUnsafe");
        field.setAccessible(true);
        Replicas replicas = (Replicas) unsafe.getMethod("allocateInstance", Class.class)
            .invoke(field.get(null), Replicas.class);
        replicas.only = log;
        return replicas;
    }

    private static final class Replicas extends ReplicaManager {
        private UnifiedLog only;

        private Replicas() {
            super(null, null, null, null, null, null, null, null, null, null, null, null, null, null, null,
                null, null, null, null, null, null);
        }

        @Override
        public Option<UnifiedLog> getLog(TopicPartition partition) {
            return Option.apply(only);
        }

        @Override
        public Option<Object> getLogEndOffset(TopicPartition partition) {
            return Option.apply(only.logEndOffset());
        }
    }
}
