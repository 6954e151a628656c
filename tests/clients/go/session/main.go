// A session of franz-go on a secured listener; tests/clients/sessions.py describes the requests.
package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

const stepTimeout = 20 * time.Second

type request struct {
	Bootstrap   string     `json:"bootstrap"`
	Protocol    string     `json:"protocol"`
	Mechanism   string     `json:"mechanism"`
	Trusted     string     `json:"trusted"`
	Certificate string     `json:"certificate"`
	User        string     `json:"user"`
	Password    string     `json:"password"`
	Token       string     `json:"token"`
	Topic       string     `json:"topic"`
	Group       string     `json:"group"`
	Batches     [][]string `json:"batches"`
	PauseMs     int        `json:"pause_ms"`
}

type reply map[string]any

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 64<<20)
	replies := json.NewEncoder(os.Stdout)
	for lines.Scan() {
		answer := reply{}
		if read, err := session(lines.Bytes()); err != nil {
			answer["error"] = describe(err)
		} else {
			answer["ok"] = reply{"read": read}
		}
		if err := replies.Encode(answer); err != nil {
			panic(err)
		}
	}
}

func describe(err error) reply {
	var coded *kerr.Error
	if errors.As(err, &coded) {
		return reply{"code": coded.Code, "name": coded.Message, "message": err.Error()}
	}
	return reply{"code": nil, "name": fmt.Sprintf("%T", err), "message": err.Error()}
}

func tlsConfig(r request) (*tls.Config, error) {
	trusted, err := os.ReadFile(r.Trusted)
	if err != nil {
		return nil, err
	}
	config := &tls.Config{RootCAs: x509.NewCertPool()}
	config.RootCAs.AppendCertsFromPEM(trusted)
	if r.Certificate != "" {
		own, err := tls.LoadX509KeyPair(r.Certificate, r.Certificate)
		if err != nil {
			return nil, err
		}
		config.Certificates = []tls.Certificate{own}
	}
	return config, nil
}

func login(r request) sasl.Mechanism {
	switch r.Mechanism {
	case "PLAIN":
		return plain.Auth{User: r.User, Pass: r.Password}.AsMechanism()
	case "SCRAM-SHA-256":
		return scram.Auth{User: r.User, Pass: r.Password}.AsSha256Mechanism()
	case "SCRAM-SHA-512":
		return scram.Auth{User: r.User, Pass: r.Password}.AsSha512Mechanism()
	default:
		return oauth.Auth{Token: r.Token}.AsMechanism()
	}
}

func newClient(r request) (*kgo.Client, error) {
	options := []kgo.Opt{
		kgo.SeedBrokers(r.Bootstrap), kgo.DefaultProduceTopic(r.Topic), kgo.ConsumerGroup(r.Group),
		kgo.ConsumeTopics(r.Topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.DisableAutoCommit(),
		kgo.FetchMaxWait(100 * time.Millisecond),
	}
	if strings.Contains(r.Protocol, "SSL") {
		config, err := tlsConfig(r)
		if err != nil {
			return nil, err
		}
		options = append(options, kgo.DialTLSConfig(config))
	}
	if r.Mechanism != "" {
		options = append(options, kgo.SASL(login(r)))
	}
	return kgo.NewClient(options...)
}

func session(line []byte) ([]string, error) {
	var r request
	if err := json.Unmarshal(line, &r); err != nil {
		return nil, err
	}
	client, err := newClient(r)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	// Records are sent again for ever over connections that fail, so what refuses a connection is asked for first.
	ctx, cancel := context.WithTimeout(context.Background(), stepTimeout)
	defer cancel()
	if err := client.Ping(ctx); err != nil {
		return nil, err
	}
	read := []string{}
	for _, values := range r.Batches {
		found, err := step(client, values)
		if err != nil {
			return nil, err
		}
		read = append(read, found...)
		time.Sleep(time.Duration(r.PauseMs) * time.Millisecond)
	}
	return read, nil
}

func step(client *kgo.Client, values []string) ([]string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), stepTimeout)
	defer cancel()
	records := make([]*kgo.Record, len(values))
	for i, value := range values {
		records[i] = kgo.StringRecord(value)
	}
	if err := client.ProduceSync(ctx, records...).FirstErr(); err != nil {
		return nil, err
	}
	found := []string{}
	for len(found) < len(values) {
		fetches := client.PollFetches(ctx)
		if failed := fetches.Errors(); len(failed) > 0 {
			return nil, fmt.Errorf("read %d of %d records: %w", len(found), len(values), failed[0].Err)
		}
		fetches.EachRecord(func(record *kgo.Record) { found = append(found, string(record.Value)) })
	}
	return found, client.CommitUncommittedOffsets(ctx)
}
