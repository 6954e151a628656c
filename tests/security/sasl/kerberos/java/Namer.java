import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import org.apache.kafka.common.security.kerberos.KerberosName;
import org.apache.kafka.common.security.kerberos.KerberosShortNamer;

/** What Apache Kafka's own class makes of a principal: a line for each question, all parts as hex of UTF-8. */
public class Namer {
    static final HexFormat HEX = HexFormat.of();

    static String text(String hex) {
        return new String(HEX.parseHex(hex), StandardCharsets.UTF_8);
    }

    static String name(String realm, String principal, List<String> rules) {
        try {
            String found = KerberosShortNamer.fromUnparsedRules(realm, rules).shortName(KerberosName.parse(principal));
            return "=" + HEX.formatHex(found.getBytes(StandardCharsets.UTF_8));
        } catch (Exception none) {
            return "none";
        }
    }

    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] parts = line.split(" ", -1);
            List<String> rules = new ArrayList<>();
            for (int i = 2; i < parts.length; i++) rules.add(text(parts[i]));
            System.out.println(name(text(parts[0]), text(parts[1]), rules));
        }
    }
}
