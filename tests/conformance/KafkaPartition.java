import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.util.HexFormat;
import java.util.Map;
import java.util.Optional;
import java.util.HashMap;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.common.RequestLocal;
import org.apache.kafka.server.util.KafkaScheduler;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import org.apache.kafka.storage.internals.log.LogAppendInfo;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.ProducerStateManager;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.internals.log.VerificationGuard;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

/**
 * A partition of Kafka's own log, asked over a pipe: one command a line, one answer a line.
 *
 * <pre>
 * append ORIGIN VERSION GUARD HEX    code, first and last offset, append time, first unstable offset or -1
 * verify ID EPOCH SEQUENCE BUMP      code, number of the guard; 0 is the one that needs no verification
 * watermark OFFSET                   first unstable offset or -1
 * snapshot                           the bytes of a snapshot
 * restart                            closes the log and opens it again
 * reset                              another, empty log
 * </pre>
 */
public final class KafkaPartition {
    private static final int DAY_MS = 86_400_000;

    private final KafkaScheduler scheduler = new KafkaScheduler(1);
    private final Map<Integer, VerificationGuard> guards = new HashMap<>();
    private File directory;
    private UnifiedLog log;

    public static void main(String[] arguments) throws Exception {
        KafkaPartition partition = new KafkaPartition();
        partition.scheduler.startup();
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in));
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            System.out.println(partition.answer(line.split(" ")));
            System.out.flush();
        }
        System.exit(0);
    }

    private String answer(String[] words) throws IOException {
        switch (words[0]) {
            case "append":
                return append(words);
            case "verify":
                return verify(words);
            case "watermark":
                log.updateHighWatermark(Long.parseLong(words[1]));
                return unstable();
            case "snapshot":
                File file = new File(directory, "asked");
                ProducerStateManager.writeSnapshot(file, log.producerStateManager().activeProducers(), false);
                return HexFormat.of().formatHex(Files.readAllBytes(file.toPath()));
            case "restart":
                log.close();
                open();
                return "0";
            case "reset":
                directory = new File(Files.createTempDirectory("partition").toFile(), "topic-0");
                guards.clear();
                open();
                return "0";
            default:
                throw new IllegalArgumentException("no such command: " + words[0]);
        }
    }

    private void open() throws IOException {
        log = UnifiedLog.create(directory, new LogConfig(Map.of()), 0, 0, scheduler, new BrokerTopicStats(),
            Time.SYSTEM, 900_000, new ProducerStateManagerConfig(DAY_MS, true), DAY_MS,
            new LogDirFailureChannel(1), true, Optional.of(new Uuid(1, 2)));
    }

    private String append(String[] words) {
        ByteBuffer batch = ByteBuffer.wrap(HexFormat.of().parseHex(words[4]));
        VerificationGuard guard = guards.getOrDefault(Integer.parseInt(words[3]), VerificationGuard.SENTINEL);
        try {
            LogAppendInfo info = log.appendAsLeader(MemoryRecords.readableRecords(batch), 0,
                AppendOrigin.valueOf(words[1]), RequestLocal.noCaching(), guard, Short.parseShort(words[2]));
            return "0 " + info.firstOffset() + " " + info.lastOffset() + " " + info.logAppendTime()
                + " " + unstable();
        } catch (RuntimeException e) {
            return Errors.forException(e).code() + " -1 -1 -1 " + unstable();
        }
    }

    private String verify(String[] words) {
        try {
            VerificationGuard guard = log.maybeStartTransactionVerification(Long.parseLong(words[1]),
                Integer.parseInt(words[3]), Short.parseShort(words[2]), Boolean.parseBoolean(words[4]));
            if (guard == VerificationGuard.SENTINEL)
                return "0 0";
            for (Map.Entry<Integer, VerificationGuard> known : guards.entrySet())
                if (known.getValue().equals(guard))
                    return "0 " + known.getKey();
            guards.put(guards.size() + 1, guard);
            return "0 " + guards.size();
        } catch (RuntimeException e) {
            return Errors.forException(e).code() + " 0";
        }
    }

    private String unstable() {
        return String.valueOf(log.producerStateManager().firstUnstableOffset()
            .map(offset -> offset.messageOffset).orElse(-1L));
    }
}
