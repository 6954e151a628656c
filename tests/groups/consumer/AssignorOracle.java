import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.ConsumerGroupPartitionAssignor;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.apache.kafka.coordinator.group.api.assignor.SubscriptionType;
import org.apache.kafka.coordinator.group.assignor.RangeAssignor;
import org.apache.kafka.coordinator.group.assignor.UniformAssignor;
import org.apache.kafka.coordinator.group.modern.Assignment;
import org.apache.kafka.coordinator.group.modern.GroupSpecImpl;
import org.apache.kafka.coordinator.group.modern.MemberSubscriptionAndAssignmentImpl;

/** What Apache Kafka's own assignors make of groups: a list of them as JSON in, their answers as JSON out. */
public class AssignorOracle {
    public static void main(String[] arguments) throws Exception {
        ObjectMapper json = new ObjectMapper();
        for (JsonNode group : json.readTree(System.in)) {
            System.out.println(json.writeValueAsString(assign(group)));
        }
    }

    private static Map<String, Map<String, Set<Integer>>> assign(JsonNode group) {
        Map<Uuid, Integer> counts = new HashMap<>();
        group.get("topics").fields().forEachRemaining(each ->
            counts.put(Uuid.fromString(each.getKey()), each.getValue().asInt()));
        Map<String, MemberSubscriptionAndAssignmentImpl> members = new HashMap<>();
        Map<Uuid, Map<Integer, String>> owners = new HashMap<>();
        Set<Set<Uuid>> subscriptions = new HashSet<>();
        for (JsonNode member : group.get("members")) {
            Set<Uuid> subscribed = new HashSet<>();
            member.get("subscribed").forEach(each -> subscribed.add(Uuid.fromString(each.asText())));
            subscriptions.add(subscribed);
            Map<Uuid, Set<Integer>> owned = new HashMap<>();
            member.get("owned").fields().forEachRemaining(each -> each.getValue().forEach(partition -> {
                Uuid topic = Uuid.fromString(each.getKey());
                owned.computeIfAbsent(topic, __ -> new HashSet<>()).add(partition.asInt());
                owners.computeIfAbsent(topic, __ -> new HashMap<>()).put(partition.asInt(), member.get("id").asText());
            }));
            members.put(member.get("id").asText(), new MemberSubscriptionAndAssignmentImpl(Optional.empty(),
                Optional.ofNullable(member.get("instance").textValue()), subscribed, new Assignment(owned)));
        }
        SubscriptionType type =
            subscriptions.size() == 1 ? SubscriptionType.HOMOGENEOUS : SubscriptionType.HETEROGENEOUS;
        ConsumerGroupPartitionAssignor assignor =
            group.get("assignor").asText().equals("range") ? new RangeAssignor() : new UniformAssignor();
        Map<String, Map<String, Set<Integer>>> given = new TreeMap<>();
        assignor.assign(new GroupSpecImpl(members, type, owners), new Topics(counts)).members().forEach((id, all) -> {
            Map<String, Set<Integer>> partitions = new TreeMap<>();
            all.partitions().forEach((topic, some) -> partitions.put(topic.toString(), new TreeSet<>(some)));
            given.put(id, partitions);
        });
        return given;
    }

    private record Topics(Map<Uuid, Integer> counts) implements SubscribedTopicDescriber {
        public int numPartitions(Uuid topic) {
            return counts.getOrDefault(topic, -1);
        }

        public Set<String> racksForPartition(Uuid topic, int partition) {
            return Set.of();
        }
    }
}
