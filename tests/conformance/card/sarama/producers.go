package main

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/IBM/sarama"
)

var waiting = map[string]func() error{} // transactional producers that are open, and not made yet
var producers = map[string]sarama.SyncProducer{}

func ofProducer(command string, given options) error {
	name := given["producer"]
	producer := producers[name]
	switch command {
	case "open":
		return open(name, given)
	case "init":
		return waiting[name]()
	case "begin":
		return producer.BeginTxn()
	case "commit":
		return producer.CommitTxn()
	case "abort":
		return producer.AbortTxn()
	case "send":
		return send(producer, given)
	case "send-offsets":
		return sendOffsets(producer, given)
	case "close":
		delete(producers, name)
		if producer != nil && !producer.IsTransactional() {
			return producer.Close()
		}
		return nil
	}
	return noSuchCommand(command)
}

func open(name string, given options) error {
	settings := config()
	for key, value := range given {
		number, _ := strconv.Atoi(value)
		switch key {
		case "config.transactional.id":
			settings.Producer.Transaction.ID = value
		case "config.transaction.timeout.ms":
			settings.Producer.Transaction.Timeout = time.Duration(number) * time.Millisecond
		case "config.compression.type":
			if err := settings.Producer.Compression.UnmarshalText([]byte(value)); err != nil {
				return err
			}
		}
	}
	if given["config.enable.idempotence"] != "" || settings.Producer.Transaction.ID != "" {
		settings.Producer.Idempotent = true
		settings.Net.MaxOpenRequests = 1
	}
	waiting[name] = func() error {
		made, err := sarama.NewSyncProducer([]string{given["server"]}, settings)
		if err == nil {
			producers[name] = made
		}
		return err
	}
	if settings.Producer.Transaction.ID == "" {
		return waiting[name]()
	}
	return nil
}

func send(producer sarama.SyncProducer, given options) error {
	var messages []*sarama.ProducerMessage
	for _, word := range strings.Split(given["records"], ",") {
		number, value, _ := strings.Cut(word, ":")
		partition, err := strconv.Atoi(number)
		if err != nil {
			return err
		}
		messages = append(messages, &sarama.ProducerMessage{
			Topic: given["topic"], Partition: int32(partition), Value: sarama.StringEncoder(value),
		})
	}
	err := producer.SendMessages(messages)
	var failed sarama.ProducerErrors
	if errors.As(err, &failed) {
		return failed[0].Err
	}
	return err
}

func sendOffsets(producer sarama.SyncProducer, given options) error {
	topic, partition, offset := where(given)
	offsets := map[string][]*sarama.PartitionOffsetMetadata{topic: {{Partition: partition, Offset: offset}}}
	return producer.AddOffsetsToTxnWithGroupMetadata(offsets, metadataOf(given["consumer"]))
}
