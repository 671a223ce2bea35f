import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Consume, transform, produce: values of one topic are copied to another in transactions that commit the
 * group's offsets, too. Every third transaction is aborted, and its records are read again.
 *
 * Arguments: bootstrap servers, topic, target, group, number of records.
 */
public final class CopyProcess {
    public static void main(String[] arguments) {
        Properties reading = new Properties();
        reading.put("bootstrap.servers", arguments[0]);
        reading.put("group.id", arguments[3]);
        reading.put("isolation.level", "read_committed");
        reading.put("enable.auto.commit", "false");
        reading.put("auto.offset.reset", "earliest");
        reading.put("max.poll.records", "7");
        Properties writing = new Properties();
        writing.put("bootstrap.servers", arguments[0]);
        writing.put("transactional.id", arguments[3]);
        StringDeserializer text = new StringDeserializer();
        StringSerializer bytes = new StringSerializer();
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(reading, text, text);
             KafkaProducer<String, String> producer = new KafkaProducer<>(writing, bytes, bytes)) {
            producer.initTransactions();
            consumer.subscribe(List.of(arguments[1]));
            int left = Integer.parseInt(arguments[4]);
            for (int number = 0; left > 0;) {
                ConsumerRecords<String, String> records = consumer.poll(Duration.ofMillis(200));
                if (records.isEmpty())
                    continue;
                producer.beginTransaction();
                Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
                Map<TopicPartition, Long> before = new HashMap<>();
                for (ConsumerRecord<String, String> record : records) {
                    TopicPartition partition = new TopicPartition(record.topic(), record.partition());
                    before.putIfAbsent(partition, record.offset());
                    offsets.put(partition, new OffsetAndMetadata(record.offset() + 1));
                    producer.send(new ProducerRecord<>(arguments[2], 0, null, "copy of " + record.value()));
                }
                producer.sendOffsetsToTransaction(offsets, consumer.groupMetadata());
                if (number++ % 3 == 2) {
                    producer.abortTransaction();
                    before.forEach(consumer::seek);
                } else {
                    producer.commitTransaction();
                    left -= records.count();
                }
            }
        }
    }
}
