import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.util.HexFormat;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.protocol.Readable;

/** Lines of class, version and JSON to lines of hex and JSON, through the classes that Kafka generates. */
public class KafkaEncoder {
    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        PrintStream output = new PrintStream(System.out, true, "UTF-8");
        for (String line; (line = lines.readLine()) != null; ) {
            String[] parts = line.split("\t", 3);
            JsonNode json = new ObjectMapper().readTree(parts[2]);
            output.println(encode(parts[0], Short.parseShort(parts[1]), json));
        }
    }

    static String encode(String name, short version, JsonNode json) throws Exception {
        Class<?> converter = Class.forName(name + "JsonConverter");
        Message message = (Message) converter.getMethod("read", JsonNode.class, short.class)
            .invoke(null, json, version);
        ObjectSerializationCache cache = new ObjectSerializationCache();
        ByteBuffer buffer = ByteBuffer.allocate(message.size(cache, version));
        message.write(new ByteBufferAccessor(buffer), cache, version);
        buffer.flip();
        byte[] bytes = new byte[buffer.remaining()];
        buffer.get(bytes);
        Class<?> type = Class.forName(name);
        Object read = type.getConstructor(Readable.class, short.class)
            .newInstance(new ByteBufferAccessor(ByteBuffer.wrap(bytes)), version);
        Object written = converter.getMethod("write", type, short.class).invoke(null, read, version);
        return HexFormat.of().formatHex(bytes) + "\t" + written;
    }
}
