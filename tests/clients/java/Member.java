import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.regex.Pattern;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.clients.consumer.RoundRobinAssignor;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.clients.consumer.SubscriptionPattern;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Configurable;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.RebalanceInProgressException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** A member of a group on Java's kafka-clients; tests/rebalance/members.py describes its lines. */
public final class Member implements ConsumerRebalanceListener {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final PrintStream LINES = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    private static final Duration POLL_TIME = Duration.ofMillis(50);
    private static final Map<String, String> ASSIGNORS = Map.of(
        "range", RangeAssignor.class.getName(),
        "roundrobin", RoundRobinAssignor.class.getName(),
        "sticky", StickyAssignor.class.getName(),
        "cooperative-sticky", CooperativeStickyAssignor.class.getName(),
        "priority", PriorityAssignor.class.getName());

    private final KafkaConsumer<byte[], byte[]> consumer;
    // What was read and is not committed: a cooperative member reads on while its commits are refused.
    private final Map<TopicPartition, OffsetAndMetadata> unsaved = new HashMap<>();

    private Member(JsonNode options) {
        consumer = new KafkaConsumer<>(settings(options), new ByteArrayDeserializer(), new ByteArrayDeserializer());
        if (options.get("pattern").isNull()) {
            List<String> topics = new ArrayList<>();
            options.get("topics").forEach(topic -> topics.add(topic.asText()));
            consumer.subscribe(topics, this);
        } else if (options.get("protocol").asText().equals("consumer")) {
            consumer.subscribe(new SubscriptionPattern(options.get("pattern").asText()), this);
        } else {
            consumer.subscribe(Pattern.compile(options.get("pattern").asText()), this);
        }
    }

    private static Properties settings(JsonNode options) {
        Properties chosen = new Properties();
        chosen.put("bootstrap.servers", options.get("bootstrap").asText());
        chosen.put("group.id", options.get("group").asText());
        chosen.put("client.id", options.get("name").asText());
        chosen.put("group.protocol", options.get("protocol").asText());
        chosen.put("auto.offset.reset", "earliest");
        chosen.put("enable.auto.commit", "false");
        chosen.put("fetch.max.wait.ms", "200");
        chosen.put("metadata.max.age.ms", options.get("metadata_age_ms").asText());
        if (!options.get("instance").isNull()) {
            chosen.put("group.instance.id", options.get("instance").asText());
        }
        if (options.get("protocol").asText().equals("consumer")) {
            chosen.put("group.remote.assignor", options.get("assignors").get(0).asText());
        } else {
            List<String> classes = new ArrayList<>();
            options.get("assignors").forEach(name -> classes.add(ASSIGNORS.get(name.asText())));
            chosen.put("partition.assignment.strategy", classes);
            chosen.put("session.timeout.ms", options.get("session_timeout_ms").asText());
            chosen.put("heartbeat.interval.ms", options.get("heartbeat_ms").asText());
            chosen.put("priority", options.get("priority").asText());
        }
        return chosen;
    }

    private static synchronized void tell(String event, String field, ArrayNode content) {
        ObjectNode line = JSON.createObjectNode();
        line.put("event", event);
        line.put("at_us", ChronoUnit.MICROS.between(Instant.EPOCH, Instant.now()));
        line.set(field, content);
        LINES.println(line);
    }

    private static void tellPartitions(String event, Collection<TopicPartition> partitions) {
        ArrayNode ids = JSON.createArrayNode();
        partitions.forEach(each -> ids.addArray().add(each.topic()).add(each.partition()));
        tell(event, "partitions", ids);
    }

    @Override
    public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
        tellPartitions("assigned", partitions);
    }

    @Override
    public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
        save();
        tellPartitions("revoked", partitions);
    }

    @Override
    public void onPartitionsLost(Collection<TopicPartition> partitions) {
        unsaved.keySet().removeAll(partitions);
        tellPartitions("lost", partitions);
    }

    private void readAndCommit() {
        ConsumerRecords<byte[], byte[]> records = consumer.poll(POLL_TIME);
        if (!records.isEmpty()) {
            ArrayNode spans = JSON.createArrayNode();
            for (TopicPartition each : records.partitions()) {
                List<ConsumerRecord<byte[], byte[]>> read = records.records(each);
                long last = read.get(read.size() - 1).offset();
                spans.addArray().add(each.topic()).add(each.partition()).add(read.get(0).offset()).add(last);
                unsaved.put(each, new OffsetAndMetadata(last + 1));
            }
            tell("read", "spans", spans);
        }
        save();
    }

    private void save() {
        if (unsaved.isEmpty()) {
            return;
        }
        try {
            consumer.commitSync(unsaved);
            ArrayNode offsets = JSON.createArrayNode();
            unsaved.forEach((each, to) -> offsets.addArray().add(each.topic()).add(each.partition()).add(to.offset()));
            tell("committed", "offsets", offsets);
            unsaved.clear();
        } catch (RebalanceInProgressException expected) {
            // tried again after the next poll, or when a partition is given up
        } catch (KafkaException failure) {
            tell("failed", "message", JSON.createArrayNode().add("commit").add(failure.toString()));
            unsaved.clear();
        }
    }

    public static void main(String[] args) throws Exception {
        System.setOut(System.err); // whatever a logger prints must not get between the lines
        Member member = new Member(JSON.readTree(args[0]));
        AtomicBoolean isEnded = new AtomicBoolean();
        Thread input = new Thread(() -> {
            try {
                System.in.readAllBytes();
            } catch (IOException ignored) {
                // an input that fails has ended
            }
            isEnded.set(true);
        });
        input.setDaemon(true);
        input.start();
        while (!isEnded.get()) {
            member.readAndCommit();
        }
        member.consumer.close();
    }

    /** An assignor that no library has: the member that names the highest number gets everything. */
    public static final class PriorityAssignor implements ConsumerPartitionAssignor, Configurable {
        private String priority;

        @Override
        public void configure(Map<String, ?> configs) {
            priority = String.valueOf(configs.get("priority"));
        }

        @Override
        public String name() {
            return "priority";
        }

        @Override
        public ByteBuffer subscriptionUserData(Set<String> topics) {
            return StandardCharsets.UTF_8.encode(priority);
        }

        @Override
        public GroupAssignment assign(Cluster metadata, GroupSubscription group) {
            Map<String, Subscription> members = group.groupSubscription();
            String best = members.keySet().stream()
                .max(Comparator.comparingInt(id -> number(members.get(id)))).orElseThrow();
            Map<String, Assignment> assignments = new HashMap<>();
            members.keySet().forEach(id -> assignments.put(id, new Assignment(List.of())));
            List<TopicPartition> everything = new ArrayList<>();
            members.values().stream().flatMap(each -> each.topics().stream()).distinct()
                .flatMap(topic -> metadata.partitionsForTopic(topic).stream())
                .forEach(each -> everything.add(new TopicPartition(each.topic(), each.partition())));
            assignments.put(best, new Assignment(everything));
            return new GroupAssignment(assignments);
        }

        private static int number(Subscription subscription) {
            return Integer.parseInt(StandardCharsets.UTF_8.decode(subscription.userData().duplicate()).toString());
        }
    }
}
