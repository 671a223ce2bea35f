import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;

/**
 * Apache Kafka's consumer follows a topic in read_committed, from its beginning, while the broker comes and
 * goes; after a line on stdin it reads up to the end that the topic has then, and ends itself.
 *
 * Arguments: bootstrap servers, topic, number of partitions. A record is a line: partition, offset, value. An
 * exception, such as one for a position that the log does not have, ends the process.
 */
public final class FollowProcess {
    private static final Duration POLL = Duration.ofMillis(100);

    public static void main(String[] arguments) throws IOException {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", arguments[0]);
        properties.put("isolation.level", "read_committed");
        properties.put("enable.auto.commit", "false");
        properties.put("auto.offset.reset", "none");
        properties.put("reconnect.backoff.ms", "20");
        properties.put("reconnect.backoff.max.ms", "200");
        List<TopicPartition> partitions = new ArrayList<>();
        for (int number = 0; number < Integer.parseInt(arguments[2]); number++)
            partitions.add(new TopicPartition(arguments[1], number));
        StringDeserializer text = new StringDeserializer();
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(properties, text, text)) {
            consumer.assign(partitions);
            for (TopicPartition partition : partitions)
                consumer.seek(partition, 0);
            while (System.in.available() == 0)
                print(consumer);
            var ends = consumer.endOffsets(partitions);
            while (partitions.stream().anyMatch(each -> consumer.position(each) < ends.get(each)))
                print(consumer);
        }
    }

    private static void print(KafkaConsumer<String, String> consumer) {
        for (ConsumerRecord<String, String> record : consumer.poll(POLL))
            System.out.println(record.partition() + " " + record.offset() + " " + record.value());
    }
}
