import java.io.PrintStream;
import java.time.Duration;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.stream.Stream;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Apache Kafka's own consumer reads topics from their beginning to their end, in both isolation levels.
 *
 * Arguments: bootstrap servers, topics. A record is a line of words: level, topic, partition, offset,
 * timestamp, type of the timestamp, key, value, then a name and a value for each header; bytes in base64
 * behind a =, - for null.
 */
public final class Consume {
    private static final Base64.Encoder BASE64 = Base64.getEncoder();

    public static void main(String[] arguments) {
        List<String> topics = List.of(arguments).subList(1, arguments.length);
        try (PrintStream out = new PrintStream(System.out, false)) {
            for (String level : List.of("read_committed", "read_uncommitted"))
                consume(arguments[0], topics, level, out);
        }
    }

    private static void consume(String servers, List<String> topics, String level, PrintStream out) {
        Properties options = new Properties();
        options.put("bootstrap.servers", servers);
        options.put("isolation.level", level);
        options.put("enable.auto.commit", "false");
        options.put("key.deserializer", ByteArrayDeserializer.class);
        options.put("value.deserializer", ByteArrayDeserializer.class);
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(options)) {
            List<TopicPartition> partitions = topics.stream()
                .flatMap(topic -> consumer.partitionsFor(topic).stream())
                .map(each -> new TopicPartition(each.topic(), each.partition())).toList();
            consumer.assign(partitions);
            consumer.seekToBeginning(partitions);
            Map<TopicPartition, Long> ends = consumer.endOffsets(partitions);
            while (ends.entrySet().stream()
                .anyMatch(each -> consumer.position(each.getKey()) < each.getValue()))
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(200)))
                    out.println(level + " " + line(record));
        }
    }

    private static String line(ConsumerRecord<byte[], byte[]> record) {
        Stream<String> headers = Stream.of(record.headers().toArray())
            .flatMap(each -> Stream.of(text(each.key().getBytes()), text(each.value())));
        return String.join(" ", record.topic(), "" + record.partition(), "" + record.offset(),
            "" + record.timestamp(), record.timestampType().toString(), text(record.key()),
            text(record.value())) + headers.map(each -> " " + each).reduce("", String::concat);
    }

    private static String text(byte[] bytes) {
        return bytes == null ? "-" : "=" + BASE64.encodeToString(bytes);
    }
}
