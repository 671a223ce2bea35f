import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.springframework.kafka.core.DefaultKafkaConsumerFactory;
import org.springframework.kafka.core.DefaultKafkaProducerFactory;
import org.springframework.kafka.core.KafkaTemplate;
import org.springframework.kafka.listener.ConcurrentMessageListenerContainer;
import org.springframework.kafka.listener.ContainerProperties;
import org.springframework.kafka.listener.DefaultAfterRollbackProcessor;
import org.springframework.kafka.listener.MessageListener;
import org.springframework.kafka.transaction.KafkaTransactionManager;
import org.springframework.util.backoff.FixedBackOff;

/**
 * Copies a topic with a listener container whose transactions have the offsets of the group. Arguments:
 * bootstrap servers, topic, target.
 */
public final class SpringCopy {
    public static void main(String[] args) throws Exception {
        String strings = "org.apache.kafka.common.serialization.String";
        Map<String, Object> producer = new HashMap<>();
        producer.put("bootstrap.servers", args[0]);
        producer.put("key.serializer", strings + "Serializer");
        producer.put("value.serializer", strings + "Serializer");
        producer.put("transaction.timeout.ms", 10000);
        DefaultKafkaProducerFactory<String, String> producers = new DefaultKafkaProducerFactory<>(producer);
        producers.setTransactionIdPrefix("spring-copy-");
        KafkaTemplate<String, String> template = new KafkaTemplate<>(producers);

        Map<String, Object> consumer = new HashMap<>();
        consumer.put("bootstrap.servers", args[0]);
        consumer.put("group.id", "spring-copy");
        consumer.put("key.deserializer", strings + "Deserializer");
        consumer.put("value.deserializer", strings + "Deserializer");
        consumer.put("isolation.level", "read_committed");
        consumer.put("auto.offset.reset", "earliest");
        consumer.put("session.timeout.ms", 6000);
        consumer.put("heartbeat.interval.ms", 1000);
        ContainerProperties properties = new ContainerProperties(args[1]);
        properties.setKafkaAwareTransactionManager(new KafkaTransactionManager<>(producers));
        properties.setMessageListener((MessageListener<String, String>)
            (ConsumerRecord<String, String> record) -> template.send(args[2], record.key(), record.value()));
        ConcurrentMessageListenerContainer<String, String> container =
            new ConcurrentMessageListenerContainer<>(new DefaultKafkaConsumerFactory<>(consumer), properties);
        container.setConcurrency(2);
        // a record whose transaction fails is tried again without end, and never left out
        container.setAfterRollbackProcessor(
            new DefaultAfterRollbackProcessor<>(new FixedBackOff(500, FixedBackOff.UNLIMITED_ATTEMPTS)));
        container.start();
        Thread.currentThread().join();
    }
}
