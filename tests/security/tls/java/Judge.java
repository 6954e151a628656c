import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.security.cert.X509Certificate;
import java.util.Collections;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLParameters;
import javax.net.ssl.SSLSocket;
import javax.net.ssl.TrustManagerFactory;
import javax.security.auth.x500.X500Principal;
import org.apache.kafka.common.config.types.Password;
import org.apache.kafka.common.security.ssl.DefaultSslEngineFactory;
import org.apache.kafka.common.security.ssl.SslPrincipalMapper;

/** What Java and Apache Kafka's own classes say; text comes and goes as hex of UTF-8, a line for each question. */
public class Judge {
    static final HexFormat HEX = HexFormat.of();

    static String text(String hex) {
        return new String(HEX.parseHex(hex), StandardCharsets.UTF_8);
    }

    static String hex(String text) {
        return "=" + HEX.formatHex(text.getBytes(StandardCharsets.UTF_8));
    }

    static String map(String[] parts) {
        try {
            return hex(SslPrincipalMapper.fromRules(text(parts[0])).getName(text(parts[1])));
        } catch (IOException none) {
            return "none";
        }
    }

    static String name(String[] parts) {
        return hex(new X500Principal(HEX.parseHex(parts[0])).getName());
    }

    public static void main(String[] arguments) throws Exception {
        if (arguments[0].equals("talk")) {
            talk(arguments);
            return;
        }
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] parts = line.split(" ", -1);
            System.out.println(arguments[0].equals("map") ? map(parts) : name(parts));
        }
    }

    /** talk HOST PORT BYTES key=value...: with the stores as Kafka reads them; sends that many bytes and wants them back. */
    static void talk(String[] arguments) throws Exception {
        Map<String, Object> configs = new HashMap<>();
        configs.put("ssl.protocol", "TLSv1.3");
        configs.put("ssl.cipher.suites", List.of());
        configs.put("ssl.enabled.protocols", List.of("TLSv1.2", "TLSv1.3"));
        for (int i = 4; i < arguments.length; i++) {
            String[] pair = arguments[i].split("=", 2);
            boolean secret = pair[0].endsWith("password") || pair[0].endsWith(".key") || pair[0].endsWith(".chain");
            configs.put(pair[0], secret ? new Password(pair[1]) : pair[1]);
        }
        DefaultSslEngineFactory factory = new DefaultSslEngineFactory();
        factory.configure(configs);
        KeyManagerFactory keys = KeyManagerFactory.getInstance("SunX509");
        Password password = (Password) configs.get("ssl.keystore.password");
        if (factory.keystore() != null) {
            String alias = Collections.list(factory.keystore().aliases()).get(0);
            X509Certificate own = (X509Certificate) factory.keystore().getCertificate(alias);
            System.out.println("own " + own.getSubjectX500Principal().getName());
        }
        keys.init(factory.keystore(), password == null ? null : password.value().toCharArray());
        TrustManagerFactory trust = TrustManagerFactory.getInstance("PKIX");
        trust.init(factory.truststore());
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(keys.getKeyManagers(), trust.getTrustManagers(), null);
        byte[] sent = new byte[Integer.parseInt(arguments[3])];
        for (int i = 0; i < sent.length; i++) sent[i] = (byte) (i * 31);
        try (SSLSocket socket =
                (SSLSocket) context.getSocketFactory().createSocket(arguments[1], Integer.parseInt(arguments[2]))) {
            SSLParameters parameters = socket.getSSLParameters();
            parameters.setEndpointIdentificationAlgorithm("https");
            socket.setSSLParameters(parameters);
            socket.startHandshake();
            new Thread(() -> {
                try {
                    socket.getOutputStream().write(sent);
                } catch (IOException lost) {
                    System.out.println("lost " + lost);
                }
            }).start();
            byte[] back = socket.getInputStream().readNBytes(sent.length);
            System.out.println(java.util.Arrays.equals(sent, back) ? "same" : "different");
            X509Certificate peer = (X509Certificate) socket.getSession().getPeerCertificates()[0];
            System.out.println("peer " + peer.getSubjectX500Principal().getName());
            System.out.println("protocol " + socket.getSession().getProtocol());
        }
    }
}
