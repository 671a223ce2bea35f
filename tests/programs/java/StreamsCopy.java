import java.time.Duration;
import java.util.Properties;
import java.util.regex.Pattern;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.KStream;

/**
 * Counts the records of each key in a state store, and writes each record with its count. The records go
 * through a repartition topic, the counts through a changelog topic. Arguments: bootstrap servers, topic,
 * target, directory of the state, processing guarantee.
 */
public final class StreamsCopy {
    private static final Pattern NUMBER = Pattern.compile("-?\\d+");

    public static void main(String[] args) {
        Properties config = new Properties();
        config.put("application.id", "streams-copy");
        config.put("bootstrap.servers", args[0]);
        config.put("state.dir", args[3]);
        config.put("processing.guarantee", args[4]);
        config.put("num.stream.threads", "2");
        config.put("statestore.cache.max.bytes", "0");
        config.put("default.key.serde", Serdes.StringSerde.class);
        config.put("default.value.serde", Serdes.StringSerde.class);
        config.put("consumer.auto.offset.reset", "earliest");
        config.put("consumer.isolation.level", "read_committed");
        config.put("consumer.session.timeout.ms", "6000");
        config.put("consumer.heartbeat.interval.ms", "1000");
        config.put("producer.transaction.timeout.ms", "10000");
        StreamsBuilder builder = new StreamsBuilder();
        KStream<String, String> input = builder.stream(args[1]);
        input.selectKey((key, value) -> "k" + numbers(value)[0] % 10)
            .groupByKey()
            .aggregate(() -> "", StreamsCopy::counted)
            .toStream()
            .to(args[2]);
        KafkaStreams streams = new KafkaStreams(builder.build(), config);
        streams.setUncaughtExceptionHandler(error -> {
            error.printStackTrace();
            return StreamThreadExceptionResponse.REPLACE_THREAD;
        });
        Runtime.getRuntime().addShutdownHook(new Thread(() -> streams.close(Duration.ofSeconds(20))));
        streams.start();
    }

    private static String counted(String key, String value, String before) {
        int count = before.isEmpty() ? 1 : numbers(before)[1] + 1;
        return "{\"id\": " + numbers(value)[0] + ", \"count\": " + count + "}";
    }

    private static int[] numbers(String json) {
        return NUMBER.matcher(json).results().map(found -> found.group())
            .mapToInt(Integer::parseInt).toArray();
    }
}
