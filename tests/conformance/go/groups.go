package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// A member of a group; the commands are those of card/session.py. session is set for one that copies.
type member struct {
	client   *kgo.Client
	session  *kgo.GroupTransactSession
	group    string
	mutex    sync.Mutex
	assigned map[int32]bool
	given    []string
}

var members = map[string]*member{}
var sessions = map[string]*kgo.GroupTransactSession{} // by the producer's name

func ofMember(ctx context.Context, command string, given options) ([]string, error) {
	if command == "join" {
		return nil, join(given)
	}
	if command == "follow" {
		return nil, follow(given)
	}
	found := members[given["consumer"]]
	switch command {
	case "poll":
		return found.poll(ctx, given)
	case "assigned":
		return found.partitions(), nil
	case "commit":
		return nil, found.client.CommitUncommittedOffsets(ctx)
	case "commit-offset", "committed", "seek", "read-again":
		return found.offset(ctx, command, given)
	case "leave":
		delete(members, given["consumer"])
		if found.session != nil {
			found.session.Close()
		} else {
			found.client.Close()
		}
		return nil, nil
	}
	return nil, noSuchCommand(command)
}

func join(given options) error {
	if given["strategy"] == "consumer" {
		return noSuchCommand("join with the consumer protocol")
	}
	made := &member{group: given["group"], assigned: map[int32]bool{}}
	settings := []kgo.Opt{
		kgo.SeedBrokers(given["server"]), kgo.ConsumerGroup(given["group"]), kgo.ConsumeTopics(given["topic"]),
		kgo.DisableAutoCommit(), kgo.HeartbeatInterval(300 * time.Millisecond),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, to map[string][]int32) { made.note(to, true) }),
		kgo.OnPartitionsRevoked(func(_ context.Context, _ *kgo.Client, of map[string][]int32) { made.note(of, false) }),
		kgo.OnPartitionsLost(func(_ context.Context, _ *kgo.Client, of map[string][]int32) { made.note(of, false) }),
	}
	if given["strategy"] == "eager" {
		settings = append(settings, kgo.Balancers(kgo.RangeBalancer()))
	} else {
		settings = append(settings, kgo.Balancers(kgo.CooperativeStickyBalancer()))
	}
	if name := given["config.group.instance.id"]; name != "" {
		settings = append(settings, kgo.InstanceID(name))
	}
	if given["config.isolation.level"] == "read_committed" {
		settings = append(settings, kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	}
	var err error
	if id := given["transactional-id"]; id != "" {
		settings = append(settings, kgo.TransactionalID(id), kgo.RecordPartitioner(kgo.ManualPartitioner()))
		if made.session, err = kgo.NewGroupTransactSession(settings...); err == nil {
			made.client = made.session.Client()
			sessions[given["copier"]] = made.session
		}
	} else {
		made.client, err = kgo.NewClient(settings...)
	}
	members[given["consumer"]] = made
	return err
}

// follow is a consumer that is alone in its group, or in none, and begins at the start if nothing is committed.
func follow(given options) error {
	reset := map[string]kgo.Offset{
		"earliest": kgo.NewOffset().AtStart(), "latest": kgo.NewOffset().AtEnd(), "none": kgo.NoResetOffset(),
	}[given["reset"]]
	settings := []kgo.Opt{kgo.SeedBrokers(given["server"]), kgo.ConsumeResetOffset(reset)}
	if given["group"] == "" {
		start := map[string]map[int32]kgo.Offset{given["topic"]: {0: kgo.NewOffset().At(0)}}
		settings = append(settings, kgo.ConsumePartitions(start))
	} else {
		settings = append(settings,
			kgo.ConsumerGroup(given["group"]), kgo.ConsumeTopics(given["topic"]), kgo.DisableAutoCommit(),
			kgo.HeartbeatInterval(300*time.Millisecond), kgo.ConsumeStartOffset(kgo.NewOffset().AtStart()),
		)
	}
	client, err := kgo.NewClient(settings...)
	members[given["consumer"]] = &member{client: client, group: given["group"], assigned: map[int32]bool{}}
	return err
}

func (m *member) note(changed map[string][]int32, isAssigned bool) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	for _, partitions := range changed {
		for _, partition := range partitions {
			if isAssigned {
				m.assigned[partition] = true
			} else {
				delete(m.assigned, partition)
			}
		}
	}
}

func (m *member) partitions() []string {
	time.Sleep(50 * time.Millisecond)
	m.mutex.Lock()
	defer m.mutex.Unlock()
	found := []string{}
	for partition := range m.assigned {
		found = append(found, strconv.Itoa(int(partition)))
	}
	slices.Sort(found)
	return found
}

func (m *member) poll(ctx context.Context, given options) ([]string, error) {
	count, err := strconv.Atoi(given["count"])
	if err != nil {
		return nil, err
	}
	for len(m.given) < count {
		// no more than are asked for: a session commits the offsets of all that it has given
		fetches := m.client.PollRecords(ctx, count-len(m.given))
		for _, record := range fetches.Records() {
			m.given = append(m.given, fmt.Sprintf("%d:%d:%s", record.Partition, record.Offset, record.Value))
		}
		for _, failed := range fetches.Errors() { // a loss of data comes beside the records that follow it
			return nil, failed.Err
		}
	}
	found := m.given[:count]
	m.given = m.given[count:]
	return found, nil
}

func (m *member) offset(ctx context.Context, command string, given options) ([]string, error) {
	topic, partition, offset := where(given)
	switch command {
	case "commit-offset":
		last := &kgo.Record{Topic: topic, Partition: partition, Offset: offset - 1, LeaderEpoch: -1}
		return nil, m.client.CommitRecords(ctx, last)
	case "seek", "read-again":
		if m.session == nil { // a session goes back by itself
			m.given = nil
			m.client.SetOffsets(map[string]map[int32]kgo.EpochOffset{topic: {partition: {Epoch: -1, Offset: offset}}})
		}
		return nil, nil
	}
	found, err := kadm.NewClient(m.client).FetchOffsets(ctx, m.group)
	if err != nil {
		return nil, err
	}
	if each, ok := found.Lookup(topic, partition); ok {
		return []string{strconv.FormatInt(each.At, 10)}, nil
	}
	return []string{"none"}, nil
}

func where(given options) (string, int32, int64) {
	partition, _ := strconv.Atoi(given["partition"])
	offset, _ := strconv.ParseInt(given["offset"], 10, 64)
	return given["topic"], int32(partition), offset
}

type noSuchCommand string

func (command noSuchCommand) Error() string {
	return "no such command: " + strings.TrimSpace(string(command))
}

// ofSession ends and begins transactions of a member that copies.
func ofSession(ctx context.Context, session *kgo.GroupTransactSession, command string, given options) error {
	switch command {
	case "begin":
		return session.Begin()
	case "send":
		return send(ctx, session.Client(), given)
	case "commit", "abort":
		isCommitted, err := session.End(ctx, kgo.TransactionEndTry(command == "commit"))
		if err == nil && isCommitted != (command == "commit") {
			return fmt.Errorf("the transaction was not committed")
		}
		return err
	case "close":
		return nil // with its member
	}
	return noSuchCommand(command)
}
