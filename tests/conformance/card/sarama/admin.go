package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/IBM/sarama"
)

var admins = map[string]sarama.ClusterAdmin{}

func administer(command string, given options) ([]string, error) {
	server := given["server"]
	if admins[server] == nil {
		made, err := sarama.NewClusterAdmin([]string{server}, config())
		if err != nil {
			return nil, err
		}
		admins[server] = made
	}
	for _, do := range []func(sarama.ClusterAdmin, string, options) ([]string, error){ofTopics, ofGroups, ofConfigs} {
		found, err := do(admins[server], command, given)
		if _, isOther := err.(noSuchCommand); !isOther {
			return found, err
		}
	}
	return nil, noSuchCommand(command)
}

func ofTopics(admin sarama.ClusterAdmin, command string, given options) ([]string, error) {
	topic, partition, offset := where(given)
	switch command {
	case "create-topic":
		count, _ := strconv.Atoi(given["partitions"])
		detail := &sarama.TopicDetail{NumPartitions: int32(count), ReplicationFactor: 1}
		return nil, admin.CreateTopic(topic, detail, false)
	case "delete-topic":
		return nil, admin.DeleteTopic(topic)
	case "list-topics":
		found, err := admin.ListTopics()
		names := []string{}
		for name := range found {
			names = append(names, name)
		}
		return names, err
	case "describe-topic":
		found, err := admin.DescribeTopics([]string{topic})
		if err != nil {
			return nil, err
		}
		return counted(len(found[0].Partitions)), nil
	case "create-partitions":
		count, _ := strconv.Atoi(given["count"])
		return nil, admin.CreatePartitions(topic, int32(count), nil, false)
	case "delete-records":
		return nil, admin.DeleteRecords(topic, map[int32]int64{partition: offset})
	case "list-offsets":
		return firstAndLast(admin, topic, partition)
	case "describe-cluster":
		brokers, _, err := admin.DescribeCluster()
		return counted(len(brokers)), err
	case "describe-log-dirs":
		return logDirs(admin, topic)
	}
	return nil, noSuchCommand(command)
}

func firstAndLast(admin sarama.ClusterAdmin, topic string, partition int32) ([]string, error) {
	found := []string{}
	for _, wanted := range []int64{sarama.OffsetOldest, sarama.OffsetNewest} {
		offsets, err := admin.ListOffsets(map[string]map[int32]int64{topic: {partition: wanted}}, nil)
		if err != nil {
			return nil, err
		}
		found = append(found, strconv.FormatInt(offsets[topic][partition].Offset, 10))
	}
	return found, nil
}

func logDirs(admin sarama.ClusterAdmin, topic string) ([]string, error) {
	found, err := admin.DescribeLogDirs([]int32{1})
	if err != nil {
		return nil, err
	}
	count := 0
	for _, directory := range found[1] {
		for _, each := range directory.Topics {
			if each.Topic == topic {
				count += len(each.Partitions)
			}
		}
	}
	return counted(count), nil
}

func ofGroups(admin sarama.ClusterAdmin, command string, given options) ([]string, error) {
	topic, partition, offset := where(given)
	group := given["group"]
	switch command {
	case "list-groups":
		found, err := admin.ListConsumerGroups()
		names := []string{}
		for name := range found {
			names = append(names, name)
		}
		return names, err
	case "describe-group":
		found, err := admin.DescribeConsumerGroups([]string{group})
		if err != nil {
			return nil, err
		}
		return append([]string{strings.ToLower(found[0].State)}, counted(len(found[0].Members))...), nil
	case "group-offsets":
		return offsetsOf(admin, group)
	case "reset-offset":
		wanted := map[string]map[int32]sarama.OffsetAndMetadata{topic: {partition: {Offset: offset, LeaderEpoch: -1}}}
		found, err := admin.AlterConsumerGroupOffsets(group, wanted, nil)
		if err == nil && found.Errors[topic][partition] != sarama.ErrNoError {
			err = found.Errors[topic][partition]
		}
		return nil, err
	case "delete-offset":
		return nil, admin.DeleteConsumerGroupOffset(group, topic, partition)
	case "delete-group":
		return nil, admin.DeleteConsumerGroup(group)
	}
	return nil, noSuchCommand(command)
}

func offsetsOf(admin sarama.ClusterAdmin, group string) ([]string, error) {
	response, err := admin.ListConsumerGroupOffsets(group, nil)
	if err != nil {
		return nil, err
	}
	found := []string{}
	for _, partitions := range response.Blocks {
		for partition, block := range partitions {
			found = append(found, fmt.Sprintf("%d:%d", partition, block.Offset))
		}
	}
	slices.Sort(found)
	return found, nil
}

func ofConfigs(admin sarama.ClusterAdmin, command string, given options) ([]string, error) {
	switch command {
	case "describe-config":
		resource := sarama.ConfigResource{Type: sarama.TopicResource, Name: given["topic"]}
		resource.ConfigNames = []string{given["name"]}
		found, err := admin.DescribeConfig(resource)
		if err != nil {
			return nil, err
		}
		return []string{found[0].Value}, nil
	case "alter-config":
		value := given["value"]
		set := sarama.IncrementalAlterConfigsEntry{Operation: sarama.IncrementalAlterConfigsOperationSet, Value: &value}
		entries := map[string]sarama.IncrementalAlterConfigsEntry{given["name"]: set}
		return nil, admin.IncrementalAlterConfig(sarama.TopicResource, given["topic"], entries, false)
	}
	return nil, noSuchCommand(command)
}

func counted(count int) []string { return []string{strconv.Itoa(count)} }
