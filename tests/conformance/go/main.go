// franz-go's producer and consumer, driven over a pipe: one command a line on stdin, one JSON object a line on
// stdout. The commands are those of java/clients/ClientProcess.java.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const patience = time.Minute

type options map[string]string

type answer struct {
	Error  *string  `json:"error"`
	Detail string   `json:"detail,omitempty"`
	Values []string `json:"values,omitempty"`
}

var producers = map[string]*kgo.Client{}

func main() {
	commands := bufio.NewReader(os.Stdin)
	answers := json.NewEncoder(os.Stdout)
	for {
		line, err := commands.ReadString('\n')
		if err != nil {
			return
		}
		values, err := run(strings.Fields(line))
		found := answer{Values: values}
		if err != nil {
			name := nameOf(err)
			found = answer{Error: &name, Detail: err.Error()}
		}
		if err := answers.Encode(found); err != nil {
			panic(err)
		}
	}
}

// nameOf is the name of the broker's error behind err, or what kind of thing it is.
func nameOf(err error) string {
	var known *kerr.Error
	if errors.As(err, &known) {
		return known.Message
	}
	if errors.As(err, new(noSuchCommand)) {
		return "NoSuchCommandError"
	}
	return fmt.Sprintf("%T", err)
}

func run(words []string) ([]string, error) {
	given := options{}
	for _, word := range words[1:] {
		name, value, _ := strings.Cut(word, "=")
		given[name] = value
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	switch words[0] {
	case "consume":
		return consume(ctx, given)
	case "open":
		return nil, open(given)
	case "send-offsets":
		if sessions[given["producer"]] == nil {
			return nil, noSuchCommand(words[0])
		}
		return nil, nil // the session sends the offsets of what it has given, when the transaction ends
	}
	if given["consumer"] != "" {
		return ofMember(ctx, words[0], given)
	}
	if given["producer"] == "" {
		return administer(ctx, words[0], given)
	}
	name := given["producer"]
	if session := sessions[name]; session != nil {
		return nil, ofSession(ctx, session, words[0], given)
	}
	producer := producers[name]
	switch words[0] {
	case "init":
		_, _, err := producer.ProducerID(ctx)
		return nil, err
	case "begin":
		return nil, producer.BeginTransaction()
	case "send":
		return nil, send(ctx, producer, given)
	case "commit":
		return nil, end(ctx, producer, kgo.TryCommit)
	case "abort":
		return nil, end(ctx, producer, kgo.TryAbort)
	case "close":
		delete(producers, name)
		producer.Close()
		return nil, nil
	}
	return nil, noSuchCommand(words[0])
}

func open(given options) error {
	settings := []kgo.Opt{
		kgo.SeedBrokers(given["server"]),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
	}
	for name, value := range given {
		setting, err := settingOf(name, value)
		if err != nil {
			return err
		}
		if setting != nil {
			settings = append(settings, setting)
		}
	}
	producer, err := kgo.NewClient(settings...)
	producers[given["producer"]] = producer
	return err
}

// settingOf translates a setting of the Java producer.
func settingOf(name, value string) (kgo.Opt, error) {
	number, notNumber := strconv.Atoi(value)
	switch name {
	case "server", "producer":
		return nil, nil
	case "config.transactional.id":
		return kgo.TransactionalID(value), nil
	case "config.transaction.timeout.ms":
		return kgo.TransactionTimeout(time.Duration(number) * time.Millisecond), notNumber
	case "config.enable.idempotence":
		return nil, nil // it is, unless one asks for something else
	case "config.linger.ms":
		return kgo.ProducerLinger(time.Duration(number) * time.Millisecond), notNumber
	case "config.batch.size":
		return kgo.ProducerBatchMaxBytes(int32(number)), notNumber
	case "config.compression.type":
		codecs := map[string]kgo.CompressionCodec{
			"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
			"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
		}
		return kgo.ProducerBatchCompression(codecs[value]), nil
	}
	return nil, fmt.Errorf("no such setting: %s", name)
}

func send(ctx context.Context, producer *kgo.Client, given options) error {
	size, err := strconv.Atoi(given["size"])
	if err != nil {
		return err
	}
	var records []*kgo.Record
	for _, word := range strings.Split(given["records"], ",") {
		number, value, _ := strings.Cut(word, ":")
		partition, err := strconv.Atoi(number)
		if err != nil {
			return err
		}
		value += strings.Repeat(".", max(0, size-len(value)))
		record := &kgo.Record{Topic: given["topic"], Partition: int32(partition), Value: []byte(value)}
		records = append(records, record)
	}
	if given["wait"] == "no" {
		for _, record := range records {
			producer.Produce(context.Background(), record, nil)
		}
		return nil
	}
	return producer.ProduceSync(ctx, records...).FirstErr()
}

func end(ctx context.Context, producer *kgo.Client, how kgo.TransactionEndTry) error {
	if err := producer.Flush(ctx); err != nil {
		return err
	}
	return producer.EndTransaction(ctx, how)
}

func consume(ctx context.Context, given options) ([]string, error) {
	topic := given["topic"]
	number, err := strconv.Atoi(given["partition"])
	if err != nil {
		return nil, err
	}
	partition := int32(number)
	level := kgo.ReadUncommitted()
	if given["level"] == "read_committed" {
		level = kgo.ReadCommitted()
	}
	start := map[string]map[int32]kgo.Offset{topic: {partition: kgo.NewOffset().AtStart()}}
	consumer, err := kgo.NewClient(
		kgo.SeedBrokers(given["server"]), kgo.ConsumePartitions(start), kgo.FetchIsolationLevel(level),
		kgo.KeepControlRecords(), // they say where the consumer is
	)
	if err != nil {
		return nil, err
	}
	defer consumer.Close()
	end, err := endOffset(ctx, consumer, topic, partition, given["level"] == "read_committed")
	if err != nil {
		return nil, err
	}
	values := []string{}
	for position := int64(0); position < end; {
		fetches := consumer.PollFetches(ctx)
		for _, failed := range fetches.Errors() {
			return nil, failed.Err
		}
		for _, record := range fetches.Records() {
			position = record.Offset + 1
			if !record.Attrs.IsControl() {
				values = append(values, string(record.Value))
			}
		}
	}
	return values, nil
}

func endOffset(
	ctx context.Context, client *kgo.Client, topic string, partition int32, isCommitted bool,
) (int64, error) {
	request := kmsg.NewPtrListOffsetsRequest()
	request.ReplicaID = -1
	if isCommitted {
		request.IsolationLevel = 1
	}
	wanted := kmsg.NewListOffsetsRequestTopicPartition()
	wanted.Partition, wanted.Timestamp = partition, -1
	ofTopic := kmsg.NewListOffsetsRequestTopic()
	ofTopic.Topic, ofTopic.Partitions = topic, append(ofTopic.Partitions, wanted)
	request.Topics = append(request.Topics, ofTopic)
	response, err := request.RequestWith(ctx, client)
	if err != nil {
		return 0, err
	}
	found := response.Topics[0].Partitions[0]
	return found.Offset, kerr.ErrorForCode(found.ErrorCode)
}
