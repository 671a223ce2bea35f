import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Collectors;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.DescribeProducersResponseData;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.server.common.RequestLocal;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import org.apache.kafka.storage.internals.log.Cleaner;
import org.apache.kafka.storage.internals.log.CleanerStats;
import org.apache.kafka.storage.internals.log.LogAppendInfo;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogOffsetsListener;
import org.apache.kafka.storage.internals.log.LogSegment;
import org.apache.kafka.storage.internals.log.LogStartOffsetIncrementReason;
import org.apache.kafka.storage.internals.log.LogToClean;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.RecordValidationException;
import org.apache.kafka.storage.internals.log.SkimpyOffsetMap;
import org.apache.kafka.storage.internals.log.TimestampOffset;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.internals.log.VerificationGuard;
import org.apache.kafka.storage.internals.utils.Throttler;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

/**
 * Kafka's own UnifiedLog, driven over a pipe: one command a line on stdin, one JSON object a line on stdout.
 * The clock stands still between commands; what Kafka does in the background is done when its time has come,
 * before the next command.
 *
 * <pre>
 * open directory=… now=… clean=… recovery_point=… log_start=… topic_id=… verify=… config.NAME=…
 * append batch=BASE64 epoch=… now=… origin=… version=… guard=NUMBER
 * verify producer=… epoch=… sequence=… bump=…       a guard for append, 0 when none is needed
 * high_watermark offset=…    truncate offset=…    delete_records offset=…
 * retain now=…    expire now=…    roll now=…    wait now=…
 * clean dirty=… memory=… now=…                     a pass of the cleaner up to where it may
 * close    abandon                                 abandon is what a crash leaves
 * </pre>
 */
public final class KafkaLog {
    private final ManualTime time = new ManualTime();
    private final Map<Integer, VerificationGuard> guards = new HashMap<>();
    private final Set<Long> verified = new TreeSet<>();
    private UnifiedLog log;

    public static void main(String[] arguments) throws IOException {
        KafkaLog side = new KafkaLog();
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in));
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            String answer;
            try {
                answer = side.answer(line.trim().split(" "));
            } catch (Exception e) {
                Throwable cause = e instanceof RecordValidationException
                    ? ((RecordValidationException) e).invalidException() : e;
                answer = "\"code\":" + Errors.forException(cause).code()
                    + ",\"error\":" + quoted(cause.toString());
                if (Errors.forException(cause) == Errors.UNKNOWN_SERVER_ERROR)
                    e.printStackTrace();
            }
            System.out.println("{" + answer + (side.log == null ? "" : "," + side.state()) + "}");
            System.out.flush();
        }
    }

    private static String quoted(String text) {
        return "\"" + text.replaceAll("[\"\\\\\\p{Cntrl}]", " ") + "\"";
    }

    private String answer(String[] words) throws Exception {
        Map<String, String> options = new HashMap<>();
        for (int i = 1; i < words.length; i++) {
            String[] pair = words[i].split("=", 2);
            options.put(pair[0], pair[1]);
        }
        if (options.containsKey("now"))
            time.moveTo(Long.parseLong(options.get("now")));
        switch (words[0]) {
            case "open":
                open(options);
                break;
            case "append":
                return append(options);
            case "verify":
                return verify(options);
            case "high_watermark":
                log.updateHighWatermark(offset(options));
                break;
            case "truncate":
                return "\"code\":0,\"changed\":" + log.truncateTo(offset(options));
            case "delete_records":
                log.maybeIncrementLogStartOffset(
                    offset(options), LogStartOffsetIncrementReason.ClientRecordDeletion);
                break;
            case "retain":
                return "\"code\":0,\"deleted\":" + log.deleteOldSegments();
            case "expire":
                log.removeExpiredProducers(time.milliseconds());
                break;
            case "roll":
                log.roll();
                break;
            case "clean":
                return clean(Long.parseLong(options.get("dirty")), Integer.parseInt(options.get("memory")));
            case "wait":
                break;
            case "close":
                log.flush(true);
                finishFiles(log.activeSegment());
                log.close();
                time.finish();
                log = null;
                break;
            case "abandon":
                log.closeQuietly();
                time.forget();
                log = null;
                break;
            default:
                throw new IllegalArgumentException("no such command: " + words[0]);
        }
        return "\"code\":0";
    }

    private String clean(long dirty, int memory) throws Exception {
        long end = Math.min(log.lastStableOffset(), log.activeSegment().baseOffset());
        LogToClean range = new LogToClean(log, dirty, Math.max(dirty, end), false);
        Throttler throttler = new Throttler(Double.MAX_VALUE, 1000, "cleaner", "bytes", time);
        Cleaner cleaner = new Cleaner(
            0, new SkimpyOffsetMap(memory), 64 << 10, 1 << 20, 0.9, throttler, time, partition -> { });
        Map.Entry<Long, CleanerStats> done = cleaner.clean(range);
        return "\"code\":0,\"dirty\":" + done.getKey() + ",\"uncleanable\":" + range.firstUncleanableOffset();
    }

    /* Does what Kafka did at a close before 4.4, and what txnkafka does (DIVERGENCES.md): the time index gets
       its last entry, and the reserved space of the log and both indexes is cut off. */
    private static void finishFiles(LogSegment active) throws IOException {
        TimestampOffset largest = active.readMaxTimestampAndOffsetSoFar();
        active.timeIndex().maybeAppend(largest.timestamp(), largest.offset(), true);
        active.timeIndex().trimToValidSize();
        active.offsetIndex().trimToValidSize();
        active.log().trim();
    }

    private static long offset(Map<String, String> options) {
        return Long.parseLong(options.get("offset"));
    }

    private void open(Map<String, String> options) throws IOException {
        Map<String, String> config = options.entrySet().stream()
            .filter(each -> each.getKey().startsWith("config."))
            .collect(Collectors.toMap(each -> each.getKey().substring(7), Map.Entry::getValue));
        int expiration = Integer.parseInt(config.remove("producer.id.expiration.ms"));
        boolean verify = Boolean.parseBoolean(config.remove("transaction.partition.verification.enable"));
        guards.clear();
        verified.clear();
        log = UnifiedLog.create(
            new File(options.get("directory")), new LogConfig(config),
            Long.parseLong(options.get("log_start")), Long.parseLong(options.get("recovery_point")),
            time.scheduler(), new BrokerTopicStats(), time, 900_000,
            new ProducerStateManagerConfig(expiration, verify), Integer.MAX_VALUE,
            new LogDirFailureChannel(1),
            Boolean.parseBoolean(options.get("clean")), Optional.of(Uuid.fromString(options.get("topic_id"))),
            new ConcurrentHashMap<>(), false, LogOffsetsListener.NO_OP_OFFSETS_LISTENER);
    }

    private String append(Map<String, String> options) throws IOException {
        ByteBuffer batch = ByteBuffer.wrap(Base64.getDecoder().decode(options.get("batch")));
        LogAppendInfo info = log.appendAsLeader(
            MemoryRecords.readableRecords(batch), Integer.parseInt(options.get("epoch")),
            AppendOrigin.valueOf(options.get("origin")), RequestLocal.noCaching(),
            guards.getOrDefault(Integer.parseInt(options.get("guard")), VerificationGuard.SENTINEL),
            Short.parseShort(options.get("version")));
        return "\"code\":0,\"first\":" + info.firstOffset() + ",\"last\":" + info.lastOffset()
            + ",\"time\":" + info.logAppendTime();
    }

    private String verify(Map<String, String> options) {
        verified.add(Long.parseLong(options.get("producer")));
        VerificationGuard guard = log.maybeStartTransactionVerification(
            Long.parseLong(options.get("producer")), Integer.parseInt(options.get("sequence")),
            Short.parseShort(options.get("epoch")), Boolean.parseBoolean(options.get("bump")));
        if (guard == VerificationGuard.SENTINEL)
            return "\"code\":0,\"guard\":0";
        guards.put(guards.size() + 1, guard);
        return "\"code\":0,\"guard\":" + guards.size();
    }

    private String state() throws IOException {
        List<String> producers = new ArrayList<>();
        for (DescribeProducersResponseData.ProducerState each : log.activeProducers())
            producers.add(List.of(
                each.producerId(), each.producerEpoch(), each.lastSequence(), each.lastTimestamp(),
                each.coordinatorEpoch(), each.currentTxnStartOffset()).toString());
        List<String> epochs = log.leaderEpochCache().epochEntries().stream()
            .map(each -> "[" + each.epoch() + "," + each.startOffset() + "]").toList();
        List<Long> verifying = verified.stream()
            .filter(each -> log.verificationGuard(each) != VerificationGuard.SENTINEL).toList();
        List<Long> bases = log.logSegments().stream().map(LogSegment::baseOffset).toList();
        return "\"start\":" + log.logStartOffset() + ",\"end\":" + log.logEndOffset()
            + ",\"hw\":" + log.highWatermark() + ",\"lso\":" + log.lastStableOffset()
            + ",\"recovery_point\":" + log.recoveryPoint() + ",\"bases\":" + bases
            + ",\"epochs\":" + epochs + ",\"verifying\":" + verifying + ",\"producers\":" + producers;
    }
}
