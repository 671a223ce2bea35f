import com.google.re2j.Pattern;
import com.google.re2j.PatternSyntaxException;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;

/**
 * Whether a pattern matches the whole of a text: lines of two words, hexadecimal UTF-16BE behind a colon,
 * answered by "true", "false" or "invalid".
 */
final class Patterns {
    public static void main(String[] arguments) throws IOException {
        InputStreamReader input = new InputStreamReader(System.in, StandardCharsets.US_ASCII);
        BufferedReader lines = new BufferedReader(input);
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ");
            System.out.println(answer(decoded(words[0]), decoded(words[1])));
        }
    }

    private static String answer(String pattern, String text) {
        try {
            return String.valueOf(Pattern.compile(pattern).matcher(text).matches());
        } catch (PatternSyntaxException error) {
            return "invalid";
        }
    }

    private static String decoded(String word) {
        return new String(HexFormat.of().parseHex(word.substring(1)), StandardCharsets.UTF_16BE);
    }
}
