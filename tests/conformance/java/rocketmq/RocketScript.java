import com.alibaba.fastjson2.JSON;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.PullResult;
import org.apache.rocketmq.client.consumer.PullStatus;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.hook.SendMessageContext;
import org.apache.rocketmq.client.hook.SendMessageHook;
import org.apache.rocketmq.client.producer.LocalTransactionState;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.TransactionListener;
import org.apache.rocketmq.client.producer.TransactionMQProducer;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageConst;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.common.topic.TopicValidator;
import org.apache.rocketmq.tools.admin.DefaultMQAdminExt;

/**
 * Plays scripts with RocketMQ's transactional producers, all at the same time. Argument: the address of a
 * name server.
 *
 * A line on stdin is the name of a script and a command, described in test_rocketmq.py. Each script has a
 * topic, a producer group and a thread. The command "result" prints a line of JSON: values that are visible
 * in the topic and those that are parked, and the number of checks of each message; a failed command prints
 * its error instead.
 */
public final class RocketScript {
    private static final long PATIENCE_MS = 120_000;
    private static final int CLIENT_MS = 60_000;
    private static final String PARKED = "TRANS_CHECK_MAX_TIME_TOPIC";

    private static String address;
    private static DefaultMQPullConsumer reader;
    private static DefaultMQAdminExt admin;
    private static Script watch;
    private static int producers;

    public static void main(String[] arguments) throws Exception {
        address = arguments[0];
        reader = new DefaultMQPullConsumer("reader");
        reader.setNamesrvAddr(address);
        reader.setInstanceName("reader");
        reader.start();
        admin = new DefaultMQAdminExt();
        admin.setNamesrvAddr(address);
        admin.setInstanceName("admin");
        admin.start();
        watch = new Script("watch");
        watch.open(true);
        Map<String, Script> scripts = new HashMap<>();
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            String[] words = line.split(" ");
            scripts.computeIfAbsent(words[0], Script::new).later(words);
        }
        Runtime.getRuntime().halt(0);
    }

    private interface Condition {
        boolean isTrue() throws Exception;
    }

    private static void until(Condition condition, String what) throws Exception {
        long end = System.currentTimeMillis() + PATIENCE_MS;
        while (!condition.isTrue()) {
            if (System.currentTimeMillis() > end)
                throw new IllegalStateException("not within " + PATIENCE_MS + " ms: " + what);
            Thread.sleep(50);
        }
    }

    private static synchronized List<MessageExt> messages(String topic) throws Exception {
        List<MessageExt> found = new ArrayList<>();
        List<MessageQueue> queues;
        try {
            queues = List.copyOf(reader.fetchSubscribeMessageQueues(topic));
        } catch (MQClientException e) {
            return found; // there is no such topic yet
        }
        for (MessageQueue queue : queues) {
            long offset = 0;
            while (true) {
                PullResult result = reader.pull(queue, "*", offset, 32);
                if (result.getPullStatus() == PullStatus.FOUND)
                    found.addAll(result.getMsgFoundList());
                else if (result.getPullStatus() == PullStatus.NO_NEW_MSG)
                    break;
                offset = result.getNextBeginOffset();
            }
        }
        return found;
    }

    private static String value(Message message) {
        return new String(message.getBody());
    }

    /** The producer of a script, its listener, and the checks until now. */
    private static final class Script implements TransactionListener, SendMessageHook {
        private final String name;
        private final ExecutorService thread = Executors.newSingleThreadExecutor();
        private final Map<String, String[]> answers = new HashMap<>();
        private final Map<String, Integer> asked = new TreeMap<>();
        private final Map<String, Message> sent = new HashMap<>();
        private final Map<String, SendResult> halves = new HashMap<>();
        private TransactionMQProducer producer;
        private boolean hasFailed;

        Script(String name) {
            this.name = name;
        }

        void later(String[] words) {
            thread.submit(() -> {
                if (hasFailed)
                    return;
                try {
                    play(words);
                } catch (Exception e) {
                    hasFailed = true;
                    e.printStackTrace();
                    print(Map.of("script", name, "error", String.join(" ", words) + ": " + e));
                }
            });
        }

        private static void print(Map<String, Object> line) {
            synchronized (System.out) {
                System.out.println(JSON.toJSONString(line));
            }
        }

        private void play(String[] words) throws Exception {
            switch (words[1]) {
                case "open" -> open(words.length > 2);
                case "close" -> producer.shutdown();
                case "checks" -> answer(words[2], words[3].split(","));
                case "half" -> half(words[2], words[3], words.length > 4 ? words[4] : null);
                case "plain" -> producer.send(new Message(name, words[2].getBytes()));
                case "decide" ->
                    producer.getDefaultMQProducerImpl().endTransaction(
                        sent.get(words[2]), halves.get(words[2]), state(words[3]), null);
                case "resume" -> admin.resumeCheckHalfMessage(name, sent.get(words[2]).getTransactionId());
                case "asked" -> untilAsked(words[2], Integer.parseInt(words[3]));
                case "visible" -> {
                    int count = Integer.parseInt(words[2]);
                    until(() -> messages(name).size() >= count, words[2] + " visible messages of " + name);
                }
                case "parked" -> until(() -> parked().contains(words[2]), "parked " + words[2]);
                case "rounds" -> watch.rounds(Integer.parseInt(words[2]), name);
                case "reached" -> print(Map.of("script", name, "reached", true));
                case "result" -> {
                    List<String> visible = messages(name).stream().map(RocketScript::value).toList();
                    print(Map.of("script", name, "visible", visible, "parked", parked(), "asked", asked()));
                }
                default -> throw new IllegalArgumentException("no such command");
            }
        }

        /** With the topic the producer is known to the broker at once, else from its first send on. */
        void open(boolean withTopic) throws Exception {
            until(this::hasTopic, "topic " + name);
            producer = withTopic
                ? new TransactionMQProducer(name, List.of(name)) : new TransactionMQProducer(name);
            producer.setNamesrvAddr(address);
            synchronized (RocketScript.class) {
                producer.setInstanceName("producer" + producers++); // else all share their connections
            }
            producer.setHeartbeatBrokerInterval(1_000);
            producer.setPollNameServerInterval(1_000);
            producer.setSendMsgTimeout(CLIENT_MS);
            producer.setTransactionListener(this);
            producer.start();
            producer.getDefaultMQProducerImpl().registerSendMessageHook(this);
        }

        private boolean hasTopic() {
            try {
                admin.createTopic(TopicValidator.AUTO_CREATE_TOPIC_KEY_TOPIC, name, 1, Map.of());
                return true;
            } catch (MQClientException e) {
                return false; // the broker was started again, and has not registered yet
            }
        }

        private void half(String value, String outcome, String immunity) throws MQClientException {
            Message message = new Message(name, value.getBytes());
            if (immunity != null)
                message.putUserProperty(MessageConst.PROPERTY_CHECK_IMMUNITY_TIME_IN_SECONDS, immunity);
            sent.put(value, message);
            producer.sendMessageInTransaction(message, outcome);
        }

        private synchronized void answer(String value, String[] given) {
            answers.put(value, given);
        }

        private synchronized int times(String value) {
            return asked.getOrDefault(value, 0);
        }

        private synchronized Map<String, Integer> asked() {
            return new TreeMap<>(asked);
        }

        private void untilAsked(String value, int times) throws Exception {
            until(() -> times(value) >= times, value + " of " + name + " asked " + times + " times");
        }

        /** Waits for checks of a new half: those of all earlier halves come before the last of them. */
        void rounds(int count, String of) throws Exception {
            String value = of + "-" + System.nanoTime();
            synchronized (sent) {
                half(value, "unknown", null);
            }
            untilAsked(value, count);
        }

        private List<String> parked() throws Exception {
            return messages(PARKED).stream()
                .filter(each -> name.equals(each.getProperty(MessageConst.PROPERTY_REAL_TOPIC)))
                .map(RocketScript::value).toList();
        }

        @Override
        public LocalTransactionState executeLocalTransaction(Message message, Object outcome) {
            String value = value(message);
            String[] parts = ((String) outcome).split("-after-check-");
            if (parts.length > 1) {
                try {
                    untilAsked(value, Integer.parseInt(parts[1]));
                } catch (Exception e) {
                    throw new IllegalStateException(e);
                }
            }
            return state(parts[0]);
        }

        @Override
        public LocalTransactionState checkLocalTransaction(MessageExt message) {
            String value = value(message);
            String[] given;
            int times;
            synchronized (this) {
                given = answers.getOrDefault(value, new String[] {"unknown"});
                times = asked.merge(value, 1, Integer::sum);
            }
            return state(given[Math.min(times, given.length) - 1]);
        }

        private static LocalTransactionState state(String word) {
            return switch (word) {
                case "commit" -> LocalTransactionState.COMMIT_MESSAGE;
                case "rollback" -> LocalTransactionState.ROLLBACK_MESSAGE;
                case "unknown" -> LocalTransactionState.UNKNOW;
                case "null" -> null;
                default -> throw new IllegalStateException(word);
            };
        }

        @Override
        public String hookName() {
            return name;
        }

        @Override
        public void sendMessageBefore(SendMessageContext context) {}

        /** Keeps what a later decision needs: the caller of the producer does not get all of it. */
        @Override
        public void sendMessageAfter(SendMessageContext context) {
            SendResult result = context.getSendResult();
            if (result != null && result.getTransactionId() == null)
                result.setTransactionId(context.getMessage().getTransactionId());
            halves.put(value(context.getMessage()), result);
        }
    }
}
