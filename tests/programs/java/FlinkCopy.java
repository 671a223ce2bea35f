import java.io.File;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.Optional;
import java.util.stream.Stream;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.serialization.SimpleStringSchema;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.connector.base.DeliveryGuarantee;
import org.apache.flink.connector.kafka.sink.KafkaRecordSerializationSchema;
import org.apache.flink.connector.kafka.sink.KafkaSink;
import org.apache.flink.connector.kafka.sink.TransactionNamingStrategy;
import org.apache.flink.connector.kafka.source.KafkaSource;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;

/**
 * Copies a topic with Flink's source and its exactly-once sink. A start goes on from the last complete
 * checkpoint of the starts before it, whose prepared transactions the sink commits. Arguments: bootstrap
 * servers, topic, target, directory of checkpoints, strategy for transactional ids.
 */
public final class FlinkCopy {
    public static void main(String[] args) throws Exception {
        Path checkpoints = Path.of(args[3]);
        Files.createDirectories(checkpoints);
        Configuration config = new Configuration();
        config.setString("execution.checkpointing.interval", "500 ms");
        config.setString("execution.checkpointing.dir", checkpoints.toUri().toString());
        config.setString(
            "execution.checkpointing.externalized-checkpoint-retention", "RETAIN_ON_CANCELLATION");
        config.setString("execution.checkpointing.tolerable-failed-checkpoints", "100");
        config.setString("restart-strategy.type", "fixed-delay");
        config.setString("restart-strategy.fixed-delay.attempts", "100");
        config.setString("restart-strategy.fixed-delay.delay", "1 s");
        last(checkpoints).ifPresent(
            path -> config.setString("execution.state-recovery.path", path.toUri().toString()));
        StreamExecutionEnvironment flink = StreamExecutionEnvironment.createLocalEnvironment(2, config);
        KafkaSource<String> source = KafkaSource.<String>builder()
            .setBootstrapServers(args[0])
            .setTopics(args[1])
            .setGroupId("flink-copy")
            .setStartingOffsets(OffsetsInitializer.earliest())
            .setProperty("isolation.level", "read_committed")
            .setValueOnlyDeserializer(new SimpleStringSchema())
            .build();
        KafkaSink<String> sink = KafkaSink.<String>builder()
            .setBootstrapServers(args[0])
            .setRecordSerializer(KafkaRecordSerializationSchema.builder()
                .setTopic(args[2])
                .setValueSerializationSchema(new SimpleStringSchema())
                .build())
            .setDeliveryGuarantee(DeliveryGuarantee.EXACTLY_ONCE)
            .setTransactionalIdPrefix("flink-copy")
            .setTransactionNamingStrategy(TransactionNamingStrategy.valueOf(args[4]))
            .setProperty("transaction.timeout.ms", "60000")
            .build();
        flink.fromSource(source, WatermarkStrategy.noWatermarks(), "source").uid("source")
            .sinkTo(sink).uid("sink");
        flink.execute("flink-copy");
    }

    /** The newest checkpoint that is complete. */
    private static Optional<Path> last(Path checkpoints) throws Exception {
        try (Stream<Path> files = Files.walk(checkpoints)) {
            return files.filter(path -> path.endsWith("_metadata"))
                .map(Path::toFile)
                .max(Comparator.comparingLong(File::lastModified))
                .map(file -> file.toPath().getParent());
        }
    }
}
