import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.net.InetAddress;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.acl.AccessControlEntryFilter;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.internals.PluginMetricsImpl;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourcePatternFilter;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.metadata.authorizer.StandardAcl;
import org.apache.kafka.metadata.authorizer.StandardAuthorizer;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;

/** Answers questions about ACLs as Apache Kafka's own authorizer does: one line of tab-separated words each. */
public class AuthorizerOracle {
    private record Asker(KafkaPrincipal principal, InetAddress clientAddress) implements AuthorizableRequestContext {
        public String listenerName() { return "PLAINTEXT"; }
        public SecurityProtocol securityProtocol() { return SecurityProtocol.PLAINTEXT; }
        public int requestType() { return 0; }
        public int requestVersion() { return 0; }
        public String clientId() { return ""; }
        public int correlationId() { return 0; }
    }

    private final Map<Uuid, StandardAcl> acls = new HashMap<>();
    private StandardAuthorizer authorizer;
    private long nextId = 1;

    public static void main(String[] args) throws Exception {
        var in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        var out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        var oracle = new AuthorizerOracle();
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            var answer = oracle.answer(line.split("\t", -1));
            if (answer != null) out.println(answer);
        }
        out.flush();
    }

    private String answer(String[] words) throws Exception {
        switch (words[0]) {
            case "world":
                acls.clear();
                authorizer = new StandardAuthorizer();
                authorizer.withPluginMetrics(new PluginMetricsImpl(new Metrics(), Map.of()));
                authorizer.configure(Map.of(
                    "super.users", words[1], "allow.everyone.if.no.acl.found", words[2], "node.id", "1"));
                return null;
            case "acl":
                acls.put(new Uuid(0, nextId++), new StandardAcl(ResourceType.fromCode(Byte.parseByte(words[1])), words[2],
                    PatternType.fromCode(Byte.parseByte(words[3])), words[4], words[5],
                    AclOperation.fromCode(Byte.parseByte(words[6])), AclPermissionType.fromCode(Byte.parseByte(words[7]))));
                return null;
            case "loaded":
                authorizer.loadSnapshot(acls);
                authorizer.completeInitialLoad();
                return null;
            case "may":
                var pattern = new ResourcePattern(
                    ResourceType.fromCode(Byte.parseByte(words[5])), words[6], PatternType.LITERAL);
                var action = new Action(AclOperation.fromCode(Byte.parseByte(words[4])), pattern, 1, false, false);
                return authorizer.authorize(asker(words), List.of(action)).get(0).name();
            case "any":
                return authorizer.authorizeByResourceType(asker(words),
                    AclOperation.fromCode(Byte.parseByte(words[4])),
                    ResourceType.fromCode(Byte.parseByte(words[5]))).name();
            case "find":
                var found = 0;
                for (var ignored : authorizer.acls(filter(words))) found++;
                return Integer.toString(found);
            case "host":
                return InetAddress.getByName(words[1]).getHostAddress();
            default:
                throw new IllegalArgumentException(words[0]);
        }
    }

    private static Asker asker(String[] words) throws Exception {
        return new Asker(new KafkaPrincipal(words[1], words[2]), InetAddress.getByName(words[3]));
    }

    private static AclBindingFilter filter(String[] words) {
        return new AclBindingFilter(
            new ResourcePatternFilter(ResourceType.fromCode(Byte.parseByte(words[1])), orNull(words[2]),
                PatternType.fromCode(Byte.parseByte(words[3]))),
            new AccessControlEntryFilter(orNull(words[4]), orNull(words[5]),
                AclOperation.fromCode(Byte.parseByte(words[6])), AclPermissionType.fromCode(Byte.parseByte(words[7]))));
    }

    private static String orNull(String word) {
        return word.isEmpty() ? null : word;
    }
}
