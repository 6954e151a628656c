import io.confluent.kafka.schemaregistry.client.CachedSchemaRegistryClient;
import io.confluent.kafka.schemaregistry.client.rest.exceptions.RestClientException;
import io.confluent.kafka.serializers.KafkaAvroDeserializer;
import io.confluent.kafka.serializers.KafkaAvroSerializer;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.StringJoiner;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericData;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.SerializationException;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * What a Java application does with Confluent's serializers: write, evolve, be refused, and read all that is in the topic, which begins
 * with a record of somebody else. Arguments: the broker, the registry, the topic. Prints what it got as JSON.
 */
public final class Application {
    private static final Schema ORDER = order("");
    private static final Schema WITH_NOTE = order(", {\"name\":\"note\",\"type\":\"string\",\"default\":\"\"}");
    private static final Schema WITHOUT_DEFAULT = order(", {\"name\":\"sum\",\"type\":\"double\"}");
    private static final long READ_S_MAX = 30;

    public static void main(String[] arguments) throws Exception {
        String topic = arguments[2];
        Map<String, Object> settings = new HashMap<>();
        settings.put("bootstrap.servers", arguments[0]);
        settings.put("schema.registry.url", arguments[1]);
        settings.put("key.serializer", StringSerializer.class);
        settings.put("value.serializer", KafkaAvroSerializer.class);
        settings.put("key.deserializer", StringDeserializer.class);
        settings.put("value.deserializer", KafkaAvroDeserializer.class);
        int refused;
        try (KafkaProducer<String, Object> producer = new KafkaProducer<>(settings)) {
            send(producer, topic, new GenericData.Record(ORDER), 2);
            send(producer, topic, new GenericData.Record(WITH_NOTE), 3);
            refused = refusal(producer, topic);
        }
        Map<String, Object> latest = new HashMap<>(settings);
        latest.put("auto.register.schemas", false);
        latest.put("use.latest.version", true);
        try (KafkaProducer<String, Object> producer = new KafkaProducer<>(latest)) {
            send(producer, topic, new GenericData.Record(WITH_NOTE), 4);
        }
        CachedSchemaRegistryClient client = new CachedSchemaRegistryClient(arguments[1], 10);
        System.out.printf(
            "{\"refused\": %d, \"versions\": %s, \"compatible\": %s, \"read\": %s}%n",
            refused,
            client.getAllVersions(topic + "-value"),
            client.testCompatibility(topic + "-value", new io.confluent.kafka.schemaregistry.avro.AvroSchema(WITHOUT_DEFAULT)),
            read(settings, topic, 4));
    }

    private static Schema order(String more) {
        return new Schema.Parser().parse(
            "{\"type\":\"record\",\"name\":\"Order\",\"fields\":[{\"name\":\"id\",\"type\":\"long\"}" + more + "]}");
    }

    private static void send(KafkaProducer<String, Object> producer, String topic, GenericData.Record value, long id)
            throws Exception {
        value.put("id", id);
        if (value.getSchema() == WITH_NOTE) {
            value.put("note", "two coffees");
        }
        producer.send(new ProducerRecord<>(topic, 0, "java", value)).get();
    }

    private static int refusal(KafkaProducer<String, Object> producer, String topic) throws Exception {
        GenericData.Record value = new GenericData.Record(WITHOUT_DEFAULT);
        value.put("sum", 3.5);
        try {
            send(producer, topic, value, 9);
            return 0;
        } catch (SerializationException wrong) {
            return ((RestClientException) wrong.getCause()).getErrorCode();
        }
    }

    private static String read(Map<String, Object> settings, String topic, int count) {
        StringJoiner found = new StringJoiner(", ", "[", "]");
        try (KafkaConsumer<String, Object> consumer = new KafkaConsumer<>(settings)) {
            TopicPartition place = new TopicPartition(topic, 0);
            consumer.assign(List.of(place));
            consumer.seekToBeginning(List.of(place));
            long deadlineNs = System.nanoTime() + Duration.ofSeconds(READ_S_MAX).toNanos();
            for (int read = 0; read < count && System.nanoTime() < deadlineNs; ) {
                for (ConsumerRecord<String, Object> each : consumer.poll(Duration.ofMillis(500))) {
                    found.add(each.value().toString());
                    read++;
                }
            }
        }
        return found.toString();
    }
}
