import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.ConsumerGroupDescription;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;

/** Apache Kafka's admin client, for ClientProcess; the commands are those of card/jobs.py. */
final class AdminCommands {
    private final Map<String, Admin> admins = new HashMap<>();

    /** The answer; null if there is no such command. */
    List<String> answer(String command, Map<String, String> options) throws Exception {
        if (!options.containsKey("server"))
            return null;
        Admin admin = admins.computeIfAbsent(options.get("server"), AdminCommands::connected);
        List<String> found = ofTopics(admin, command, options);
        if (found == null)
            found = ofGroups(admin, command, options);
        return found == null ? ofOthers(admin, command, options) : found;
    }

    private static Admin connected(String server) {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", server);
        return Admin.create(properties);
    }

    private static List<String> ofTopics(Admin admin, String command, Map<String, String> options)
        throws Exception {
        String topic = options.get("topic");
        switch (command) {
            case "create-topic":
                int partitions = Integer.parseInt(options.get("partitions"));
                admin.createTopics(List.of(new NewTopic(topic, partitions, (short) 1))).all().get();
                return List.of();
            case "delete-topic":
                admin.deleteTopics(List.of(topic)).all().get();
                return List.of();
            case "list-topics":
                return admin.listTopics().names().get().stream().sorted().toList();
            case "describe-topic":
                return List.of("" + admin.describeTopics(List.of(topic)).allTopicNames().get()
                    .get(topic).partitions().size());
            case "create-partitions":
                int count = Integer.parseInt(options.get("count"));
                admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(count))).all().get();
                return List.of();
            case "delete-records":
                RecordsToDelete before = RecordsToDelete.beforeOffset(Long.parseLong(options.get("offset")));
                admin.deleteRecords(Map.of(partition(options), before)).all().get();
                return List.of();
            case "list-offsets":
                return List.of(
                    "" + offset(admin, partition(options), OffsetSpec.earliest()),
                    "" + offset(admin, partition(options), OffsetSpec.latest()));
            default:
                return null;
        }
    }

    private static List<String> ofGroups(Admin admin, String command, Map<String, String> options)
        throws Exception {
        String group = options.get("group");
        switch (command) {
            case "list-groups":
                return admin.listConsumerGroups().all().get().stream()
                    .map(each -> each.groupId()).sorted().toList();
            case "describe-group":
                ConsumerGroupDescription found =
                    admin.describeConsumerGroups(List.of(group)).all().get().get(group);
                return List.of(found.state().name().toLowerCase(), "" + found.members().size());
            case "group-offsets":
                return admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get()
                    .entrySet().stream().filter(each -> each.getValue() != null)
                    .map(each -> each.getKey().partition() + ":" + each.getValue().offset())
                    .sorted().toList();
            case "reset-offset":
                var offset = new OffsetAndMetadata(Long.parseLong(options.get("offset")));
                admin.alterConsumerGroupOffsets(group, Map.of(partition(options), offset)).all().get();
                return List.of();
            case "delete-offset":
                admin.deleteConsumerGroupOffsets(group, Set.of(partition(options))).all().get();
                return List.of();
            case "delete-group":
                admin.deleteConsumerGroups(List.of(group)).all().get();
                return List.of();
            default:
                return null;
        }
    }

    private static List<String> ofOthers(Admin admin, String command, Map<String, String> options)
        throws Exception {
        switch (command) {
            case "describe-config":
                ConfigResource resource = topic(options);
                return List.of(admin.describeConfigs(List.of(resource)).all().get().get(resource)
                    .get(options.get("name")).value());
            case "alter-config":
                ConfigEntry entry = new ConfigEntry(options.get("name"), options.get("value"));
                AlterConfigOp set = new AlterConfigOp(entry, AlterConfigOp.OpType.SET);
                admin.incrementalAlterConfigs(Map.of(topic(options), List.of(set))).all().get();
                return List.of();
            case "describe-cluster":
                return List.of("" + admin.describeCluster().nodes().get().size());
            case "list-transactions":
                return admin.listTransactions().all().get().stream()
                    .map(each -> each.transactionalId()).sorted().toList();
            case "describe-transaction":
                String id = options.get("id");
                return List.of(admin.describeTransactions(List.of(id)).all().get().get(id)
                    .state().toString());
            case "describe-producers":
                return List.of("" + admin.describeProducers(Set.of(partition(options))).all().get()
                    .get(partition(options)).activeProducers().size());
            case "describe-log-dirs":
                return List.of("" + admin.describeLogDirs(List.of(1)).allDescriptions().get().get(1).values()
                    .stream().flatMap(each -> each.replicaInfos().keySet().stream())
                    .filter(each -> each.topic().equals(options.get("topic"))).count());
            default:
                return null;
        }
    }

    private static long offset(Admin admin, TopicPartition partition, OffsetSpec spec) throws Exception {
        return admin.listOffsets(Map.of(partition, spec)).all().get().get(partition).offset();
    }

    private static ConfigResource topic(Map<String, String> options) {
        return new ConfigResource(ConfigResource.Type.TOPIC, options.get("topic"));
    }

    private static TopicPartition partition(Map<String, String> options) {
        return new TopicPartition(options.get("topic"), Integer.parseInt(options.get("partition")));
    }
}
