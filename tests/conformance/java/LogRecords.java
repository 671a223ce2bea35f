import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HashSet;
import java.util.HexFormat;
import java.util.OptionalInt;
import java.util.OptionalLong;
import java.util.stream.Collectors;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.protocol.Readable;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.group.GroupCoordinatorRecordHelpers;
import org.apache.kafka.coordinator.group.GroupCoordinatorRecordSerde;
import org.apache.kafka.coordinator.group.OffsetAndMetadata;
import org.apache.kafka.coordinator.transaction.TransactionLog;
import org.apache.kafka.coordinator.transaction.TransactionMetadata;
import org.apache.kafka.coordinator.transaction.TransactionState;
import org.apache.kafka.coordinator.transaction.TxnTransitMetadata;
import org.apache.kafka.metadata.MetadataRecordSerde;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.server.common.TransactionVersion;

/**
 * Kafka's own writers of its logs' records, asked line by line; fields are separated by tabs, bytes are
 * hexadecimal. Each line is answered by one.
 *
 *   key CLASS VERSION JSON      with the type of the record in front
 *   value CLASS VERSION JSON    with the version in front
 *   frame CLASS VERSION JSON    a record of the metadata log
 *   again CLASS VERSION BYTES   read and written, with nothing in front
 *   transaction JSON            the key and the value that the transaction coordinator writes
 *   offset JSON                 the key and the value that the group coordinator writes
 *   loaded KEY VALUE            what the transaction coordinator reads, as JSON
 */
final class LogRecords {
    private static final HexFormat HEX = HexFormat.of();
    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream output = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        for (String line; (line = lines.readLine()) != null; )
            output.println(answer(line.split("\t")));
    }

    private static String answer(String[] words) throws Exception {
        return switch (words[0]) {
            case "key" -> hex(MessageUtil.toCoordinatorTypePrefixedBytes((ApiMessage) message(words)));
            case "value" -> hex(MessageUtil.toVersionPrefixedBytes(version(words), message(words)));
            case "frame" -> frame(words);
            case "again" -> again(words);
            case "transaction" -> transaction(JSON.readTree(words[1]));
            case "offset" -> offset(JSON.readTree(words[1]));
            case "loaded" -> loaded(HEX.parseHex(words[1]), HEX.parseHex(words[2]));
            default -> throw new IllegalArgumentException(words[0]);
        };
    }

    private static String hex(byte[] bytes) {
        return HexFormat.of().formatHex(bytes);
    }

    private static short version(String[] words) {
        return Short.parseShort(words[2]);
    }

    private static Message message(String[] words) throws Exception {
        Class<?> converter = Class.forName(words[1] + "JsonConverter");
        return (Message) converter.getMethod("read", JsonNode.class, short.class)
            .invoke(null, JSON.readTree(words[3]), version(words));
    }

    private static String frame(String[] words) throws Exception {
        ApiMessageAndVersion record = new ApiMessageAndVersion((ApiMessage) message(words), version(words));
        ObjectSerializationCache cache = new ObjectSerializationCache();
        MetadataRecordSerde serde = new MetadataRecordSerde();
        ByteBuffer buffer = ByteBuffer.allocate(serde.recordSize(record, cache));
        serde.write(record, cache, new ByteBufferAccessor(buffer));
        return hex(buffer.array());
    }

    private static String again(String[] words) throws Exception {
        ByteBuffer bytes = ByteBuffer.wrap(HEX.parseHex(words[3]));
        Message message = (Message) Class.forName(words[1]).getConstructor(Readable.class, short.class)
            .newInstance(new ByteBufferAccessor(bytes), version(words));
        return hex(MessageUtil.toByteBufferAccessor(message, version(words)).buffer().array());
    }

    private static String transaction(JsonNode fields) {
        HashSet<TopicPartition> partitions = new HashSet<>();
        for (JsonNode partition : fields.get("partitions"))
            partitions.add(new TopicPartition(fields.get("topic").asText(), partition.asInt()));
        TxnTransitMetadata metadata = new TxnTransitMetadata(
            fields.get("producer_id").asLong(), fields.get("previous_producer_id").asLong(),
            fields.get("next_producer_id").asLong(), (short) fields.get("producer_epoch").asInt(), (short) -1,
            fields.get("timeout").asInt(), TransactionState.fromId((byte) fields.get("state").asInt()),
            partitions,
            fields.get("started").asLong(), fields.get("updated").asLong(),
            TransactionVersion.fromFeatureLevel((short) fields.get("client_version").asInt()));
        boolean oldest = fields.get("version").asInt() == 0;
        TransactionVersion version = oldest ? TransactionVersion.TV_0 : TransactionVersion.TV_2;
        return hex(TransactionLog.keyToBytes(fields.get("id").asText())) + "\t"
            + hex(TransactionLog.valueToBytes(metadata, version));
    }

    private static String offset(JsonNode fields) {
        int epoch = fields.get("leader_epoch").asInt();
        long expires = fields.get("expires").asLong();
        CoordinatorRecord record = GroupCoordinatorRecordHelpers.newOffsetCommitRecord(
            fields.get("group").asText(), fields.get("topic").asText(), fields.get("partition").asInt(),
            new OffsetAndMetadata(
                fields.get("offset").asLong(), epoch < 0 ? OptionalInt.empty() : OptionalInt.of(epoch),
                fields.get("metadata").asText(), fields.get("committed").asLong(),
                expires < 0 ? OptionalLong.empty() : OptionalLong.of(expires),
                Uuid.fromString(fields.get("topic_id").asText())));
        GroupCoordinatorRecordSerde serde = new GroupCoordinatorRecordSerde();
        return hex(serde.serializeKey(record)) + "\t" + hex(serde.serializeValue(record));
    }

    private static String loaded(byte[] key, byte[] value) throws Exception {
        TransactionLog.TxnRecord record =
            (TransactionLog.TxnRecord) TransactionLog.read(ByteBuffer.wrap(key), ByteBuffer.wrap(value));
        TransactionMetadata metadata = record.metadata();
        return JSON.writeValueAsString(JSON.createObjectNode()
            .put("id", record.transactionId())
            .put("producer_id", metadata.producerId())
            .put("previous_producer_id", metadata.prevProducerId())
            .put("producer_epoch", metadata.producerEpoch())
            .put("timeout", metadata.txnTimeoutMs())
            .put("state", metadata.state().id())
            .put("partitions", metadata.topicPartitions().stream().map(TopicPartition::toString).sorted()
                .collect(Collectors.joining(" ")))
            .put("started", metadata.txnStartTimestamp())
            .put("updated", metadata.txnLastUpdateTimestamp())
            .put("client_version", metadata.clientTransactionVersion().featureLevel()));
    }
}
