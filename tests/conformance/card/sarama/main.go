// sarama, driven over a pipe: one command a line on stdin, one JSON object a line on stdout. The commands are those
// of card/session.py.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/IBM/sarama"
)

const patience = 30 * time.Second

type options map[string]string

type answer struct {
	Error  *string  `json:"error"`
	Detail string   `json:"detail,omitempty"`
	Values []string `json:"values,omitempty"`
}

type noSuchCommand string

func (command noSuchCommand) Error() string { return "no such command: " + string(command) }

func main() {
	sarama.Logger = log.New(io.Discard, "", 0)
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

// nameOf has the number of the broker's error behind err, or says what kind of thing it is.
func nameOf(err error) string {
	var known sarama.KError
	if errors.As(err, new(noSuchCommand)) {
		return "NoSuchCommandError"
	}
	if errors.As(err, &known) {
		return fmt.Sprintf("KError %d", int16(known))
	}
	return fmt.Sprintf("%T", err)
}

func run(words []string) ([]string, error) {
	given := options{}
	for _, word := range words[1:] {
		name, value, _ := strings.Cut(word, "=")
		given[name] = value
	}
	switch {
	case words[0] == "consume":
		return consume(given)
	case given["producer"] != "":
		return nil, ofProducer(words[0], given)
	case given["consumer"] != "":
		return ofMember(words[0], given)
	}
	return administer(words[0], given)
}

func config() *sarama.Config {
	made := sarama.NewConfig()
	made.Version = sarama.MaxVersion
	made.Consumer.Offsets.AutoCommit.Enable = false
	made.Consumer.Offsets.Initial = sarama.OffsetOldest
	made.Consumer.Group.Heartbeat.Interval = 300 * time.Millisecond
	made.Consumer.MaxWaitTime = 100 * time.Millisecond
	made.Producer.Return.Successes = true
	made.Producer.RequiredAcks = sarama.WaitForAll
	made.Producer.Partitioner = sarama.NewManualPartitioner
	return made
}

func where(given options) (string, int32, int64) {
	partition, _ := strconv.Atoi(given["partition"])
	offset, _ := strconv.ParseInt(given["offset"], 10, 64)
	return given["topic"], int32(partition), offset
}
