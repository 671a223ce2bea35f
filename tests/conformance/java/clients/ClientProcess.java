import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.Future;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.ApiException;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Apache Kafka's Java producer and consumer, driven over a pipe: one command a line on stdin, one JSON object
 * a line on stdout. Values are words of ASCII.
 *
 * <pre>
 * open producer=NAME server=HOST:PORT config.NAME=…
 * init | begin | commit | abort | close   producer=NAME
 * send producer=NAME topic=… records=PARTITION:VALUE,… size=… wait=yes|no    values are padded with dots
 * send-offsets producer=NAME consumer=NAME topic=… partition=… offset=…
 * consume server=HOST:PORT topic=… partition=… level=…    from the beginning to the end
 * </pre>
 *
 * and those of GroupCommands and AdminCommands.
 *
 * The answer has "values" of a consume; of a command that failed, "error" with the name of Kafka's error, or
 * of the exception if it is none of a broker, and "detail".
 */
public final class ClientProcess {
    private static final Duration POLL = Duration.ofMillis(200);
    private static final long CONSUME_NANOS = 60_000_000_000L;
    private final Map<String, KafkaProducer<String, String>> producers = new HashMap<>();
    private final GroupCommands groups = new GroupCommands();
    private final AdminCommands admins = new AdminCommands();

    public static void main(String[] arguments) throws IOException {
        ClientProcess process = new ClientProcess();
        BufferedReader commands =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            String answer;
            try {
                answer = process.answer(line.trim().split(" "));
            } catch (Exception e) {
                Throwable cause = cause(e);
                answer = "\"error\":" + quoted(name(cause)) + ",\"detail\":" + quoted(e + " / " + cause);
            }
            System.out.println("{" + answer + "}");
            System.out.flush();
        }
        System.exit(0); // without what closing the producers would do
    }

    /** The error of the broker behind an exception; the innermost exception if there is none. */
    private static Throwable cause(Throwable error) {
        Throwable found = error;
        while (!(found instanceof ApiException) && found.getCause() != null)
            found = found.getCause();
        return found;
    }

    private static String name(Throwable error) {
        Errors known = Errors.forException(error);
        return known == Errors.UNKNOWN_SERVER_ERROR ? error.getClass().getSimpleName() : known.name();
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
        List<String> found = List.of();
        if (words[0].equals("consume"))
            found = consume(options);
        else if (words[0].equals("open"))
            producers.put(options.get("producer"), open(options));
        else if (words[0].equals("send-offsets"))
            groups.sendOffsets(producers.get(options.get("producer")), options);
        else if (options.containsKey("consumer"))
            found = groups.answer(words[0], options);
        else if (options.containsKey("producer"))
            run(words[0], producers.get(options.get("producer")), options);
        else
            found = admins.answer(words[0], options);
        if (found == null)
            throw new IllegalArgumentException("no such command: " + words[0]);
        String values = found.stream().map(ClientProcess::quoted).collect(Collectors.joining(","));
        return "\"error\":null,\"values\":[" + values + "]";
    }

    private static void run(
        String command, KafkaProducer<String, String> producer, Map<String, String> options
    ) throws Exception {
        switch (command) {
            case "init":
                producer.initTransactions();
                break;
            case "begin":
                producer.beginTransaction();
                break;
            case "send":
                send(producer, options);
                break;
            case "commit":
                producer.commitTransaction();
                break;
            case "abort":
                producer.abortTransaction();
                break;
            case "close":
                producer.close(Duration.ZERO);
                break;
            default:
                throw new IllegalArgumentException("no such command: " + command);
        }
    }

    private static KafkaProducer<String, String> open(Map<String, String> options) {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", options.get("server"));
        options.forEach((name, value) -> {
            if (name.startsWith("config."))
                properties.put(name.substring(7), value);
        });
        return new KafkaProducer<>(properties, new StringSerializer(), new StringSerializer());
    }

    private static void send(KafkaProducer<String, String> producer, Map<String, String> options)
        throws Exception {
        int size = Integer.parseInt(options.get("size"));
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        for (String record : options.get("records").split(",")) {
            String[] pair = record.split(":", 2);
            String value = pair[1] + ".".repeat(Math.max(0, size - pair[1].length()));
            int partition = Integer.parseInt(pair[0]);
            sent.add(producer.send(new ProducerRecord<>(options.get("topic"), partition, null, value)));
        }
        // Not flushed, they may become part of the next transaction: Sender asks whether there are incomplete
        // batches, and takes EndTxn from its queue later, by which time there may be some (4.3.1).
        producer.flush();
        if (options.get("wait").equals("no"))
            return;
        for (Future<RecordMetadata> future : sent)
            future.get();
    }

    private static List<String> consume(Map<String, String> options) {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", options.get("server"));
        properties.put("isolation.level", options.get("level"));
        properties.put("enable.auto.commit", "false");
        StringDeserializer text = new StringDeserializer();
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(properties, text, text)) {
            TopicPartition partition =
                new TopicPartition(options.get("topic"), Integer.parseInt(options.get("partition")));
            List<TopicPartition> assigned = List.of(partition);
            consumer.assign(assigned);
            consumer.seekToBeginning(assigned);
            long end = consumer.endOffsets(assigned).get(partition);
            List<String> values = new ArrayList<>();
            long deadline = System.nanoTime() + CONSUME_NANOS;
            while (consumer.position(partition) < end) {
                if (System.nanoTime() > deadline)
                    throw new IllegalStateException(values.size() + " records, end " + end);
                for (ConsumerRecord<String, String> record : consumer.poll(POLL))
                    values.add(record.value());
            }
            return values;
        }
    }
}
