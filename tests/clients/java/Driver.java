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
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.ListOffsetsResult.ListOffsetsResultInfo;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.TopicPartitionInfo;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.ApiException;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Java's kafka-clients behind the test clients' JSON lines; tests/clients/drivers.py describes the operations. */
public final class Driver {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final long CONSUME_MS_MAX = 15_000;

    private final String bootstrap;
    private final Admin admin;
    private final KafkaConsumer<byte[], byte[]> consumer;
    private final Map<String, KafkaProducer<byte[], byte[]>> producers = new HashMap<>();

    private Driver(String bootstrap) {
        this.bootstrap = bootstrap;
        Properties config = new Properties();
        config.put("bootstrap.servers", bootstrap);
        this.admin = Admin.create(config);
        this.consumer = newConsumer(bootstrap);
    }

    public static void main(String[] args) throws Exception {
        PrintStream replies = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        System.setOut(System.err); // whatever a logger prints must not get between the replies
        Driver driver = new Driver(args[0]);
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            ObjectNode reply = JSON.createObjectNode();
            try {
                reply.set("ok", driver.perform(JSON.readTree(line)));
            } catch (Exception failure) {
                reply.set("error", describe(failure));
            }
            replies.println(JSON.writeValueAsString(reply));
        }
        driver.producers.values().forEach(producer -> producer.close(Duration.ofSeconds(1)));
        driver.consumer.close(Duration.ofSeconds(1));
        driver.admin.close(Duration.ofSeconds(1));
    }

    private ObjectNode perform(JsonNode request) throws Exception {
        String op = request.get("op").asText();
        return switch (op) {
            case "produce" -> produce(request);
            case "consume" -> consume(request);
            case "list_offset" -> listOffset(request);
            case "create_topic" -> createTopic(request);
            case "delete_topic" -> deleteTopic(request);
            case "create_partitions" -> createPartitions(request);
            case "describe_topic" -> describeTopic(request);
            case "list_topics" -> listTopics();
            case "describe_configs" -> describeConfigs(request);
            case "alter_configs" -> alterConfigs(request);
            case "delete_records" -> deleteRecords(request);
            case "describe_cluster" -> describeCluster();
            default -> throw new IllegalArgumentException("unknown operation " + op);
        };
    }

    private ObjectNode produce(JsonNode request) throws Exception {
        KafkaProducer<byte[], byte[]> producer = producerFor(request);
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        for (JsonNode record : request.get("records")) {
            sent.add(producer.send(producerRecord(request.get("topic").asText(), record)));
        }
        producer.flush();
        ObjectNode reply = JSON.createObjectNode();
        ArrayNode offsets = reply.putArray("offsets");
        for (Future<RecordMetadata> future : sent) {
            offsets.add(future.get().offset());
        }
        return reply;
    }

    private KafkaProducer<byte[], byte[]> producerFor(JsonNode request) {
        String acks = request.get("acks").asText();
        String codec = request.get("codec").asText();
        boolean idempotent = request.get("idempotent").asBoolean();
        return producers.computeIfAbsent(acks + codec + idempotent, ignored -> {
            Properties config = new Properties();
            config.put("bootstrap.servers", bootstrap);
            config.put("acks", acks);
            config.put("compression.type", codec);
            config.put("enable.idempotence", String.valueOf(idempotent));
            config.put("linger.ms", "20");
            config.put("max.request.size", String.valueOf(16 << 20));
            config.put("max.block.ms", "4000");
            config.put("request.timeout.ms", "10000");
            config.put("delivery.timeout.ms", "20000");
            return new KafkaProducer<>(config, new ByteArraySerializer(), new ByteArraySerializer());
        });
    }

    private static ProducerRecord<byte[], byte[]> producerRecord(String topic, JsonNode record) {
        List<Header> headers = new ArrayList<>();
        for (JsonNode header : record.get("headers")) {
            headers.add(new RecordHeader(header.get(0).asText(), bytes(header.get(1))));
        }
        JsonNode timestamp = record.get("timestamp");
        return new ProducerRecord<>(topic, record.get("partition").asInt(), timestamp.isNull() ? null : timestamp.asLong(),
            bytes(record.get("key")), bytes(record.get("value")), headers);
    }

    private ObjectNode consume(JsonNode request) {
        int count = request.get("count").asInt();
        TopicPartition partition = partitionOf(request);
        ObjectNode reply = JSON.createObjectNode();
        ArrayNode records = reply.putArray("records");
        consumer.assign(List.of(partition));
        consumer.seek(partition, request.get("offset").asLong());
        long deadline = System.currentTimeMillis() + CONSUME_MS_MAX;
        while (records.size() < count) {
            if (System.currentTimeMillis() > deadline) {
                throw new TimeoutException("read " + records.size() + " of " + count + " records");
            }
            for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(500))) {
                if (records.size() < count) {
                    records.add(consumed(record));
                }
            }
        }
        return reply;
    }

    /** One consumer for all reading, so that partitions come and go in one fetch session. */
    private static KafkaConsumer<byte[], byte[]> newConsumer(String bootstrap) {
        Properties config = new Properties();
        config.put("bootstrap.servers", bootstrap);
        config.put("auto.offset.reset", "none");
        config.put("enable.auto.commit", "false");
        config.put("allow.auto.create.topics", "false");
        config.put("fetch.max.wait.ms", "50");
        return new KafkaConsumer<>(config, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    private static ObjectNode consumed(ConsumerRecord<byte[], byte[]> record) {
        ObjectNode node = JSON.createObjectNode();
        node.put("offset", record.offset());
        node.put("timestamp", record.timestamp());
        node.put("key", text(record.key()));
        node.put("value", text(record.value()));
        ArrayNode headers = node.putArray("headers");
        for (Header header : record.headers()) {
            headers.addArray().add(header.key()).add(text(header.value()));
        }
        return node;
    }

    private ObjectNode listOffset(JsonNode request) throws Exception {
        TopicPartition partition = partitionOf(request);
        JsonNode at = request.get("at");
        OffsetSpec spec = switch (at.asText()) {
            case "earliest" -> OffsetSpec.earliest();
            case "latest" -> OffsetSpec.latest();
            case "max_timestamp" -> OffsetSpec.maxTimestamp();
            default -> OffsetSpec.forTimestamp(at.asLong());
        };
        ListOffsetsResultInfo found = admin.listOffsets(Map.of(partition, spec)).partitionResult(partition).get();
        return JSON.createObjectNode().put("offset", found.offset());
    }

    private ObjectNode createTopic(JsonNode request) throws Exception {
        Map<String, String> configs = new HashMap<>();
        request.get("configs").fields().forEachRemaining(entry -> configs.put(entry.getKey(), entry.getValue().asText()));
        NewTopic topic = new NewTopic(request.get("topic").asText(), Optional.of(request.get("partitions").asInt()),
            Optional.of((short) request.get("replication_factor").asInt()));
        admin.createTopics(List.of(topic.configs(configs))).all().get();
        return JSON.createObjectNode();
    }

    private ObjectNode deleteTopic(JsonNode request) throws Exception {
        admin.deleteTopics(List.of(request.get("topic").asText())).all().get();
        return JSON.createObjectNode();
    }

    private ObjectNode createPartitions(JsonNode request) throws Exception {
        NewPartitions total = NewPartitions.increaseTo(request.get("total").asInt());
        admin.createPartitions(Map.of(request.get("topic").asText(), total)).all().get();
        return JSON.createObjectNode();
    }

    private ObjectNode describeTopic(JsonNode request) throws Exception {
        String topic = request.get("topic").asText();
        ObjectNode reply = JSON.createObjectNode();
        ArrayNode partitions = reply.putArray("partitions");
        for (TopicPartitionInfo info : admin.describeTopics(Set.of(topic)).allTopicNames().get().get(topic).partitions()) {
            partitions.addObject().put("id", info.partition()).put("leader", info.leader().id());
        }
        return reply;
    }

    private ObjectNode listTopics() throws Exception {
        ObjectNode reply = JSON.createObjectNode();
        ArrayNode topics = reply.putArray("topics");
        admin.listTopics().names().get().forEach(topics::add);
        return reply;
    }

    private ObjectNode describeConfigs(JsonNode request) throws Exception {
        ConfigResource resource = resourceOf(request);
        ObjectNode reply = JSON.createObjectNode();
        ObjectNode configs = reply.putObject("configs");
        for (ConfigEntry entry : admin.describeConfigs(List.of(resource)).all().get().get(resource).entries()) {
            configs.put(entry.name(), entry.value());
        }
        return reply;
    }

    private ObjectNode alterConfigs(JsonNode request) throws Exception {
        List<AlterConfigOp> changes = new ArrayList<>();
        request.get("set").fields().forEachRemaining(entry -> changes.add(
            new AlterConfigOp(new ConfigEntry(entry.getKey(), entry.getValue().asText()), AlterConfigOp.OpType.SET)));
        admin.incrementalAlterConfigs(Map.of(resourceOf(request), changes)).all().get();
        return JSON.createObjectNode();
    }

    private ObjectNode deleteRecords(JsonNode request) throws Exception {
        TopicPartition partition = partitionOf(request);
        RecordsToDelete before = RecordsToDelete.beforeOffset(request.get("before").asLong());
        long low = admin.deleteRecords(Map.of(partition, before)).lowWatermarks().get(partition).get().lowWatermark();
        return JSON.createObjectNode().put("low_watermark", low);
    }

    private ObjectNode describeCluster() throws Exception {
        ObjectNode reply = JSON.createObjectNode();
        var cluster = admin.describeCluster();
        reply.put("controller", cluster.controller().get().id());
        reply.put("cluster_id", cluster.clusterId().get());
        ArrayNode brokers = reply.putArray("brokers");
        for (Node node : cluster.nodes().get()) {
            brokers.addObject().put("id", node.id()).put("host", node.host()).put("port", node.port());
        }
        return reply;
    }

    private static TopicPartition partitionOf(JsonNode request) {
        return new TopicPartition(request.get("topic").asText(), request.get("partition").asInt());
    }

    private static ConfigResource resourceOf(JsonNode request) {
        boolean topic = request.get("resource").asText().equals("topic");
        return new ConfigResource(topic ? ConfigResource.Type.TOPIC : ConfigResource.Type.BROKER, request.get("name").asText());
    }

    private static byte[] bytes(JsonNode base64) {
        return base64.isNull() ? null : Base64.getDecoder().decode(base64.asText());
    }

    private static String text(byte[] bytes) {
        return bytes == null ? null : Base64.getEncoder().encodeToString(bytes);
    }

    private static ObjectNode describe(Throwable failure) {
        Throwable cause = failure;
        while (cause.getCause() != null && !(cause instanceof ApiException)
            && (cause instanceof ExecutionException || cause instanceof CompletionException || cause instanceof KafkaException)) {
            cause = cause.getCause();
        }
        ObjectNode error = JSON.createObjectNode();
        error.put("code", Errors.forException(cause).code());
        error.put("name", cause.getClass().getSimpleName());
        error.put("message", String.valueOf(cause.getMessage()));
        return error;
    }
}
