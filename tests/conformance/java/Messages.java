import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import org.apache.kafka.common.message.ApiMessageType.ListenerType;
import org.apache.kafka.common.message.ApiVersionsResponseData.ApiVersion;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.protocol.Readable;
import org.apache.kafka.common.requests.RequestHeader;
import org.apache.kafka.common.requests.ResponseHeader;

/**
 * Kafka's generated request and response classes, asked line by line; fields are separated by tabs, bytes are
 * hexadecimal. Each line is answered by one, which begins with "error" where Kafka throws.
 *
 *   write CLASS VERSION JSON        the bytes of the message
 *   change CLASS FROM TO JSON       read in one version, the bytes of the message in another
 *   read CLASS VERSION BYTES        how many bytes were left over
 *   again CLASS VERSION BYTES       read and written, and how many bytes were left over
 *   request BYTES                   the header of a request: key, version, correlation id, client, bytes left
 *   response VERSION BYTES          the header of a response: correlation id, bytes left
 *   announced KEY                   the first and the last version that a broker announces
 */
final class Messages {
    private static final HexFormat HEX = HexFormat.of();
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final String PACKAGE = "org.apache.kafka.common.message.";

    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream output = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        for (String line; (line = lines.readLine()) != null; )
            output.println(answer(line.split("\t", -1)));
    }

    private static String answer(String[] words) throws Exception {
        try {
            return switch (words[0]) {
                case "write" -> hex(message(words, words[3]), Short.parseShort(words[2]));
                case "change" -> hex(message(words, words[4]), Short.parseShort(words[3]));
                case "read" -> {
                    ByteBuffer bytes = bytes(words[3]);
                    read(words, bytes);
                    yield Integer.toString(bytes.remaining());
                }
                case "again" -> {
                    ByteBuffer bytes = bytes(words[3]);
                    String written = hex(read(words, bytes), Short.parseShort(words[2]));
                    yield written + "\t" + bytes.remaining();
                }
                case "request" -> request(bytes(words[1]));
                case "announced" -> announced(Short.parseShort(words[1]));
                case "response" -> response(Short.parseShort(words[1]), bytes(words[2]));
                default -> throw new IllegalArgumentException(words[0]);
            };
        } catch (InvocationTargetException error) {
            return "error " + error.getCause();
        } catch (RuntimeException error) {
            return "error " + error;
        }
    }

    private static ByteBuffer bytes(String word) {
        return ByteBuffer.wrap(HEX.parseHex(word));
    }

    private static String hex(Message message, short version) {
        return HEX.formatHex(MessageUtil.toByteBufferAccessor(message, version).buffer().array());
    }

    private static Message message(String[] words, String json) throws Exception {
        Class<?> converter = Class.forName(PACKAGE + words[1] + "DataJsonConverter");
        return (Message) converter.getMethod("read", JsonNode.class, short.class)
            .invoke(null, JSON.readTree(json), Short.parseShort(words[2]));
    }

    private static Message read(String[] words, ByteBuffer bytes) throws Exception {
        Class<?> type = Class.forName(PACKAGE + words[1] + "Data");
        return (Message) type.getConstructor(Readable.class, short.class)
            .newInstance(new ByteBufferAccessor(bytes), Short.parseShort(words[2]));
    }

    private static String request(ByteBuffer bytes) {
        RequestHeader header = RequestHeader.parse(bytes);
        return header.apiKey().id + "\t" + header.apiVersion() + "\t" + header.correlationId() + "\t"
            + header.clientId() + "\t" + bytes.remaining();
    }

    private static String announced(short key) {
        ApiVersion found = ApiKeys.forId(key).toApiVersionForApiResponse(false, ListenerType.BROKER).get();
        return found.minVersion() + "\t" + found.maxVersion();
    }

    private static String response(short version, ByteBuffer bytes) {
        ResponseHeader header = ResponseHeader.parse(bytes, version);
        return header.correlationId() + "\t" + bytes.remaining();
    }
}
