// franz-go behind the test clients' JSON lines; tests/clients/drivers.py describes the operations.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

const operationTimeout = 15 * time.Second

type header [2]any

type record struct {
	Partition int32    `json:"partition"`
	Offset    int64    `json:"offset"`
	Timestamp *int64   `json:"timestamp"`
	Key       []byte   `json:"key"`
	Value     []byte   `json:"value"`
	Headers   []header `json:"headers"`
}

type request struct {
	Op                string            `json:"op"`
	Topic             string            `json:"topic"`
	Partition         int32             `json:"partition"`
	Offset            int64             `json:"offset"`
	Count             int               `json:"count"`
	Acks              string            `json:"acks"`
	Codec             string            `json:"codec"`
	Idempotent        bool              `json:"idempotent"`
	Records           []record          `json:"records"`
	At                any               `json:"at"`
	Partitions        int32             `json:"partitions"`
	ReplicationFactor int16             `json:"replication_factor"`
	Configs           map[string]string `json:"configs"`
	Total             int               `json:"total"`
	Resource          string            `json:"resource"`
	Name              string            `json:"name"`
	Set               map[string]string `json:"set"`
	Before            int64             `json:"before"`
}

type reply map[string]any

type driver struct {
	bootstrap string
	client    *kgo.Client
	admin     *kadm.Client
	producers map[string]*kgo.Client
}

func main() {
	client, err := kgo.NewClient(kgo.SeedBrokers(os.Args[1]), kgo.MetadataMinAge(50*time.Millisecond))
	if err != nil {
		panic(err)
	}
	d := &driver{os.Args[1], client, kadm.NewClient(client), map[string]*kgo.Client{}}
	operations := map[string]func(context.Context, request) (reply, error){
		"produce": d.produce, "consume": d.consume, "list_offset": d.listOffset, "create_topic": d.createTopic,
		"delete_topic": d.deleteTopic, "create_partitions": d.createPartitions, "describe_topic": d.describeTopic,
		"list_topics": d.listTopics, "describe_configs": d.describeConfigs, "alter_configs": d.alterConfigs,
		"delete_records": d.deleteRecords, "describe_cluster": d.describeCluster,
	}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 64<<20)
	replies := json.NewEncoder(os.Stdout)
	for lines.Scan() {
		answer, err := answerTo(lines.Bytes(), operations)
		if err != nil {
			answer = reply{"error": describe(err)}
		}
		if err := replies.Encode(answer); err != nil {
			panic(err)
		}
	}
}

func answerTo(line []byte, operations map[string]func(context.Context, request) (reply, error)) (reply, error) {
	var r request
	if err := json.Unmarshal(line, &r); err != nil {
		return nil, err
	}
	operation, known := operations[r.Op]
	if !known {
		return nil, fmt.Errorf("unknown operation %s", r.Op)
	}
	ctx, cancel := context.WithTimeout(context.Background(), operationTimeout)
	defer cancel()
	ok, err := operation(ctx, r)
	return reply{"ok": ok}, err
}

func describe(err error) reply {
	var coded *kerr.Error
	if errors.As(err, &coded) {
		return reply{"code": coded.Code, "name": coded.Message, "message": err.Error()}
	}
	return reply{"code": nil, "name": fmt.Sprintf("%T", err), "message": err.Error()}
}

func (d *driver) producerFor(r request) (*kgo.Client, error) {
	key := fmt.Sprint(r.Acks, r.Codec, r.Idempotent)
	if client, made := d.producers[key]; made {
		return client, nil
	}
	codecs := map[string]kgo.CompressionCodec{
		"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
		"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
	}
	acks := map[string]kgo.Acks{"0": kgo.NoAck(), "1": kgo.LeaderAck(), "all": kgo.AllISRAcks()}
	options := []kgo.Opt{
		kgo.SeedBrokers(d.bootstrap), kgo.RequiredAcks(acks[r.Acks]), kgo.ProducerBatchCompression(codecs[r.Codec]),
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerLinger(20 * time.Millisecond),
		kgo.AllowAutoTopicCreation(), kgo.UnknownTopicRetries(2), kgo.ProducerBatchMaxBytes(16 << 20),
	}
	if !r.Idempotent {
		options = append(options, kgo.DisableIdempotentWrite())
	}
	client, err := kgo.NewClient(options...)
	d.producers[key] = client
	return client, err
}

func (d *driver) produce(ctx context.Context, r request) (reply, error) {
	client, err := d.producerFor(r)
	if err != nil {
		return nil, err
	}
	records := make([]*kgo.Record, len(r.Records))
	for i, wanted := range r.Records {
		records[i] = &kgo.Record{Topic: r.Topic, Partition: wanted.Partition, Key: wanted.Key, Value: wanted.Value}
		if wanted.Timestamp != nil {
			records[i].Timestamp = time.UnixMilli(*wanted.Timestamp)
		}
		for _, pair := range wanted.Headers {
			value, err := headerValue(pair[1])
			if err != nil {
				return nil, err
			}
			records[i].Headers = append(records[i].Headers, kgo.RecordHeader{Key: pair[0].(string), Value: value})
		}
	}
	if err := client.ProduceSync(ctx, records...).FirstErr(); err != nil {
		return nil, err
	}
	offsets := make([]int64, len(records))
	for i, sent := range records {
		offsets[i] = sent.Offset
		if r.Acks == "0" {
			offsets[i] = -1 // nobody told us
		}
	}
	return reply{"offsets": offsets}, nil
}

func headerValue(base64 any) (value []byte, err error) {
	quoted, err := json.Marshal(base64)
	if err == nil {
		err = json.Unmarshal(quoted, &value)
	}
	return value, err
}

func (d *driver) consume(ctx context.Context, r request) (reply, error) {
	at := map[string]map[int32]kgo.Offset{r.Topic: {r.Partition: kgo.NewOffset().At(r.Offset)}}
	client, err := kgo.NewClient(kgo.SeedBrokers(d.bootstrap), kgo.ConsumePartitions(at),
		kgo.ConsumeResetOffset(kgo.NoResetOffset()), kgo.FetchMaxWait(100*time.Millisecond))
	if err != nil {
		return nil, err
	}
	defer client.Close()
	records := []record{}
	for len(records) < r.Count {
		fetches := client.PollFetches(ctx)
		if failed := fetches.Errors(); len(failed) > 0 {
			return nil, fmt.Errorf("read %d of %d records: %w", len(records), r.Count, failed[0].Err)
		}
		fetches.EachRecord(func(read *kgo.Record) {
			if len(records) < r.Count {
				records = append(records, consumed(read))
			}
		})
	}
	return reply{"records": records}, nil
}

func consumed(read *kgo.Record) record {
	timestamp := read.Timestamp.UnixMilli()
	headers := make([]header, len(read.Headers))
	for i, found := range read.Headers {
		headers[i] = header{found.Key, found.Value}
	}
	return record{read.Partition, read.Offset, &timestamp, read.Key, read.Value, headers}
}

func (d *driver) listOffset(ctx context.Context, r request) (reply, error) {
	listed, err := d.list(ctx, r)
	if err != nil {
		return nil, err
	}
	found, _ := listed.Lookup(r.Topic, r.Partition)
	return reply{"offset": found.Offset}, found.Err
}

func (d *driver) list(ctx context.Context, r request) (kadm.ListedOffsets, error) {
	switch r.At {
	case "earliest":
		return d.admin.ListStartOffsets(ctx, r.Topic)
	case "latest":
		return d.admin.ListEndOffsets(ctx, r.Topic)
	case "max_timestamp":
		return d.admin.ListMaxTimestampOffsets(ctx, r.Topic)
	default:
		return d.admin.ListOffsetsAfterMilli(ctx, int64(r.At.(float64)), r.Topic)
	}
}

func (d *driver) createTopic(ctx context.Context, r request) (reply, error) {
	configs := map[string]*string{}
	for name, value := range r.Configs {
		configs[name] = &value
	}
	_, err := d.admin.CreateTopic(ctx, r.Partitions, r.ReplicationFactor, configs, r.Topic)
	return reply{}, err
}

func (d *driver) deleteTopic(ctx context.Context, r request) (reply, error) {
	_, err := d.admin.DeleteTopic(ctx, r.Topic)
	return reply{}, err
}

func (d *driver) createPartitions(ctx context.Context, r request) (reply, error) {
	done, err := d.admin.UpdatePartitions(ctx, r.Total, r.Topic)
	if err == nil {
		err = done.Error()
	}
	return reply{}, err
}

func (d *driver) describeTopic(ctx context.Context, r request) (reply, error) {
	topics, err := d.admin.ListTopics(ctx, r.Topic)
	if err == nil {
		err = topics.Error()
	}
	if err != nil {
		return nil, err
	}
	partitions := []reply{}
	for _, detail := range topics[r.Topic].Partitions.Sorted() {
		partitions = append(partitions, reply{"id": detail.Partition, "leader": detail.Leader})
	}
	return reply{"partitions": partitions}, nil
}

func (d *driver) listTopics(ctx context.Context, _ request) (reply, error) {
	topics, err := d.admin.ListTopics(ctx)
	return reply{"topics": topics.Names()}, err
}

func (d *driver) describeConfigs(ctx context.Context, r request) (reply, error) {
	found, err := d.describeResource(ctx, r)
	if err != nil {
		return nil, err
	}
	described, err := found.On(r.Name, nil)
	if err == nil {
		err = described.Err
	}
	configs := map[string]*string{}
	for _, config := range described.Configs {
		configs[config.Key] = config.Value
	}
	return reply{"configs": configs}, err
}

func (d *driver) describeResource(ctx context.Context, r request) (kadm.ResourceConfigs, error) {
	if r.Resource == "topic" {
		return d.admin.DescribeTopicConfigs(ctx, r.Name)
	}
	id, err := brokerId(r.Name)
	if err != nil {
		return nil, err
	}
	return d.admin.DescribeBrokerConfigs(ctx, id)
}

func (d *driver) alterConfigs(ctx context.Context, r request) (reply, error) {
	changes := []kadm.AlterConfig{}
	for name, value := range r.Set {
		changes = append(changes, kadm.AlterConfig{Op: kadm.SetConfig, Name: name, Value: &value})
	}
	done, err := d.alterResource(ctx, r, changes)
	if err == nil {
		_, err = done.On(r.Name, func(one *kadm.AlterConfigsResponse) error { return one.Err })
	}
	return reply{}, err
}

func (d *driver) alterResource(ctx context.Context, r request, changes []kadm.AlterConfig) (kadm.AlterConfigsResponses, error) {
	if r.Resource == "topic" {
		return d.admin.AlterTopicConfigs(ctx, changes, r.Name)
	}
	id, err := brokerId(r.Name)
	if err != nil {
		return nil, err
	}
	return d.admin.AlterBrokerConfigs(ctx, changes, id)
}

func brokerId(name string) (id int32, err error) {
	_, err = fmt.Sscan(name, &id)
	return id, err
}

func (d *driver) deleteRecords(ctx context.Context, r request) (reply, error) {
	before := kadm.Offsets{}
	before.Add(kadm.Offset{Topic: r.Topic, Partition: r.Partition, At: r.Before, LeaderEpoch: -1})
	done, err := d.admin.DeleteRecords(ctx, before)
	if err != nil {
		return nil, err
	}
	found, _ := done.Lookup(r.Topic, r.Partition)
	return reply{"low_watermark": found.LowWatermark}, found.Err
}

func (d *driver) describeCluster(ctx context.Context, _ request) (reply, error) {
	found, err := d.admin.BrokerMetadata(ctx)
	if err != nil {
		return nil, err
	}
	brokers := []reply{}
	for _, broker := range found.Brokers {
		brokers = append(brokers, reply{"id": broker.NodeID, "host": broker.Host, "port": broker.Port})
	}
	return reply{"brokers": brokers, "controller": found.Controller, "cluster_id": found.Cluster}, nil
}
