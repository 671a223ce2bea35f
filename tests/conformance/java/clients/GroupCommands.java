import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.serialization.StringDeserializer;

/**
 * Members of groups, for ClientProcess; the commands are those of card/jobs.py. And consumers that assign
 * partition 0 to themselves, and begin at the committed offset, or else at the start:
 *
 * <pre>
 * follow consumer=NAME server=… group=… topic=… reset=earliest|latest|none
 * commit consumer=NAME
 * </pre>
 */
final class GroupCommands {
    private static final Duration POLL = Duration.ofMillis(100);
    private static final Duration CLOSE = Duration.ofSeconds(5);

    /** A consumer, and what it was given and nobody has asked for yet. */
    private static final class Member {
        final KafkaConsumer<String, String> consumer;
        final Deque<String> given = new ArrayDeque<>();

        Member(KafkaConsumer<String, String> consumer) {
            this.consumer = consumer;
        }

        void poll() {
            for (ConsumerRecord<String, String> record : consumer.poll(POLL))
                given.add(record.partition() + ":" + record.offset() + ":" + record.value());
        }
    }

    private final Map<String, Member> members = new HashMap<>();
    private final Map<String, ConsumerGroupMetadata> remembered = new HashMap<>();

    /** The answer; null if the command is none of a group. */
    List<String> answer(String command, Map<String, String> options) {
        if (command.equals("join")) {
            join(options);
            return List.of();
        }
        if (command.equals("follow")) {
            follow(options);
            return List.of();
        }
        Member member = members.get(options.get("consumer"));
        switch (command) {
            case "poll":
                return poll(member, Integer.parseInt(options.get("count")));
            case "assigned":
                member.poll();
                return member.consumer.assignment().stream()
                    .map(each -> "" + each.partition()).sorted().toList();
            case "commit":
                member.consumer.commitSync();
                return List.of();
            case "commit-offset":
                member.consumer.commitSync(offset(options));
                return List.of();
            case "committed":
                TopicPartition partition = partition(options);
                OffsetAndMetadata found = member.consumer.committed(Set.of(partition)).get(partition);
                return List.of(found == null ? "none" : "" + found.offset());
            case "seek":
            case "read-again":
                member.given.clear();
                member.consumer.seek(partition(options), Long.parseLong(options.get("offset")));
                return List.of();
            case "remember":
                remembered.put(options.get("consumer"), member.consumer.groupMetadata());
                return List.of();
            case "leave":
                members.remove(options.get("consumer")).consumer.close(CLOSE);
                return List.of();
            default:
                return null;
        }
    }

    /** Add offsets of a member to the producer's transaction; of one that has left, as it was. */
    void sendOffsets(KafkaProducer<String, String> producer, Map<String, String> options) {
        Member member = members.get(options.get("consumer"));
        ConsumerGroupMetadata metadata =
            member == null ? remembered.get(options.get("consumer")) : member.consumer.groupMetadata();
        producer.sendOffsetsToTransaction(offset(options), metadata);
    }

    private void join(Map<String, String> options) {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", options.get("server"));
        properties.put("group.id", options.get("group"));
        properties.put("enable.auto.commit", "false");
        properties.put("auto.offset.reset", "earliest");
        options.forEach((name, value) -> {
            if (name.startsWith("config."))
                properties.put(name.substring(7), value);
        });
        if ("consumer".equals(options.get("strategy")))
            properties.put("group.protocol", "consumer");
        else
            properties.put("heartbeat.interval.ms", "300");
        if ("cooperative".equals(options.get("strategy")))
            properties.put("partition.assignment.strategy",
                "org.apache.kafka.clients.consumer.CooperativeStickyAssignor");
        StringDeserializer text = new StringDeserializer();
        KafkaConsumer<String, String> consumer = new KafkaConsumer<>(properties, text, text);
        consumer.subscribe(List.of(options.get("topic")));
        members.put(options.get("consumer"), new Member(consumer));
    }

    private void follow(Map<String, String> options) {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", options.get("server"));
        properties.put("group.id", options.get("group"));
        properties.put("enable.auto.commit", "false");
        properties.put("auto.offset.reset", options.get("reset"));
        StringDeserializer text = new StringDeserializer();
        KafkaConsumer<String, String> consumer = new KafkaConsumer<>(properties, text, text);
        TopicPartition partition = new TopicPartition(options.get("topic"), 0);
        consumer.assign(List.of(partition));
        if (consumer.committed(Set.of(partition)).get(partition) == null)
            consumer.seek(partition, 0);
        members.put(options.get("consumer"), new Member(consumer));
    }

    private static List<String> poll(Member member, int count) {
        long deadline = System.nanoTime() + 30_000_000_000L;
        while (member.given.size() < count) {
            if (System.nanoTime() > deadline)
                throw new TimeoutException(member.given.size() + " records of " + count);
            member.poll();
        }
        List<String> found = new ArrayList<>();
        while (found.size() < count)
            found.add(member.given.remove());
        return found;
    }

    private static TopicPartition partition(Map<String, String> options) {
        return new TopicPartition(options.get("topic"), Integer.parseInt(options.get("partition")));
    }

    private static Map<TopicPartition, OffsetAndMetadata> offset(Map<String, String> options) {
        return Map.of(partition(options), new OffsetAndMetadata(Long.parseLong(options.get("offset"))));
    }
}
