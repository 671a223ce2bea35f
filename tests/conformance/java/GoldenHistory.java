import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.CountDownLatch;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Writes a part of the history of a golden case with Apache Kafka's own clients.
 *
 * Arguments: bootstrap servers, the part. Each operation is a line of the output, "done" is the last one; the
 * process then stays until it is killed, so that transactions stay open and members stay in their groups. The
 * part "stop" waits for a line on its standard input before it ends its transactions.
 */
public final class GoldenHistory {
    private static final String[] CODECS = {"none", "gzip", "snappy", "lz4", "zstd"};
    private static final Map<String, String> SMALL = Map.of("internal.segment.bytes", "16384",
        "segment.index.bytes", "1024", "index.interval.bytes", "1024", "retention.ms", "-1");
    private static final Duration SOON = Duration.ofMillis(200);
    private static final int STOPPED = 8;
    private static final long APART_MS = 12;

    private final String servers;
    private final Random random;
    private final Admin admin;
    private final Map<String, KafkaProducer<byte[], byte[]>> producers = new TreeMap<>();
    private final List<Object> kept = new ArrayList<>();

    private GoldenHistory(String servers, String part) {
        this.servers = servers;
        this.random = new Random(part.hashCode());
        this.admin = Admin.create(Map.of("bootstrap.servers", servers));
    }

    public static void main(String[] arguments) throws Exception {
        GoldenHistory history = new GoldenHistory(arguments[0], arguments[1]);
        switch (arguments[1]) {
            case "first" -> history.first();
            case "second" -> history.second();
            case "crash" -> history.crash();
            case "stop" -> history.stop();
            default -> throw new IllegalArgumentException(arguments[1]);
        }
        System.out.println("done");
        new CountDownLatch(1).await();
    }

    /** Everything that is decided before the broker stops for the first time. */
    private void first() throws Exception {
        create("orders", 2, SMALL);
        create("open", 3, SMALL);
        create("trimmed", 1, SMALL);
        create("data", 3, SMALL);
        create("hang", 2, SMALL);
        Map<String, String> compacted = new HashMap<>(SMALL);
        compacted.putAll(Map.of("cleanup.policy", "compact", "min.cleanable.dirty.ratio", "0.01",
            "internal.segment.bytes", "4096"));
        create("compacted", 1, compacted);
        turns("orders", 2, 60);
        turns("trimmed", 1, 30);
        admin.deleteRecords(Map.of(partition("trimmed", 0), RecordsToDelete.beforeOffset(41))).all().get();
        say("delete records of trimmed-0 before 41");
        compacted();
    }

    /** After a restart, in a new leader epoch: groups, and transactions that stay open. */
    private void second() throws Exception {
        turns("orders", 2, 40);
        idempotent("open", 1);
        for (int partition = 0; partition < 3; partition++)
            send(plain("plain"), partition("data", partition), 5);
        groups();
        open("open-0", partition("open", 0), 3);
        send(plain("plain"), partition("open", 0), 4);
        open("open-1", partition("open", 1), 5);
        open("open-2", partition("open", 1), 2);
        end("open-3", open("open-3", partition("open", 1), 2), true);
        end("open-4", open("open-4", partition("open", 2), 2), false);
    }

    /** Decided and open transactions, a plain and an idempotent producer; then the broker is killed. */
    private void crash() throws Exception {
        create("orders", 2, SMALL);
        turns("orders", 2, 60);
        open("open-0", partition("orders", 0), 3);
        open("open-1", partition("orders", 0), 2);
        idempotent("orders", 1);
        end("open-2", open("open-2", partition("orders", 1), 2), false);
        send(plain("plain"), partition("orders", 0), 4);
    }

    /** Transactions with data and with offsets of a group, which end while the broker stops. */
    private void stop() throws Exception {
        create("orders", 3, SMALL);
        send(plain("plain"), partition("orders", 0), 6);
        for (int i = 0; i < STOPPED; i++) {
            KafkaProducer<byte[], byte[]> producer = open("stop-" + i, partition("orders", 0), 1);
            send(producer, partition("orders", 1 + i % 2), 1);
            offsets(producer, "stop-" + i, "stop-group-" + i,
                Map.of(partition("orders", 0), new OffsetAndMetadata(i + 1)));
        }
        System.out.println("ready");
        System.in.read();
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < STOPPED; i++) {
            String name = "stop-" + i;
            boolean commit = i % 2 == 0;
            long after = i * APART_MS;
            threads.add(new Thread(() -> endSoon(name, commit, after)));
        }
        threads.forEach(Thread::start);
        for (Thread thread : threads)
            thread.join(10_000);
    }

    private void endSoon(String name, boolean commit, long after) {
        try {
            Thread.sleep(after);
            end(name, producers.get(name), commit);
        } catch (Exception error) {
            String end = commit ? "commit" : "abort";
            say(name + ": " + end + " is not acknowledged: " + error.getClass().getSimpleName());
        }
    }

    private void create(String topic, int partitions, Map<String, String> configs) throws Exception {
        admin.createTopics(List.of(new NewTopic(topic, partitions, (short) 1).configs(configs))).all().get();
        say("create topic " + topic + " partitions=" + partitions + " " + new TreeMap<>(configs));
    }

    /** Five transactional producers, one for each codec, and a plain one take turns. */
    private void turns(String topic, int partitions, int steps) {
        List<String> begun = new ArrayList<>();
        for (int step = 0; step < steps; step++) {
            String name = topic + "-txn-" + CODECS[random.nextInt(CODECS.length)];
            TopicPartition where = partition(topic, random.nextInt(partitions));
            if (random.nextInt(6) == 0) {
                send(plain("plain-" + topic), where, 1 + random.nextInt(5));
            } else if (!begun.contains(name)) {
                begin(name);
                begun.add(name);
                send(producers.get(name), where, 1 + random.nextInt(12));
            } else if (random.nextInt(3) > 0) {
                send(producers.get(name), where, 1 + random.nextInt(12));
            } else {
                end(name, producers.get(name), random.nextInt(5) < 3);
                begun.remove(name);
            }
        }
        for (int i = 0; i < begun.size(); i++)
            end(begun.get(i), producers.get(begun.get(i)), i % 2 == 0);
    }

    private void idempotent(String topic, int partition) {
        KafkaProducer<byte[], byte[]> producer = producer("idempotent", Map.of("enable.idempotence", "true"));
        for (int i = 0; i < 3; i++)
            send(producer, partition(topic, partition), 3);
        say("the producer of these is idempotent");
    }

    /** Few keys again and again, in transactions and outside: the cleaner leaves gaps. */
    private void compacted() throws Exception {
        TopicPartition where = partition("compacted", 0);
        for (int round = 0; round < 30; round++) {
            String name = "compacted-" + round % 3;
            begin(name);
            send(producers.get(name), where, 6);
            end(name, producers.get(name), round % 4 > 0);
            send(plain("plain-compacted"), where, 4);
        }
    }

    private void groups() throws Exception {
        admin.alterConsumerGroupOffsets("simple", Map.of(partition("data", 0), new OffsetAndMetadata(3),
            partition("data", 1), new OffsetAndMetadata(4, "méta ☃"))).all().get();
        say("group simple: offsets by the admin client");
        member("classic", Map.of("group.protocol", "classic"));
        member("classic-static", Map.of("group.protocol", "classic", "group.instance.id", "inst-1"));
        member("kip848", Map.of("group.protocol", "consumer"));
        member("kip848-static", Map.of("group.protocol", "consumer", "group.instance.id", "inst-2"));
        share();
        Map<TopicPartition, OffsetAndMetadata> offsets = Map.of(
            partition("data", 0), new OffsetAndMetadata(2),
            partition("data", 1), new OffsetAndMetadata(1, "in txn"));
        for (String how : List.of("committed", "aborted", "pending")) {
            KafkaProducer<byte[], byte[]> producer = open("offsets-" + how, partition("data", 2), 1);
            offsets(producer, "offsets-" + how, "txn-" + how, offsets);
            if (!how.equals("pending"))
                end("offsets-" + how, producer, how.equals("committed"));
        }
    }

    private void offsets(KafkaProducer<byte[], byte[]> producer, String name, String group,
                         Map<TopicPartition, OffsetAndMetadata> offsets) {
        Map<String, Object> options = options(Map.of("group.id", group));
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(options)) {
            producer.sendOffsetsToTransaction(offsets, consumer.groupMetadata());
        }
        say(name + ": offsets of group " + group + " " + new TreeMap<>(Map.of("partitions", offsets.size())));
    }

    private void member(String group, Map<String, String> more) {
        Map<String, Object> options = options(more);
        options.put("group.id", group);
        options.put("client.id", "client-" + group);
        options.put("auto.offset.reset", "earliest");
        options.put("enable.auto.commit", "false");
        options.put("isolation.level", "read_committed");
        KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(options);
        consumer.subscribe(List.of("data"));
        int found = 0;
        while (found < 15)
            found += consumer.poll(SOON).count();
        consumer.commitSync();
        kept.add(consumer);
        say("group " + group + " " + new TreeMap<>(more) + ": polled " + found + " records, commitSync");
    }

    private void share() throws Exception {
        Map<String, Object> options = options(Map.of("group.id", "share", "client.id", "client-share"));
        KafkaShareConsumer<byte[], byte[]> consumer = new KafkaShareConsumer<>(options);
        consumer.subscribe(List.of("data"));
        int found = consumer.poll(SOON).count();
        while (found == 0) { // it begins with what is sent after it has joined
            send(plain("plain"), partition("data", 0), 1);
            found += consumer.poll(SOON).count();
            consumer.commitSync();
        }
        kept.add(consumer);
        say("share group share: polled " + found + " records, commitSync");
    }

    private Map<String, Object> options(Map<String, String> more) {
        Map<String, Object> options = new HashMap<>(more);
        options.put("bootstrap.servers", servers);
        options.put("key.deserializer", ByteArrayDeserializer.class);
        options.put("value.deserializer", ByteArrayDeserializer.class);
        return options;
    }

    private KafkaProducer<byte[], byte[]> open(String name, TopicPartition where, int count) {
        begin(name);
        send(producers.get(name), where, count);
        return producers.get(name);
    }

    private void begin(String name) {
        String codec = name.contains("-txn-") ? name.substring(name.lastIndexOf('-') + 1) : "none";
        if (!producers.containsKey(name)) {
            producer(name, Map.of(
                "transactional.id", name, "compression.type", codec, "transaction.timeout.ms", "900000"))
                .initTransactions();
            say(name + ": initTransactions codec=" + codec);
        }
        producers.get(name).beginTransaction();
        say(name + ": begin");
    }

    private void end(String name, KafkaProducer<byte[], byte[]> producer, boolean commit) {
        if (commit)
            producer.commitTransaction();
        else
            producer.abortTransaction();
        say(name + ": " + (commit ? "commit" : "abort"));
    }

    private KafkaProducer<byte[], byte[]> plain(String name) {
        return producer(name, Map.of("enable.idempotence", "false"));
    }

    private KafkaProducer<byte[], byte[]> producer(String name, Map<String, String> more) {
        return producers.computeIfAbsent(name, each -> {
            Map<String, Object> options = new HashMap<>(more);
            options.putAll(Map.of("bootstrap.servers", servers, "linger.ms", "1000", "max.block.ms", "10000",
                "key.serializer", ByteArraySerializer.class, "value.serializer", ByteArraySerializer.class));
            return new KafkaProducer<>(options);
        });
    }

    /** One batch. */
    private void send(KafkaProducer<byte[], byte[]> producer, TopicPartition where, int count) {
        for (int i = 0; i < count; i++) {
            byte[] key = ("key-" + random.nextInt(8)).getBytes();
            boolean isNull = random.nextInt(12) == 0;
            byte[] value = isNull ? null : "value ".repeat(random.nextInt(30)).getBytes();
            ProducerRecord<byte[], byte[]> record =
                new ProducerRecord<>(where.topic(), where.partition(), key, value);
            if (random.nextInt(8) == 0) {
                record.headers().add(new RecordHeader("trace", new byte[] {(byte) i}));
                record.headers().add(new RecordHeader("none", null));
            }
            producer.send(record);
        }
        producer.flush();
        say("send " + where + " records=" + count);
    }

    private static TopicPartition partition(String topic, int partition) {
        return new TopicPartition(topic, partition);
    }

    private static synchronized void say(String operation) {
        System.out.println(operation);
    }
}
