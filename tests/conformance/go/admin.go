package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

var admins = map[string]*kadm.Client{}

// administer does what an admin client is asked; the commands are those of card/session.py.
func administer(ctx context.Context, command string, given options) ([]string, error) {
	server := given["server"]
	if admins[server] == nil {
		client, err := kgo.NewClient(kgo.SeedBrokers(server))
		if err != nil {
			return nil, err
		}
		admins[server] = kadm.NewClient(client)
	}
	for _, do := range []func(context.Context, *kadm.Client, string, options) ([]string, error){ofTopics, ofGroups, ofOthers} {
		found, err := do(ctx, admins[server], command, given)
		if _, isOther := err.(noSuchCommand); !isOther {
			return found, err
		}
	}
	return nil, noSuchCommand(command)
}

func ofTopics(ctx context.Context, admin *kadm.Client, command string, given options) ([]string, error) {
	topic, partition, offset := where(given)
	switch command {
	case "create-topic":
		count, _ := strconv.Atoi(given["partitions"])
		_, err := admin.CreateTopic(ctx, int32(count), 1, nil, topic)
		return nil, err
	case "delete-topic":
		_, err := admin.DeleteTopic(ctx, topic)
		return nil, err
	case "list-topics":
		found, err := admin.ListTopics(ctx)
		return found.Names(), err
	case "describe-topic":
		found, err := admin.ListTopics(ctx, topic)
		return counted(len(found[topic].Partitions)), err
	case "create-partitions":
		count, _ := strconv.Atoi(given["count"])
		found, err := admin.UpdatePartitions(ctx, count, topic)
		if err == nil {
			err = found.Error()
		}
		return nil, err
	case "delete-records":
		var before kadm.Offsets
		before.AddOffset(topic, partition, offset, -1)
		found, err := admin.DeleteRecords(ctx, before)
		if err == nil {
			err = found.Error()
		}
		return nil, err
	case "list-offsets":
		return firstAndLast(ctx, admin, topic, partition)
	}
	return nil, noSuchCommand(command)
}

func firstAndLast(ctx context.Context, admin *kadm.Client, topic string, partition int32) ([]string, error) {
	first, err := admin.ListStartOffsets(ctx, topic)
	if err != nil {
		return nil, err
	}
	last, err := admin.ListEndOffsets(ctx, topic)
	if err != nil {
		return nil, err
	}
	return []string{
		strconv.FormatInt(first[topic][partition].Offset, 10), strconv.FormatInt(last[topic][partition].Offset, 10),
	}, nil
}

func ofGroups(ctx context.Context, admin *kadm.Client, command string, given options) ([]string, error) {
	topic, partition, offset := where(given)
	group := given["group"]
	switch command {
	case "list-groups":
		found, err := admin.ListGroups(ctx)
		return found.Groups(), err
	case "describe-group":
		found, err := admin.DescribeGroups(ctx, group)
		if err == nil {
			err = found.Error()
		}
		return append([]string{strings.ToLower(found[group].State)}, counted(len(found[group].Members))...), err
	case "group-offsets":
		found, err := admin.FetchOffsets(ctx, group)
		offsets := []string{}
		found.Each(func(each kadm.OffsetResponse) {
			offsets = append(offsets, fmt.Sprintf("%d:%d", each.Partition, each.At))
		})
		return offsets, err
	case "reset-offset":
		var offsets kadm.Offsets
		offsets.AddOffset(topic, partition, offset, -1)
		return nil, admin.CommitAllOffsets(ctx, group, offsets)
	case "delete-offset":
		var set kadm.TopicsSet
		set.Add(topic, partition)
		found, err := admin.DeleteOffsets(ctx, group, set)
		if err == nil {
			err = found.Error()
		}
		return nil, err
	case "delete-group":
		_, err := admin.DeleteGroup(ctx, group)
		return nil, err
	}
	return nil, noSuchCommand(command)
}

func ofOthers(ctx context.Context, admin *kadm.Client, command string, given options) ([]string, error) {
	topic, partition, _ := where(given)
	var set kadm.TopicsSet
	switch command {
	case "describe-config":
		found, err := admin.DescribeTopicConfigs(ctx, topic)
		if err != nil {
			return nil, err
		}
		for _, each := range found[0].Configs {
			if each.Key == given["name"] {
				return []string{each.MaybeValue()}, nil
			}
		}
		return nil, found[0].Err
	case "alter-config":
		value := given["value"]
		found, err := admin.AlterTopicConfigs(ctx, []kadm.AlterConfig{{Name: given["name"], Value: &value}}, topic)
		if err == nil {
			err = found[0].Err
		}
		return nil, err
	case "describe-cluster":
		found, err := admin.ListBrokers(ctx)
		return counted(len(found)), err
	case "describe-log-dirs":
		found, err := admin.DescribeAllLogDirs(ctx, nil)
		count := 0
		found.Each(func(each kadm.DescribedLogDir) { count += len(each.Topics[topic]) })
		return counted(count), err
	case "list-transactions":
		found, err := admin.ListTransactions(ctx, nil, nil)
		return found.TransactionalIDs(), err
	case "describe-transaction":
		found, err := admin.DescribeTransactions(ctx, given["id"])
		if err == nil {
			err = found[given["id"]].Err
		}
		return []string{found[given["id"]].State}, err
	case "describe-producers":
		set.Add(topic, partition)
		found, err := admin.DescribeProducers(ctx, set)
		return counted(len(found[topic].Partitions[partition].ActiveProducers)), err
	}
	return nil, noSuchCommand(command)
}

func counted(count int) []string { return []string{strconv.Itoa(count)} }
