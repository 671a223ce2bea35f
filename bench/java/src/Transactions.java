import java.util.Arrays;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** A transactional producer of Kafka's own client; every transaction has one record of 100 bytes. */
final class Transactions {
    private final KafkaProducer<byte[], byte[]> producer;
    private final String topic;

    Transactions(Map<String, String> options) {
        topic = options.get("topic");
        producer = new KafkaProducer<>(
            Map.of(
                "bootstrap.servers", options.get("bootstrap"),
                "transactional.id", options.get("id"),
                "linger.ms", "0",
                "max.block.ms", "30000"),
            new ByteArraySerializer(), new ByteArraySerializer());
        producer.initTransactions();
    }

    /** Transactions whose values are PREFIX and their numbers, each with an offset of a group that has no
     * members, unless it is null; the nanoseconds of each. */
    String run(String prefix, int first, int count, boolean commit, String group) {
        long[] took = new long[count];
        long begin = System.nanoTime();
        for (int i = 0; i < count; i++) {
            long start = System.nanoTime();
            byte[] value = String.format("%s%099d", prefix, first + i).getBytes();
            producer.beginTransaction();
            producer.send(new ProducerRecord<>(topic, 0, null, value));
            if (group != null)
                producer.sendOffsetsToTransaction(
                    Map.of(new TopicPartition(topic, 0), new OffsetAndMetadata(first + i + 1)),
                    new ConsumerGroupMetadata(group));
            if (commit)
                producer.commitTransaction();
            else
                producer.abortTransaction();
            took[i] = System.nanoTime() - start;
        }
        return "\"wall_ns\":" + (System.nanoTime() - begin) + ",\"took_ns\":" + Arrays.toString(took);
    }
}
