import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.LogTruncationException;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;

/**
 * One consumer of a topic's partition 0, from its beginning. Its arguments are auto.offset.reset, the topic and the
 * bootstrap address. A line {"count": n} is answered with the values of the next n records, or with what is thrown before.
 */
public final class Reader {
    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] arguments) throws Exception {
        Properties settings = new Properties();
        settings.put("auto.offset.reset", arguments[0]);
        settings.put("bootstrap.servers", arguments[2]);
        settings.put("group.id", "java-reader");
        settings.put("enable.auto.commit", "false");
        settings.put("reconnect.backoff.ms", "10");
        settings.put("reconnect.backoff.max.ms", "100");
        TopicPartition partition = new TopicPartition(arguments[1], 0);
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        try (KafkaConsumer<String, String> consumer =
                new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer())) {
            consumer.assign(List.of(partition));
            consumer.seek(partition, 0);
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                System.out.println(read(consumer, partition, JSON.readTree(line).get("count").asInt()));
            }
        }
    }

    private static String read(KafkaConsumer<String, String> consumer, TopicPartition partition, int count) throws Exception {
        ObjectNode answer = JSON.createObjectNode();
        ArrayNode values = answer.putArray("values");
        try {
            while (values.size() < count) {
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(100))) {
                    values.add(record.value());
                }
            }
        } catch (LogTruncationException wrong) {
            answer.put("error", wrong.getClass().getSimpleName());
            answer.put("position", wrong.offsetOutOfRangePartitions().get(partition));
            answer.put("divergent", wrong.divergentOffsets().get(partition).offset());
        } catch (KafkaException wrong) {
            answer.put("error", wrong.toString());
        }
        return JSON.writeValueAsString(answer);
    }
}
