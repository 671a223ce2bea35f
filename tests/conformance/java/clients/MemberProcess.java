import java.io.IOException;
import java.time.Duration;
import java.util.List;
import java.util.Properties;
import java.util.Set;
import java.util.TreeSet;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.SubscriptionPattern;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.RebalanceInProgressException;
import org.apache.kafka.common.serialization.StringDeserializer;

/**
 * A member of a group, until stdin ends; then it leaves.
 *
 * Arguments: bootstrap servers, group, protocol, topic, or pattern that begins with a slash, and settings as
 * name=value. Lines are "has" with the numbers of its partitions whenever these change, and "read" with the
 * value of each record, which is committed.
 */
public final class MemberProcess {
    private static final Duration POLL = Duration.ofMillis(100);

    public static void main(String[] arguments) throws IOException {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", arguments[0]);
        properties.put("group.id", arguments[1]);
        properties.put("group.protocol", arguments[2]);
        properties.put("enable.auto.commit", "false");
        properties.put("auto.offset.reset", "earliest");
        for (int i = 4; i < arguments.length; i++)
            properties.put(arguments[i].split("=", 2)[0], arguments[i].split("=", 2)[1]);
        StringDeserializer text = new StringDeserializer();
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(properties, text, text)) {
            if (arguments[3].startsWith("/"))
                consumer.subscribe(new SubscriptionPattern(arguments[3].substring(1)));
            else
                consumer.subscribe(List.of(arguments[3]));
            Set<Integer> shown = new TreeSet<>(Set.of(-1));
            while (System.in.available() == 0) {
                for (ConsumerRecord<String, String> record : consumer.poll(POLL))
                    System.out.println("read " + record.value());
                commit(consumer);
                Set<Integer> has = new TreeSet<>();
                for (TopicPartition partition : consumer.assignment())
                    has.add(partition.partition());
                if (!has.equals(shown))
                    System.out.println("has " + has.toString().replaceAll("[^0-9 ]", ""));
                shown = has;
            }
        }
    }

    /** A rebalance that takes longer than a poll refuses the commit; what was read is committed after it. */
    private static void commit(KafkaConsumer<String, String> consumer) {
        try {
            consumer.commitSync();
        } catch (RebalanceInProgressException e) {
            System.err.println("not committed yet: " + e.getMessage());
        }
    }
}
