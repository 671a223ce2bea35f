import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import org.apache.kafka.common.internals.Topic;

/** Whether a topic may have a name: lines of hexadecimal UTF-16BE, answered by "true" or "false". */
final class TopicNames {
    public static void main(String[] arguments) throws IOException {
        InputStreamReader input = new InputStreamReader(System.in, StandardCharsets.US_ASCII);
        BufferedReader lines = new BufferedReader(input);
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            byte[] name = HexFormat.of().parseHex(line);
            System.out.println(Topic.isValid(new String(name, StandardCharsets.UTF_16BE)));
        }
    }
}
