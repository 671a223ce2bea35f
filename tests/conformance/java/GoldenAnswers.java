import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.PrintWriter;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Collection;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.stream.Stream;
import java.util.zip.CRC32;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.IsolationLevel;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.message.FetchRequestData;
import org.apache.kafka.common.message.FetchResponseData;
import org.apache.kafka.common.message.OffsetFetchRequestData;
import org.apache.kafka.common.message.OffsetFetchResponseData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.requests.AbstractResponse;
import org.apache.kafka.common.requests.RequestHeader;
import org.apache.kafka.common.requests.RequestUtils;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Asks a broker everything that a golden case keeps as its answers, and writes the files of "expected".
 *
 * Arguments: bootstrap servers, directory, topics, transactional ids, groups; lists with commas, "-" is none.
 * The clock of the answers, in milliseconds, is printed.
 */
public final class GoldenAnswers {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final List<IsolationLevel> LEVELS =
        List.of(IsolationLevel.READ_COMMITTED, IsolationLevel.READ_UNCOMMITTED);
    private static final int[] FETCH_SIZES = {1, 3000, 1 << 20};
    private static final int MAX_BYTES = 52428800, FETCHED_OFFSETS = 8, ASKED_TIMES = 8;
    private static final short FETCH_VERSION = 12, OFFSET_FETCH_VERSION = 9;

    private final String servers;
    private final Path directory;
    private final Admin admin;
    private final Socket socket;

    private GoldenAnswers(String servers, Path directory) throws IOException {
        this.servers = servers;
        this.directory = directory;
        this.admin = Admin.create(Map.of("bootstrap.servers", servers));
        this.socket = new Socket(servers.split(":")[0], Integer.parseInt(servers.split(":")[1]));
    }

    public static void main(String[] arguments) throws Exception {
        GoldenAnswers answers = new GoldenAnswers(arguments[0], Path.of(arguments[1]));
        List<String> topics = list(arguments[2]), transactionalIds = list(arguments[3]);
        List<String> groups = list(arguments[4]);
        Map<String, TopicDescription> described = answers.admin.describeTopics(topics).allTopicNames().get();
        for (TopicDescription topic : new TreeMap<>(described).values())
            for (int partition = 0; partition < topic.partitions().size(); partition++)
                answers.partition(new TopicPartition(topic.name(), partition));
        Map<String, Object> cluster = answers.transactions(transactionalIds);
        if (!groups.isEmpty())
            cluster.put("groups", answers.groups(groups, topics));
        answers.write("cluster.json", cluster);
        System.out.println(System.currentTimeMillis());
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }

    private static List<String> list(String argument) {
        return argument.equals("-") ? List.of() : List.of(argument.split(","));
    }

    private void write(String name, Object content) throws IOException {
        Files.writeString(directory.resolve(name), JSON.writeValueAsString(content) + "\n");
    }

    private void partition(TopicPartition partition) throws Exception {
        Map<String, Object> facts = map("topic", partition.topic(), "partition", partition.partition());
        long start = offset(partition, OffsetSpec.earliest(), IsolationLevel.READ_UNCOMMITTED).offset();
        long stable = offset(partition, OffsetSpec.latest(), IsolationLevel.READ_COMMITTED).offset();
        long end = offset(partition, OffsetSpec.latest(), IsolationLevel.READ_UNCOMMITTED).offset();
        facts.put("log_start_offset", start);
        facts.put("lso", stable);
        facts.put("high_watermark", end);
        TreeSet<Long> times = new TreeSet<>();
        Map<String, Object> consumed = new LinkedHashMap<>();
        for (IsolationLevel level : LEVELS)
            consumed.put(name(level), consume(partition, level, times));
        facts.put("consumer", consumed);
        facts.put("describe_producers", producers(partition));
        facts.put("offsets_for_times", times(partition, times));
        facts.put("fetch", fetches(partition, List.of(start, stable, end)));
        write(partition + ".facts.json", facts);
    }

    private static String name(IsolationLevel level) {
        return level.toString().toLowerCase();
    }

    private ListOffsetsResult.ListOffsetsResultInfo offset(
            TopicPartition partition, OffsetSpec spec, IsolationLevel level)
        throws Exception {
        return admin.listOffsets(Map.of(partition, spec), new ListOffsetsOptions(level))
            .partitionResult(partition).get();
    }

    private Map<String, Object> consume(
            TopicPartition partition, IsolationLevel level, Collection<Long> times)
        throws IOException {
        Map<String, Object> options = Map.of("bootstrap.servers", servers, "isolation.level", name(level),
            "enable.auto.commit", "false", "key.deserializer", ByteArrayDeserializer.class,
            "value.deserializer", ByteArrayDeserializer.class);
        Path file = directory.resolve(partition + "." + name(level) + ".jsonl");
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(options);
             PrintWriter out = new PrintWriter(Files.newBufferedWriter(file))) {
            List<TopicPartition> one = List.of(partition);
            consumer.assign(one);
            consumer.seekToBeginning(one);
            long begin = consumer.beginningOffsets(one).get(partition);
            long end = consumer.endOffsets(one).get(partition);
            int count = 0;
            while (consumer.position(partition) < end)
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(100))) {
                    out.print(JSON.writeValueAsString(row(record)) + "\n");
                    times.add(record.timestamp());
                    count++;
                }
            return map("beginning_offset", begin, "end_offset", end, "records", count,
                "position", consumer.position(partition));
        }
    }

    private static Map<String, Object> row(ConsumerRecord<byte[], byte[]> record) {
        List<List<String>> headers = Stream.of(record.headers().toArray())
            .map(each -> pair(each.key(), base64(each.value()))).toList();
        return map("offset", record.offset(), "timestamp", record.timestamp(), "timestamp_type",
            record.timestampType().toString(), "key", base64(record.key()), "value", base64(record.value()),
            "headers", headers, "leader_epoch", record.leaderEpoch().orElse(null));
    }

    private static List<String> pair(String name, String value) {
        List<String> found = new ArrayList<>();
        found.add(name);
        found.add(value);
        return found;
    }

    private static String base64(byte[] bytes) {
        return bytes == null ? null : Base64.getEncoder().encodeToString(bytes);
    }

    private List<Map<String, Object>> producers(TopicPartition partition) throws Exception {
        return admin.describeProducers(List.of(partition)).all().get().get(partition)
            .activeProducers().stream()
            .sorted(Comparator.comparingLong(ProducerState::producerId))
            .map(each -> map("producer_id", each.producerId(), "producer_epoch", each.producerEpoch(),
                "last_sequence", each.lastSequence(), "last_timestamp", each.lastTimestamp(),
                "coordinator_epoch",
                each.coordinatorEpoch().isPresent() ? each.coordinatorEpoch().getAsInt() : null,
                "current_txn_start_offset", each.currentTransactionStartOffset().isPresent()
                    ? each.currentTransactionStartOffset().getAsLong() : null)).toList();
    }

    private List<Map<String, Object>> times(TopicPartition partition, TreeSet<Long> times) throws Exception {
        Map<String, OffsetSpec> asked = new LinkedHashMap<>();
        asked.put("earliest", OffsetSpec.earliest());
        asked.put("latest", OffsetSpec.latest());
        asked.put("max_timestamp", OffsetSpec.maxTimestamp());
        TreeSet<Long> chosen = new TreeSet<>(spread(times, ASKED_TIMES));
        if (!times.isEmpty())
            chosen.addAll(List.of(times.first() - 3600, times.first() + 1, times.last() + 1));
        chosen.forEach(each -> asked.put("" + each, OffsetSpec.forTimestamp(each)));
        List<Map<String, Object>> found = new ArrayList<>();
        for (Map.Entry<String, OffsetSpec> each : asked.entrySet()) {
            Map<String, Object> answer = map("spec", each.getKey());
            for (IsolationLevel level : LEVELS) {
                ListOffsetsResult.ListOffsetsResultInfo info = offset(partition, each.getValue(), level);
                answer.put(name(level), map("offset", info.offset(), "timestamp", info.timestamp(),
                    "leader_epoch", info.leaderEpoch().orElse(null)));
            }
            found.add(answer);
        }
        return found;
    }

    /** At most count + 1 of the values, the first and the last among them. */
    private static List<Long> spread(Collection<Long> values, int count) {
        List<Long> all = List.copyOf(values), found = new ArrayList<>();
        for (int i = 0; i < all.size(); i += Math.max(1, all.size() / count))
            found.add(all.get(i));
        if (!all.isEmpty())
            found.add(all.get(all.size() - 1));
        return found;
    }

    private List<Map<String, Object>> fetches(TopicPartition partition, List<Long> ends) throws IOException {
        TreeSet<Long> offsets = new TreeSet<>(ends);
        List<Long> all = Stream.iterate(ends.get(0), each -> each < ends.get(2), each -> each + 1).toList();
        offsets.addAll(spread(all, FETCHED_OFFSETS));
        offsets.add(ends.get(2) + 1);
        List<Map<String, Object>> found = new ArrayList<>();
        for (long offset : offsets)
            for (int size : FETCH_SIZES)
                for (IsolationLevel level : LEVELS)
                    found.add(fetch(partition, offset, size, level));
        return found;
    }

    private Map<String, Object> fetch(TopicPartition partition, long offset, int size, IsolationLevel level)
        throws IOException {
        FetchRequestData request = new FetchRequestData().setMaxBytes(MAX_BYTES).setIsolationLevel(level.id())
            .setTopics(List.of(new FetchRequestData.FetchTopic().setTopic(partition.topic()).setPartitions(
                List.of(new FetchRequestData.FetchPartition().setPartition(partition.partition())
                    .setFetchOffset(offset).setPartitionMaxBytes(size)))));
        FetchResponseData answer = (FetchResponseData) ask(ApiKeys.FETCH, FETCH_VERSION, request);
        FetchResponseData.PartitionData data = answer.responses().get(0).partitions().get(0);
        MemoryRecords records = data.records() == null ? MemoryRecords.EMPTY : (MemoryRecords) data.records();
        CRC32 crc = new CRC32();
        crc.update(records.buffer());
        List<RecordBatch> batches = new ArrayList<>();
        records.batches().forEach(batches::add);
        Map<String, Object> found = map("offset", offset, "max_bytes", MAX_BYTES, "partition_max_bytes", size,
            "isolation", name(level), "error", Errors.forCode(data.errorCode()).name(),
            "high_watermark", data.highWatermark(), "last_stable_offset", data.lastStableOffset(),
            "log_start_offset", data.logStartOffset(), "aborted_transactions",
            data.abortedTransactions() == null ? null : data.abortedTransactions().stream().map(each ->
                map("producer_id", each.producerId(), "first_offset", each.firstOffset())).toList(),
            "record_bytes", records.sizeInBytes(), "record_bytes_crc32", crc.getValue(),
            "complete_batches", batches.size(),
            "complete_batch_bytes", batches.stream().mapToInt(RecordBatch::sizeInBytes).sum());
        if (!batches.isEmpty()) {
            found.put("first_batch_base_offset", batches.get(0).baseOffset());
            found.put("last_batch_last_offset", batches.get(batches.size() - 1).lastOffset());
        }
        return found;
    }

    private ApiMessage ask(ApiKeys api, short version, ApiMessage body) throws IOException {
        RequestHeader header = new RequestHeader(api, version, "golden", 1);
        ByteBuffer request = RequestUtils.serialize(header.data(), header.headerVersion(), body, version);
        DataOutputStream out = new DataOutputStream(socket.getOutputStream());
        out.writeInt(request.remaining());
        out.write(request.array(), request.arrayOffset() + request.position(), request.remaining());
        out.flush();
        DataInputStream in = new DataInputStream(socket.getInputStream());
        byte[] answer = new byte[in.readInt()];
        in.readFully(answer);
        return AbstractResponse.parseResponse(ByteBuffer.wrap(answer), header).data();
    }

    private Map<String, Object> transactions(List<String> transactionalIds) throws Exception {
        List<Map<String, Object>> listed = admin.listTransactions().all().get().stream()
            .sorted(Comparator.comparing(TransactionListing::transactionalId))
            .map(each -> map("transactional_id", each.transactionalId(), "producer_id", each.producerId(),
                "state", each.state().toString())).toList();
        Map<String, Object> described = new LinkedHashMap<>();
        DescribeTransactionsResult result = admin.describeTransactions(transactionalIds);
        for (String each : transactionalIds)
            described.put(each, answered(result.description(each), GoldenAnswers::described));
        return map("list_transactions", listed, "describe_transactions", described);
    }

    private static Map<String, Object> described(TransactionDescription found) {
        return map("coordinator_id", found.coordinatorId(), "state", found.state().toString(),
            "producer_id", found.producerId(), "producer_epoch", found.producerEpoch(),
            "transaction_timeout_ms", found.transactionTimeoutMs(), "transaction_start_time_ms",
            found.transactionStartTimeMs().isPresent() ? found.transactionStartTimeMs().getAsLong() : null,
            "topic_partitions", names(found.topicPartitions()));
    }

    private static List<String> names(Collection<TopicPartition> partitions) {
        return partitions.stream().map(TopicPartition::toString).sorted().toList();
    }

    private Map<String, Object> groups(List<String> groups, List<String> topics) throws Exception {
        List<Map<String, Object>> listed = admin.listGroups().all().get().stream()
            .sorted(Comparator.comparing(GroupListing::groupId))
            .map(each -> map("group_id", each.groupId(), "protocol", each.protocol(), "type",
                each.type().map(Object::toString).orElse(null), "state",
                each.groupState().map(Object::toString).orElse(null))).toList();
        Map<String, Object> described = new LinkedHashMap<>(), offsets = new LinkedHashMap<>();
        DescribeConsumerGroupsResult result = admin.describeConsumerGroups(groups);
        for (String group : groups) {
            described.put(group, answered(result.describedGroups().get(group), GoldenAnswers::described));
            Map<String, Object> answers = new LinkedHashMap<>();
            for (boolean stable : new boolean[] {true, false})
                answers.put(stable ? "require_stable" : "not_require_stable", offsets(group, stable));
            answers.put("raw_offset_fetch_require_stable", stableOffsets(group, topics));
            offsets.put(group, answers);
        }
        return map("list", listed, "describe", described, "offsets", offsets);
    }

    private static Map<String, Object> described(ConsumerGroupDescription found) {
        List<Map<String, Object>> members = found.members().stream().map(each -> map(
            "client_id", each.clientId(),
            "instance_id", each.groupInstanceId().orElse(null), "member_id", each.consumerId(),
            "assignment", names(each.assignment().topicPartitions()))).toList();
        return map("state", found.groupState().toString(), "type", found.type().toString(),
            "assignor", found.partitionAssignor(), "group_epoch", found.groupEpoch().orElse(null),
            "target_assignment_epoch", found.targetAssignmentEpoch().orElse(null), "members", members);
    }

    private Map<String, Object> offsets(String group, boolean stable) throws Exception {
        Map<TopicPartition, OffsetAndMetadata> found = admin.listConsumerGroupOffsets(group,
            new ListConsumerGroupOffsetsOptions().requireStable(stable))
            .partitionsToOffsetAndMetadata().get();
        Map<String, Object> shown = new TreeMap<>();
        found.forEach((partition, each) -> {
            if (each != null)
                shown.put(partition.toString(), map("offset", each.offset(), "metadata", each.metadata(),
                    "leader_epoch", each.leaderEpoch().orElse(null)));
        });
        return map("offsets", shown);
    }

    private Map<String, Object> stableOffsets(String group, List<String> topics) throws IOException {
        List<OffsetFetchRequestData.OffsetFetchRequestTopics> asked = topics.stream()
            .filter(each -> !each.startsWith("__"))
            .map(each -> new OffsetFetchRequestData.OffsetFetchRequestTopics()
                .setName(each).setPartitionIndexes(List.of(0, 1, 2))).toList();
        OffsetFetchRequestData request = new OffsetFetchRequestData().setRequireStable(true).setGroups(
            List.of(new OffsetFetchRequestData.OffsetFetchRequestGroup().setGroupId(group).setTopics(asked)));
        OffsetFetchResponseData.OffsetFetchResponseGroup found =
            ((OffsetFetchResponseData) ask(ApiKeys.OFFSET_FETCH, OFFSET_FETCH_VERSION, request))
                .groups().get(0);
        List<Map<String, Object>> shown = found.topics().stream().map(topic -> map(
            "name", topic.name(), "partitions",
            topic.partitions().stream().map(each -> map(
                "partitionIndex", each.partitionIndex(), "committedOffset",
                each.committedOffset(), "committedLeaderEpoch", each.committedLeaderEpoch(), "metadata",
                each.metadata(), "errorCode", each.errorCode())).toList())).toList();
        return map("groupId", group, "topics", shown, "errorCode", found.errorCode());
    }

    private interface Shown<T> {
        Map<String, Object> of(T answer);
    }

    private static <T> Map<String, Object> answered(Future<T> answer, Shown<T> shown)
            throws InterruptedException {
        try {
            return shown.of(answer.get());
        } catch (ExecutionException error) {
            return map("error", error.getCause().getClass().getSimpleName());
        }
    }

    private static Map<String, Object> map(Object... content) {
        Map<String, Object> found = new LinkedHashMap<>();
        for (int i = 0; i < content.length; i += 2)
            found.put((String) content[i], content[i + 1]);
        return found;
    }
}
