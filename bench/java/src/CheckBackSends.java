import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.PullResult;
import org.apache.rocketmq.client.consumer.PullStatus;
import org.apache.rocketmq.client.producer.LocalTransactionState;
import org.apache.rocketmq.client.producer.TransactionListener;
import org.apache.rocketmq.client.producer.TransactionMQProducer;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/**
 * RocketMQ's transactional producers, each in a thread, and a consumer; local transactions commit at once.
 * It is driven over a pipe, like {@link Bench}.
 *
 * <pre>
 * open address=… producers=N           connects; the topic "bench" has one queue
 * send prefix=C first=N count=N        messages of 100 bytes: nanoseconds until each send has returned
 * send … visible=true                  nanoseconds until the consumer has got each message, one after another
 * wait                                 until all messages are visible
 * values prefix=C                      digest of the visible values with this prefix
 * </pre>
 */
public final class CheckBackSends {
    private static final String TOPIC = "bench";
    private static final int CLIENT_MS = 60_000;

    private final List<TransactionMQProducer> producers = new ArrayList<>();
    private final List<String> values = new ArrayList<>();
    private ExecutorService threads;
    private DefaultMQPullConsumer consumer;
    private MessageQueue queue;
    private long offset;
    private long sent;

    public static void main(String[] arguments) throws IOException {
        PrintStream answers = System.out;
        // where RocketMQ's logging prints its start
        System.setOut(new PrintStream(OutputStream.nullOutputStream()));
        CheckBackSends sends = new CheckBackSends();
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in));
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            String answer;
            try {
                answer = sends.answer(line.trim().split(" "));
            } catch (Exception e) {
                answer = "\"error\":\"" + e.toString().replaceAll("[\"\\\\\\p{Cntrl}]", " ") + "\"";
                e.printStackTrace();
            }
            answers.println("{" + answer + "}");
            answers.flush();
        }
        Runtime.getRuntime().halt(0);
    }

    private String answer(String[] words) throws Exception {
        Map<String, String> options = new HashMap<>();
        for (int i = 1; i < words.length; i++) {
            String[] pair = words[i].split("=", 2);
            options.put(pair[0], pair[1]);
        }
        switch (words[0]) {
            case "open":
                open(options.get("address"), Integer.parseInt(options.get("producers")));
                return "\"open\":true";
            case "send":
                return send(
                    options.get("prefix"), Integer.parseInt(options.get("first")),
                    Integer.parseInt(options.get("count")), options.containsKey("visible"));
            case "wait":
                while (values.size() < sent)
                    pull();
                return "\"visible\":" + values.size();
            case "values":
                return digest(options.get("prefix"));
            default:
                throw new IllegalArgumentException("no such command: " + words[0]);
        }
    }

    private void open(String address, int count) throws Exception {
        threads = Executors.newFixedThreadPool(count);
        for (int i = 0; i < count; i++) {
            TransactionMQProducer producer = new TransactionMQProducer("bench", List.of(TOPIC));
            producer.setNamesrvAddr(address);
            producer.setInstanceName("producer" + i); // else all share a connection
            producer.setSendMsgTimeout(CLIENT_MS);
            producer.setTransactionListener(new CommitAtOnce());
            producer.start();
            producers.add(producer);
        }
        producers.get(0).createTopic("TBW102", TOPIC, 1, Map.of());
        consumer = new DefaultMQPullConsumer("reader");
        consumer.setNamesrvAddr(address);
        consumer.setInstanceName("reader");
        consumer.start();
        queue = new MessageQueue(TOPIC, "broker", 0);
    }

    private String send(String prefix, int first, int count, boolean untilVisible) throws Exception {
        int share = count / producers.size();
        long[] took = new long[share * producers.size()];
        List<Callable<Void>> tasks = new ArrayList<>();
        for (int number = 0; number < producers.size(); number++) {
            int begin = number * share;
            TransactionMQProducer producer = producers.get(number);
            tasks.add(() -> {
                for (int i = begin; i < begin + share; i++) {
                    String value = String.format("%s%099d", prefix, first + i);
                    long start = System.nanoTime();
                    producer.sendMessageInTransaction(new Message(TOPIC, value.getBytes()), null);
                    if (untilVisible) {
                        int before = values.size();
                        while (values.size() == before)
                            pull();
                    }
                    took[i] = System.nanoTime() - start;
                }
                return null;
            });
        }
        long begin = System.nanoTime();
        for (Future<Void> each : threads.invokeAll(tasks))
            each.get();
        sent += took.length;
        return "\"wall_ns\":" + (System.nanoTime() - begin) + ",\"took_ns\":" + Arrays.toString(took);
    }

    /** Waits for further messages. */
    private void pull() throws Exception {
        PullResult result = consumer.pullBlockIfNotFound(queue, "*", offset, 32);
        if (result.getPullStatus() == PullStatus.FOUND)
            for (MessageExt each : result.getMsgFoundList())
                values.add(new String(each.getBody()));
        offset = result.getNextBeginOffset();
    }

    private String digest(String prefix) throws Exception {
        MessageDigest digest = MessageDigest.getInstance("SHA-256");
        List<String> wanted = values.stream().filter(each -> each.startsWith(prefix)).sorted().toList();
        for (String each : wanted)
            digest.update(each.getBytes());
        String hex = HexFormat.of().formatHex(digest.digest());
        return "\"count\":" + wanted.size() + ",\"sha256\":\"" + hex + "\"";
    }

    private static final class CommitAtOnce implements TransactionListener {
        @Override
        public LocalTransactionState executeLocalTransaction(Message message, Object argument) {
            return LocalTransactionState.COMMIT_MESSAGE;
        }

        @Override
        public LocalTransactionState checkLocalTransaction(MessageExt message) {
            return LocalTransactionState.COMMIT_MESSAGE;
        }
    }
}
