package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/IBM/sarama"
)

// member is a consumer of a group, its session, and what it was given and nobody has asked for yet.
type member struct {
	client   sarama.Client
	group    sarama.ConsumerGroup
	id       string
	topic    string
	instance *string
	leave    context.CancelFunc
	ended    chan struct{}

	mutex   sync.Mutex
	session sarama.ConsumerGroupSession
	renew   context.CancelFunc
	given   []string
}

var members = map[string]*member{}
var remembered = map[string]*sarama.ConsumerGroupMetadata{}

func metadataOf(name string) *sarama.ConsumerGroupMetadata {
	if found := members[name]; found != nil {
		found.mutex.Lock()
		defer found.mutex.Unlock()
		return sarama.NewConsumerGroupMetadataFromSession(found.session, found.id, found.instance)
	}
	return remembered[name]
}

func ofMember(command string, given options) ([]string, error) {
	name := given["consumer"]
	if command == "join" {
		return nil, join(name, given)
	}
	found := members[name]
	topic, partition, offset := where(given)
	switch command {
	case "poll":
		return found.poll(given["count"])
	case "assigned":
		return found.assigned(), nil
	case "commit-offset":
		found.session.MarkOffset(topic, partition, offset, "")
		found.session.Commit()
		return nil, nil
	case "committed":
		return committed(found, topic, partition)
	case "read-again":
		found.again()
		return nil, nil
	case "remember":
		remembered[name] = metadataOf(name)
		return nil, nil
	case "leave":
		delete(members, name)
		found.leave()
		<-found.ended
		return nil, found.group.Close()
	}
	return nil, noSuchCommand(command)
}

func join(name string, given options) error {
	if given["strategy"] == "consumer" {
		return noSuchCommand("join with the consumer protocol")
	}
	settings := config()
	settings.Consumer.Group.Rebalance.GroupStrategies = []sarama.BalanceStrategy{sarama.NewBalanceStrategyRange()}
	if given["strategy"] != "eager" {
		settings.Consumer.Group.Rebalance.GroupStrategies =
			[]sarama.BalanceStrategy{sarama.NewBalanceStrategyCooperativeSticky()}
	}
	settings.Consumer.Group.InstanceId = given["config.group.instance.id"]
	if given["config.isolation.level"] == "read_committed" {
		settings.Consumer.IsolationLevel = sarama.ReadCommitted
	}
	client, err := sarama.NewClient([]string{given["server"]}, settings)
	if err != nil {
		return err
	}
	group, err := sarama.NewConsumerGroupFromClient(given["group"], client)
	if err != nil {
		return err
	}
	made := &member{client: client, group: group, id: given["group"], topic: given["topic"], ended: make(chan struct{})}
	if settings.Consumer.Group.InstanceId != "" {
		made.instance = &settings.Consumer.Group.InstanceId
	}
	ctx, cancel := context.WithCancel(context.Background())
	made.leave = cancel
	members[name] = made
	go made.run(ctx)
	return nil
}

// run has one session after the other, until the member leaves.
func (m *member) run(ctx context.Context) {
	defer close(m.ended)
	for ctx.Err() == nil {
		session, renew := context.WithCancel(ctx)
		m.mutex.Lock()
		m.renew = renew
		m.mutex.Unlock()
		if err := m.group.Consume(session, []string{m.topic}, m); err != nil && ctx.Err() == nil {
			time.Sleep(100 * time.Millisecond)
		}
		renew()
	}
}

func (m *member) Setup(session sarama.ConsumerGroupSession) error {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.session = session
	return nil
}

func (m *member) Cleanup(sarama.ConsumerGroupSession) error {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.session = nil
	return nil
}

func (m *member) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for message := range claim.Messages() {
		m.mutex.Lock()
		m.given = append(m.given, fmt.Sprintf("%d:%d:%s", message.Partition, message.Offset, message.Value))
		m.mutex.Unlock()
	}
	return nil
}

// again begins a new session, which reads from the committed offsets on.
func (m *member) again() {
	m.mutex.Lock()
	m.given = nil
	before := m.session
	m.renew()
	m.mutex.Unlock()
	for {
		m.mutex.Lock()
		isRenewed := m.session != nil && m.session != before
		m.mutex.Unlock()
		if isRenewed {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func (m *member) poll(words string) ([]string, error) {
	count, err := strconv.Atoi(words)
	if err != nil {
		return nil, err
	}
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		m.mutex.Lock()
		if len(m.given) >= count {
			defer m.mutex.Unlock()
			found := m.given[:count]
			m.given = m.given[count:]
			return found, nil
		}
		m.mutex.Unlock()
		if time.Now().After(deadline) {
			return nil, context.DeadlineExceeded
		}
	}
}

func (m *member) assigned() []string {
	time.Sleep(50 * time.Millisecond)
	m.mutex.Lock()
	defer m.mutex.Unlock()
	found := []string{}
	if m.session != nil {
		for _, partition := range m.session.Claims()[m.topic] {
			found = append(found, strconv.Itoa(int(partition)))
		}
	}
	slices.Sort(found)
	return found
}

func committed(of *member, topic string, partition int32) ([]string, error) {
	admin, err := sarama.NewClusterAdminFromClient(of.client)
	if err != nil {
		return nil, err
	}
	found, err := admin.ListConsumerGroupOffsets(of.id, map[string][]int32{topic: {partition}})
	if err != nil {
		return nil, err
	}
	if block := found.GetBlock(topic, partition); block != nil && block.Offset >= 0 {
		return []string{strconv.FormatInt(block.Offset, 10)}, nil
	}
	return []string{"none"}, nil
}

// consume reads a partition from its beginning to its end.
func consume(given options) ([]string, error) {
	topic, partition, _ := where(given)
	settings := config()
	if given["level"] == "read_committed" {
		settings.Consumer.IsolationLevel = sarama.ReadCommitted
	}
	client, err := sarama.NewClient([]string{given["server"]}, settings)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	consumer, err := sarama.NewConsumerFromClient(client)
	if err != nil {
		return nil, err
	}
	claim, err := consumer.ConsumePartition(topic, partition, sarama.OffsetOldest)
	if err != nil {
		return nil, err
	}
	defer claim.Close()
	found := []string{}
	for {
		select {
		case message := <-claim.Messages():
			found = append(found, string(message.Value))
		case <-time.After(700 * time.Millisecond): // a consumer does not say that it is at the end
			return found, nil
		}
	}
}
