import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.coordinator.group.GroupConfig;
import org.apache.kafka.server.config.AbstractKafkaConfig;
import org.apache.kafka.server.config.DynamicBrokerConfig;
import org.apache.kafka.server.config.ServerTopicConfigSynonyms;
import org.apache.kafka.storage.internals.log.LogConfig;

/** Apache Kafka's own definitions: what they are, and what each makes of a text. */
public class ConfigOracle {
    public static void main(String[] arguments) throws Exception {
        ConfigDef topic = LogConfig.configDefCopy();
        ConfigDef broker = AbstractKafkaConfig.CONFIG_DEF;
        if (arguments[0].equals("list")) {
            list("topic", topic);
            list("broker", broker);
            list("group", GroupConfig.CONFIG_DEF);
            GroupConfig.ALL_GROUP_CONFIG_SYNONYMS.forEach((name, synonym) -> System.out.println(
                String.join("\t", "group-synonym", name, synonym.orElse(""))));
            ServerTopicConfigSynonyms.ALL_TOPIC_CONFIG_SYNONYMS.forEach((name, synonyms) -> System.out.println(
                String.join("\t", "synonym", name, String.join(" ", synonyms.stream().map(s -> s.name()).toList()))));
            System.out.println("dynamic\t" + String.join(" ", DynamicBrokerConfig.ALL_DYNAMIC_CONFIGS));
            return;
        }
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] fields = line.split("\t", -1);
            ConfigDef definitions = switch (fields[0]) {
                case "topic" -> topic;
                case "group" -> GroupConfig.CONFIG_DEF;
                default -> broker;
            };
            System.out.println(parse(definitions, fields[1], fields[2]));
        }
    }

    private static void list(String kind, ConfigDef definitions) {
        for (ConfigDef.ConfigKey key : definitions.configKeys().values()) {
            String text = key.hasDefault() ? ConfigDef.convertToString(key.defaultValue, key.type) : null;
            System.out.println(String.join("\t", kind, key.name, key.type.name(), text == null ? "\0" : text,
                String.valueOf(key.internalConfig)));
        }
    }

    private static String parse(ConfigDef definitions, String name, String text) {
        try {
            ConfigDef.ConfigKey key = definitions.configKeys().get(name);
            Object value = new ConfigDef().define(key).parse(Map.of(name, text)).get(name);
            return "ok\t" + ConfigDef.convertToString(value, key.type);
        } catch (org.apache.kafka.common.config.ConfigException wrong) {
            return "error\t" + wrong.getMessage();
        }
    }
}
