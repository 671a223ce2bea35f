import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.Properties;
import java.util.TreeMap;

/** Loads property files: hexadecimal digits, one file a line, on stdin; their entries on stdout. */
public class LoadProperties {
    public static void main(String[] arguments) throws IOException {
        InputStreamReader stdin = new InputStreamReader(System.in, StandardCharsets.US_ASCII);
        BufferedReader input = new BufferedReader(stdin);
        StringBuilder output = new StringBuilder();
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            output.append(loaded(HexFormat.of().parseHex(line))).append('\n');
        }
        System.out.print(output);
    }

    private static String loaded(byte[] content) throws IOException {
        Properties properties = new Properties();
        try {
            properties.load(new ByteArrayInputStream(content));
        } catch (IllegalArgumentException error) {
            return "refused";
        }
        TreeMap<String, String> entries = new TreeMap<>();
        for (String name : properties.stringPropertyNames()) {
            entries.put(hex(name), hex(properties.getProperty(name)));
        }
        return entries.toString();
    }

    private static String hex(String text) {
        StringBuilder digits = new StringBuilder();
        for (char each : text.toCharArray()) {
            digits.append(String.format("%04x", (int) each));
        }
        return digits.toString();
    }
}
