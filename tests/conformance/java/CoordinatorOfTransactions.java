import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.util.Arrays;
import java.util.HashSet;
import java.util.Properties;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.kafka.coordinator.transaction.TransactionConfig;
import kafka.coordinator.transaction.TransactionCoordinator;
import kafka.coordinator.transaction.TransactionMarkerChannelManager;
import kafka.coordinator.transaction.TransactionStateManager;
import kafka.server.KafkaConfig;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.TransactionResult;
import org.apache.kafka.common.utils.internals.LogContext;
import org.apache.kafka.common.utils.internals.ProducerIdAndEpoch;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.coordinator.transaction.TransactionMetadata;
import org.apache.kafka.coordinator.transaction.TxnTransitMetadata;
import org.apache.kafka.server.common.RequestLocal;
import org.apache.kafka.server.common.TransactionVersion;
import scala.Function1;
import scala.Option;
import scala.runtime.BoxedUnit;

/** Kafka's own transaction coordinator, whose log and markers succeed at once: one command, one answer. */
public final class CoordinatorOfTransactions {
    private static final TransactionConfig CONFIG =
        new TransactionConfig(604_800_000, 900_000, 1, (short) 1, 1 << 20, 1 << 20, 1, 10_000, 3_600_000,
            false, 30_000);

    private final ManualTime time = new ManualTime();
    private short level;
    private long nextProducerId;
    private Manager manager;
    private TransactionCoordinator coordinator;
    private String answer;

    public static void main(String[] arguments) throws IOException {
        CoordinatorOfTransactions here = new CoordinatorOfTransactions();
        PrintStream out = System.out;
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine())
            out.println(here.answer(line.split(" ", -1)));
    }

    private String answer(String[] words) {
        answer = "nothing";
        try {
            ask(words);
        } catch (IllegalStateException | IllegalArgumentException error) {
            answer = Errors.UNKNOWN_SERVER_ERROR + " -1 -1";  // as KafkaApis tells a client
        }
        return answer;
    }

    private void ask(String[] words) {
        switch (words[0]) {
            case "start" -> start(Short.parseShort(words[1]));
            case "time" -> {
                time.moveTo(Long.parseLong(words[1]));
                coordinator.abortTimedOutTransactions(id -> (error, producerId, epoch) -> BoxedUnit.UNIT);
            }
            case "epoch" -> metadata(words[1]).setProducerEpoch(Short.parseShort(words[2]));
            case "state" -> answer = shown(metadata(words[1]));
            case "init" -> init(words[1], number(words[2]), identity(words, 3));
            case "add" -> coordinator.handleAddPartitionsToTransaction(words[1], number(words[2]),
                (short) number(words[3]), partitions(words[5]), told(), version(words[4]),
                RequestLocal.noCaching());
            case "verify" -> verify(words);
            case "end" -> coordinator.handleEndTransaction(words[1], number(words[2]),
                (short) number(words[3]), TransactionResult.forId(words[4].equals("true")), version(words[5]),
                (error, producerId, epoch) -> {
                    answer = error + " " + producerId + " " + epoch;
                    return BoxedUnit.UNIT;
                }, RequestLocal.noCaching());
            default -> throw new UnsupportedOperationException(words[0]);
        }
    }

    private void start(short newLevel) {
        level = newLevel;
        nextProducerId = 0;
        time.moveTo(0);
        manager = new Manager(time);
        manager.startup(() -> 1, false);
        manager.addLoadedTransactionsToCache(0, 0, new ConcurrentHashMap<>());
        Markers markers = new Markers(manager, time);
        coordinator = new TransactionCoordinator(CONFIG, time.scheduler(), () -> () -> nextProducerId++,
            manager, markers, time, new LogContext());
    }

    private void init(String name, int timeoutMs, Option<ProducerIdAndEpoch> expected) {
        coordinator.handleInitProducerId(name, timeoutMs, false, false, expected, result -> {
            answer = result.error() + " " + result.producerId() + " " + result.producerEpoch();
            return BoxedUnit.UNIT;
        }, RequestLocal.noCaching());
    }

    private void verify(String[] words) {
        coordinator.handleVerifyPartitionsInTransaction(words[1], number(words[2]), (short) number(words[3]),
            partitions(words[4]), result -> {
                Set<String> found = new TreeSet<>();
                result.topicResults().forEach(topic -> topic.resultsByPartition().forEach(partition ->
                    found.add(topic.name() + "-" + partition.partitionIndex() + "="
                        + Errors.forCode(partition.partitionErrorCode()))));
                answer = String.join(" ", found);
                return BoxedUnit.UNIT;
            });
    }

    private Function1<Errors, BoxedUnit> told() {
        return error -> {
            answer = error + " -1 -1";
            return BoxedUnit.UNIT;
        };
    }

    private TransactionMetadata metadata(String name) {
        var found = manager.getTransactionState(name).toOption().get();
        return found.isEmpty() ? null : found.get().transactionMetadata();
    }

    private static String shown(TransactionMetadata it) {
        if (it == null)
            return "unknown";
        Set<String> partitions = new TreeSet<>();
        it.topicPartitions().forEach(each -> partitions.add(each.toString()));
        return it.producerId() + " " + it.producerEpoch() + " " + it.prevProducerId() + " "
            + it.lastProducerEpoch() + " " + it.txnTimeoutMs() + " " + it.state().stateName() + " "
            + String.join(",", partitions) + " " + it.txnStartTimestamp() + " "
            + it.txnLastUpdateTimestamp() + " " + it.clientTransactionVersion().featureLevel();
    }

    private static int number(String word) {
        return Integer.parseInt(word);
    }

    private static TransactionVersion version(String word) {
        return TransactionVersion.fromFeatureLevel(Short.parseShort(word));
    }

    private static Option<ProducerIdAndEpoch> identity(String[] words, int from) {
        if (number(words[from]) == -1)
            return Option.empty();
        return Option.apply(new ProducerIdAndEpoch(number(words[from]), (short) number(words[from + 1])));
    }

    private static Set<TopicPartition> partitions(String word) {
        Set<TopicPartition> found = new HashSet<>();
        Arrays.stream(word.split(",")).filter(each -> !each.isEmpty()).forEach(each -> {
            int end = each.lastIndexOf('-');
            found.add(new TopicPartition(each.substring(0, end), number(each.substring(end + 1))));
        });
        return found;
    }

    /** The states, with a log that takes everything. */
    private final class Manager extends TransactionStateManager {
        Manager(Time time) {
            super(0, null, null, null, CONFIG, time, new Metrics());
        }

        @Override
        public TransactionVersion transactionVersionLevel() {
            return TransactionVersion.fromFeatureLevel(level);
        }

        @Override
        public void appendTransactionToLog(String name, int epoch, TxnTransitMetadata image,
                                           Function1<Errors, BoxedUnit> done,
                                           Function1<Errors, Object> retryOnError, RequestLocal local) {
            metadata(name).completeTransitionTo(image);
            done.apply(Errors.NONE);
        }
    }

    /** Partitions that have all markers at once. */
    private static final class Markers extends TransactionMarkerChannelManager {
        private final Manager manager;

        Markers(Manager manager, Time time) {
            super(config(), null, null, manager, time);
            this.manager = manager;
        }

        private static KafkaConfig config() {
            Properties properties = new Properties();
            properties.put("process.roles", "broker,controller");
            properties.put("node.id", "1");
            properties.put("controller.quorum.voters", "1@localhost:1");
            properties.put("listeners", "PLAINTEXT://localhost:2,CONTROLLER://localhost:1");
            properties.put("controller.listener.names", "CONTROLLER");
            return KafkaConfig.fromProps(properties, false);
        }

        @Override
        public void addTxnMarkersToSend(int epoch, TransactionResult result, TransactionMetadata metadata,
                                        TxnTransitMetadata image) {
            String name = metadata.transactionalId();
            manager.appendTransactionToLog(name, epoch, image, error -> BoxedUnit.UNIT, null, null);
        }
    }
}
