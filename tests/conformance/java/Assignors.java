import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.ConsumerGroupPartitionAssignor;
import org.apache.kafka.coordinator.group.api.assignor.MemberAssignment;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.apache.kafka.coordinator.group.api.assignor.SubscriptionType;
import org.apache.kafka.coordinator.group.assignor.RangeAssignor;
import org.apache.kafka.coordinator.group.assignor.UniformAssignor;
import org.apache.kafka.coordinator.group.modern.Assignment;
import org.apache.kafka.coordinator.group.modern.GroupSpecImpl;
import org.apache.kafka.coordinator.group.modern.MemberSubscriptionAndAssignmentImpl;

/**
 * What Kafka's assignors of consumer groups assign.
 *
 * A line is the assignor, whether all are subscribed to the same, the partition counts of topics 1, 2 ...,
 * and the members, with tabs between. A member is its id, its instance or -, its topics, and what it had, as
 * 1.0,1.2 for two partitions of topic 1. The answer has what the members get, in the order of their ids.
 */
final class Assignors {
    private static final Map<String, ConsumerGroupPartitionAssignor> ASSIGNORS =
        Map.of("uniform", new UniformAssignor(), "range", new RangeAssignor());

    public static void main(String[] arguments) throws IOException {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine())
            System.out.println(answer(line.split("\t")));
    }

    private static String answer(String[] words) {
        List<Integer> counts = numbers(words[2]);
        Map<String, MemberSubscriptionAndAssignmentImpl> members = new LinkedHashMap<>();
        Map<Uuid, Map<Integer, String>> owners = new HashMap<>();
        for (int i = 3; i < words.length; i++) {
            String[] parts = words[i].split(";", -1);
            Set<Uuid> topics = new LinkedHashSet<>();
            numbers(parts[2]).forEach(topic -> topics.add(new Uuid(0, topic)));
            Map<Uuid, Set<Integer>> had = new LinkedHashMap<>();
            for (String place : parts[3].isEmpty() ? new String[0] : parts[3].split(",")) {
                Uuid topic = new Uuid(0, Integer.parseInt(place.split("\\.")[0]));
                int partition = Integer.parseInt(place.split("\\.")[1]);
                had.computeIfAbsent(topic, __ -> new LinkedHashSet<>()).add(partition);
                owners.computeIfAbsent(topic, __ -> new HashMap<>()).put(partition, parts[0]);
            }
            Optional<String> instance = parts[1].equals("-") ? Optional.empty() : Optional.of(parts[1]);
            members.put(parts[0], new MemberSubscriptionAndAssignmentImpl(
                Optional.empty(), instance, topics, new Assignment(had)));
        }
        boolean isHomogeneous = words[1].equals("1");
        SubscriptionType type = isHomogeneous ? SubscriptionType.HOMOGENEOUS : SubscriptionType.HETEROGENEOUS;
        Map<String, MemberAssignment> assigned = ASSIGNORS.get(words[0])
            .assign(new GroupSpecImpl(members, type, owners), describer(counts)).members();
        List<String> shown = new ArrayList<>();
        for (String member : new TreeSet<>(members.keySet())) {
            List<String> places = new ArrayList<>();
            if (assigned.containsKey(member))
                new TreeMap<>(assigned.get(member).partitions()).forEach((topic, partitions) ->
                    new TreeSet<>(partitions).forEach(each ->
                        places.add(topic.getLeastSignificantBits() + "." + each)));
            shown.add(member + ";" + String.join(",", places));
        }
        return String.join("\t", shown);
    }

    private static List<Integer> numbers(String text) {
        List<Integer> found = new ArrayList<>();
        for (String word : text.isEmpty() ? new String[0] : text.split(","))
            found.add(Integer.parseInt(word));
        return found;
    }

    private static SubscribedTopicDescriber describer(List<Integer> counts) {
        return new SubscribedTopicDescriber() {
            @Override
            public int numPartitions(Uuid topic) {
                return counts.get((int) topic.getLeastSignificantBits() - 1);
            }

            @Override
            public Set<String> racksForPartition(Uuid topic, int partition) {
                return Set.of();
            }
        };
    }
}
