import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.AuthorizationException;
import org.apache.kafka.common.errors.InvalidProducerEpochException;
import org.apache.kafka.common.errors.ProducerFencedException;
import org.apache.kafka.common.errors.OutOfOrderSequenceException;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Copies a topic in transactions with its group's offsets, until there is a line on stdin; the third
 * transaction of three is aborted, and its records are read again. Stdout is a journal: a line has the time
 * in nanoseconds of the monotonic clock, what happens (begin, decide before a commit is asked for, committed,
 * aborted), and for begin the records as PARTITION:VALUE. A value is NAME:START.NUMBER/VALUE.
 *
 * Arguments: bootstrap servers, topic, target, group, name, number of this start. Ends with status 1 after an
 * error that only a new producer can mend, without closing anything.
 */
public final class EndlessCopyProcess {
    private static final Duration POLL = Duration.ofMillis(200);
    private final KafkaConsumer<String, String> consumer;
    private final KafkaProducer<String, String> producer;
    private final String source;
    private final String target;
    private final String prefix;
    private int number = 0;

    public static void main(String[] arguments) throws IOException {
        try {
            new EndlessCopyProcess(arguments).run();
        } catch (KafkaException | IllegalStateException error) {
            note("ended " + error.getClass().getSimpleName());
            Runtime.getRuntime().halt(1);
        }
        Runtime.getRuntime().halt(0);
    }

    private EndlessCopyProcess(String[] arguments) {
        Properties common = new Properties();
        common.put("bootstrap.servers", arguments[0]);
        common.put("reconnect.backoff.ms", "20");
        common.put("reconnect.backoff.max.ms", "200");
        Properties reading = new Properties();
        reading.putAll(common);
        reading.put("group.id", arguments[3]);
        reading.put("isolation.level", "read_committed");
        reading.put("enable.auto.commit", "false");
        reading.put("auto.offset.reset", "earliest");
        reading.put("max.poll.records", "20");
        reading.put("partition.assignment.strategy", "org.apache.kafka.clients.consumer.RangeAssignor");
        reading.put("session.timeout.ms", "2000");
        reading.put("heartbeat.interval.ms", "300");
        reading.put("max.poll.interval.ms", "10000");
        Properties writing = new Properties();
        writing.putAll(common);
        writing.put("transactional.id", arguments[4]);
        writing.put("transaction.timeout.ms", "4000");
        writing.put("delivery.timeout.ms", "4000");
        writing.put("request.timeout.ms", "3000");
        writing.put("max.block.ms", "20000");
        writing.put("linger.ms", "0");
        StringDeserializer text = new StringDeserializer();
        StringSerializer bytes = new StringSerializer();
        consumer = new KafkaConsumer<>(reading, text, text);
        producer = new KafkaProducer<>(writing, bytes, bytes);
        source = arguments[1];
        target = arguments[2];
        prefix = arguments[4] + ":" + arguments[5];
    }

    private void run() throws IOException {
        producer.initTransactions();
        consumer.subscribe(List.of(source));
        while (System.in.available() == 0) {
            ConsumerRecords<String, String> records = consumer.poll(POLL);
            if (!records.isEmpty()) {
                number++;
                transaction(records);
            }
        }
        consumer.close();
    }

    private void transaction(ConsumerRecords<String, String> records) {
        Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
        List<ProducerRecord<String, String>> copies = new ArrayList<>();
        StringBuilder begun = new StringBuilder("begin");
        for (ConsumerRecord<String, String> record : records) {
            String value = prefix + "." + number + "/" + record.value();
            TopicPartition partition = new TopicPartition(source, record.partition());
            offsets.put(partition, new OffsetAndMetadata(record.offset() + 1));
            copies.add(new ProducerRecord<>(target, record.partition(), null, value));
            begun.append(' ').append(record.partition()).append(':').append(value);
        }
        note(begun.toString());
        try {
            producer.beginTransaction();
            copies.forEach(producer::send);
            producer.sendOffsetsToTransaction(offsets, consumer.groupMetadata());
            if (number % 3 != 0) {
                note("decide");
                producer.commitTransaction();
                note("committed");
                return;
            }
        } catch (ProducerFencedException | InvalidProducerEpochException | AuthorizationException
                 | OutOfOrderSequenceException fatal) {
            throw fatal;
        } catch (KafkaException error) {
            note("error " + error.getClass().getSimpleName());
        }
        producer.abortTransaction();
        note("aborted");
        readAgain(records);
    }

    private void readAgain(ConsumerRecords<String, String> records) {
        Set<TopicPartition> assigned = consumer.assignment();
        for (TopicPartition partition : records.partitions())
            if (assigned.contains(partition))
                consumer.seek(partition, records.records(partition).get(0).offset());
    }

    /** One write for one line: this process may be killed at any time. */
    private static void note(String event) {
        byte[] line = (System.nanoTime() + " " + event + "\n").getBytes(StandardCharsets.UTF_8);
        System.out.write(line, 0, line.length);
        System.out.flush();
    }
}
