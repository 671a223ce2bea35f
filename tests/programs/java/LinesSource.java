import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.connector.Task;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.source.ExactlyOnceSupport;
import org.apache.kafka.connect.source.SourceConnector;
import org.apache.kafka.connect.source.SourceRecord;
import org.apache.kafka.connect.source.SourceTask;

/** A source connector of Kafka Connect: each line of a file becomes a record. Its offset is the next line. */
public final class LinesSource extends SourceConnector {
    private static final ConfigDef CONFIG = new ConfigDef()
        .define("file", ConfigDef.Type.STRING, ConfigDef.Importance.HIGH, "the file")
        .define("topic", ConfigDef.Type.STRING, ConfigDef.Importance.HIGH, "the target");
    private Map<String, String> config;

    @Override
    public String version() {
        return "1";
    }

    @Override
    public ConfigDef config() {
        return CONFIG;
    }

    @Override
    public ExactlyOnceSupport exactlyOnceSupport(Map<String, String> connectorConfig) {
        return ExactlyOnceSupport.SUPPORTED;
    }

    @Override
    public void start(Map<String, String> connectorConfig) {
        config = connectorConfig;
    }

    @Override
    public Class<? extends Task> taskClass() {
        return LinesTask.class;
    }

    @Override
    public List<Map<String, String>> taskConfigs(int maxTasks) {
        return List.of(config);
    }

    @Override
    public void stop() {
    }

    /** Reads the file from the offset of the last committed transaction on. */
    public static final class LinesTask extends SourceTask {
        private static final int BATCH = 20;
        private Path file;
        private String topic;
        private int next;

        @Override
        public String version() {
            return "1";
        }

        @Override
        public void start(Map<String, String> config) {
            file = Path.of(config.get("file"));
            topic = config.get("topic");
            Map<String, Object> offset = context.offsetStorageReader().offset(partition());
            next = offset == null ? 0 : ((Number) offset.get("line")).intValue();
        }

        @Override
        public List<SourceRecord> poll() throws InterruptedException {
            List<String> lines = completeLines();
            List<SourceRecord> records = new ArrayList<>();
            while (next < lines.size() && records.size() < BATCH) {
                String line = lines.get(next++);
                Map<String, Integer> offset = Map.of("line", next);
                records.add(new SourceRecord(partition(), offset, topic, Schema.STRING_SCHEMA, line));
            }
            if (records.isEmpty()) {
                Thread.sleep(20);
                return null;
            }
            return records;
        }

        /** All lines with their end; the last one may be half written. */
        private List<String> completeLines() {
            try {
                String text = Files.readString(file, StandardCharsets.UTF_8);
                return text.substring(0, text.lastIndexOf('\n') + 1).lines().toList();
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            }
        }

        private Map<String, String> partition() {
            return Map.of("file", file.toString());
        }

        @Override
        public void stop() {
        }
    }
}
