import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import javax.security.auth.callback.Callback;
import javax.security.auth.login.AppConfigurationEntry;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.errors.ApiException;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.security.auth.AuthenticateCallbackHandler;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerToken;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerTokenCallback;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** A session of Java's kafka-clients on a secured listener; tests/clients/sessions.py describes the requests. */
public final class Session {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final long STEP_MS_MAX = 20_000;
    private static final String MODULES = "org.apache.kafka.common.security.";

    /** Gives the token that stands in the JAAS configuration. */
    public static final class Token implements AuthenticateCallbackHandler {
        private String token;

        @Override
        public void configure(Map<String, ?> configs, String mechanism, List<AppConfigurationEntry> entries) {
            token = (String) entries.get(0).getOptions().get("token");
        }

        @Override
        public void handle(Callback[] callbacks) {
            for (Callback each : callbacks) {
                if (each instanceof OAuthBearerTokenCallback) {
                    ((OAuthBearerTokenCallback) each).token(new Bearer(token, System.currentTimeMillis()));
                }
            }
        }

        @Override
        public void close() {
        }
    }

    private record Bearer(String value, Long startTimeMs) implements OAuthBearerToken {
        @Override
        public Set<String> scope() {
            return Set.of();
        }

        @Override
        public long lifetimeMs() {
            return startTimeMs + 600_000;
        }

        @Override
        public String principalName() {
            return "whoever the token names";
        }
    }

    public static void main(String[] args) throws Exception {
        PrintStream replies = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        System.setOut(System.err); // whatever a logger prints must not get between the replies
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            ObjectNode reply = JSON.createObjectNode();
            try {
                reply.set("ok", session(JSON.readTree(line)));
            } catch (Exception failure) {
                reply.set("error", describe(failure));
            }
            replies.println(JSON.writeValueAsString(reply));
        }
    }

    private static Properties settings(JsonNode request) {
        Properties chosen = new Properties();
        String protocol = request.get("protocol").asText();
        chosen.put("bootstrap.servers", request.get("bootstrap").asText());
        chosen.put("security.protocol", protocol);
        if (protocol.contains("SSL")) {
            chosen.put("ssl.truststore.type", "PEM");
            chosen.put("ssl.truststore.location", request.get("trusted").asText());
        }
        if (!request.get("certificate").isNull()) {
            chosen.put("ssl.keystore.type", "PEM");
            chosen.put("ssl.keystore.location", request.get("certificate").asText());
        }
        if (!request.get("mechanism").isNull()) {
            logIn(chosen, request, request.get("mechanism").asText());
        }
        return chosen;
    }

    private static void logIn(Properties chosen, JsonNode request, String mechanism) {
        chosen.put("sasl.mechanism", mechanism);
        if (mechanism.equals("OAUTHBEARER")) {
            chosen.put("sasl.login.callback.handler.class", Token.class.getName());
            chosen.put("sasl.jaas.config", String.format("%soauthbearer.OAuthBearerLoginModule required token=\"%s\";",
                MODULES, request.get("token").asText()));
        } else {
            String module = mechanism.equals("PLAIN") ? "plain.PlainLoginModule" : "scram.ScramLoginModule";
            chosen.put("sasl.jaas.config", String.format("%s%s required username=\"%s\" password=\"%s\";",
                MODULES, module, request.get("user").asText(), request.get("password").asText()));
        }
    }

    private static KafkaProducer<String, String> newProducer(JsonNode request) {
        Properties config = settings(request);
        config.put("max.block.ms", String.valueOf(STEP_MS_MAX));
        config.put("request.timeout.ms", "10000");
        config.put("delivery.timeout.ms", String.valueOf(STEP_MS_MAX));
        return new KafkaProducer<>(config, new StringSerializer(), new StringSerializer());
    }

    private static KafkaConsumer<String, String> newConsumer(JsonNode request) {
        Properties config = settings(request);
        config.put("group.id", request.get("group").asText());
        config.put("auto.offset.reset", "earliest");
        config.put("enable.auto.commit", "false");
        config.put("fetch.max.wait.ms", "100");
        return new KafkaConsumer<>(config, new StringDeserializer(), new StringDeserializer());
    }

    private static ObjectNode session(JsonNode request) throws Exception {
        String topic = request.get("topic").asText();
        ObjectNode reply = JSON.createObjectNode();
        ArrayNode found = reply.putArray("read");
        try (KafkaProducer<String, String> producer = newProducer(request);
             KafkaConsumer<String, String> consumer = newConsumer(request)) {
            consumer.subscribe(List.of(topic));
            for (JsonNode values : request.get("batches")) {
                List<Future<RecordMetadata>> sent = new ArrayList<>();
                values.forEach(value -> sent.add(producer.send(new ProducerRecord<>(topic, value.asText()))));
                for (Future<RecordMetadata> each : sent) {
                    each.get();
                }
                read(consumer, found, found.size() + values.size());
                Thread.sleep(request.get("pause_ms").asLong());
            }
        }
        return reply;
    }

    private static void read(KafkaConsumer<String, String> consumer, ArrayNode found, int count) {
        long deadline = System.currentTimeMillis() + STEP_MS_MAX;
        while (found.size() < count) {
            if (System.currentTimeMillis() > deadline) {
                throw new TimeoutException("read " + found.size() + " of " + count + " records");
            }
            for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(500))) {
                found.add(record.value());
            }
        }
        consumer.commitSync();
    }

    private static ObjectNode describe(Throwable failure) {
        Throwable cause = failure;
        while (cause.getCause() != null && !(cause instanceof ApiException)
            && (cause instanceof ExecutionException || cause instanceof KafkaException)) {
            cause = cause.getCause();
        }
        ObjectNode error = JSON.createObjectNode();
        error.put("code", Errors.forException(cause).code());
        error.put("name", cause.getClass().getSimpleName());
        error.put("message", String.valueOf(cause.getMessage()));
        return error;
    }
}
