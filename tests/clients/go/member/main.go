// A member of a group on franz-go; tests/rebalance/members.py describes its lines.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const pollTime = 50 * time.Millisecond

type options struct {
	Bootstrap        string   `json:"bootstrap"`
	Group            string   `json:"group"`
	Name             string   `json:"name"`
	Topics           []string `json:"topics"`
	Pattern          string   `json:"pattern"`
	Assignors        []string `json:"assignors"`
	Instance         string   `json:"instance"`
	Protocol         string   `json:"protocol"`
	Priority         int      `json:"priority"`
	SessionTimeoutMs int      `json:"session_timeout_ms"`
	HeartbeatMs      int      `json:"heartbeat_ms"`
	MetadataAgeMs    int      `json:"metadata_age_ms"`
}

type fields map[string]any

type teller struct {
	sync.Mutex
	lines *json.Encoder
}

func (t *teller) tell(event string, f fields) {
	t.Lock()
	defer t.Unlock()
	f["event"], f["at_us"] = event, time.Now().UnixMicro()
	if err := t.lines.Encode(f); err != nil {
		panic(err)
	}
}

func (t *teller) partitions(event string) func(context.Context, *kgo.Client, map[string][]int32) {
	return func(_ context.Context, _ *kgo.Client, given map[string][]int32) {
		ids := [][2]any{}
		for topic, indexes := range given {
			for _, index := range indexes {
				ids = append(ids, [2]any{topic, index})
			}
		}
		t.tell(event, fields{"partitions": ids})
	}
}

// priority is a balancer that no library has: the member that names the highest number gets everything.
type priority struct{ number int }

func (priority) ProtocolName() string { return "priority" }
func (priority) IsCooperative() bool  { return false }

func (p priority) JoinGroupMetadata(topics []string, _ map[string][]int32, _ int32) []byte {
	metadata := kmsg.NewConsumerMemberMetadata()
	metadata.Topics = topics
	metadata.UserData = []byte(strconv.Itoa(p.number))
	return metadata.AppendTo(nil)
}

func (priority) ParseSyncAssignment(assignment []byte) (map[string][]int32, error) {
	return kgo.ParseConsumerSyncAssignment(assignment)
}

func (p priority) MemberBalancer(
	members []kmsg.JoinGroupResponseMember,
) (kgo.GroupMemberBalancer, map[string]struct{}, error) {
	balancer, err := kgo.NewConsumerBalancer(p, members)
	if err != nil {
		return nil, nil, err
	}
	return balancer, balancer.MemberTopics(), nil
}

func (priority) Balance(balancer *kgo.ConsumerBalancer, topics map[string]int32) kgo.IntoSyncAssignment {
	plan := balancer.NewPlan()
	highest, best := -1, (*kmsg.JoinGroupResponseMember)(nil)
	balancer.EachMember(func(member *kmsg.JoinGroupResponseMember, metadata *kmsg.ConsumerMemberMetadata) {
		if number, _ := strconv.Atoi(string(metadata.UserData)); number > highest {
			highest, best = number, member
		}
	})
	for topic, count := range topics {
		for index := int32(0); index < count; index++ {
			plan.AddPartition(best, topic, index)
		}
	}
	return plan
}

func balancers(o options) []kgo.GroupBalancer {
	known := map[string]kgo.GroupBalancer{
		"range": kgo.RangeBalancer(), "roundrobin": kgo.RoundRobinBalancer(), "sticky": kgo.StickyBalancer(),
		"cooperative-sticky": kgo.CooperativeStickyBalancer(), "priority": priority{o.Priority},
		"uniform": kgo.StickyBalancer(), // the server's assignor of that name is asked for by this one
	}
	chosen := []kgo.GroupBalancer{}
	for _, name := range o.Assignors {
		chosen = append(chosen, known[name])
	}
	return chosen
}

func settings(o options, t *teller) []kgo.Opt {
	chosen := []kgo.Opt{
		kgo.SeedBrokers(o.Bootstrap), kgo.ClientID(o.Name), kgo.ConsumerGroup(o.Group),
		kgo.DisableAutoCommit(), kgo.BlockRebalanceOnPoll(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.SessionTimeout(time.Duration(o.SessionTimeoutMs) * time.Millisecond),
		kgo.HeartbeatInterval(time.Duration(o.HeartbeatMs) * time.Millisecond),
		kgo.MetadataMaxAge(time.Duration(o.MetadataAgeMs) * time.Millisecond),
		kgo.MetadataMinAge(50 * time.Millisecond), kgo.FetchMaxWait(200 * time.Millisecond),
		kgo.OnPartitionsAssigned(t.partitions("assigned")),
		kgo.OnPartitionsRevoked(t.giveUp),
		kgo.OnPartitionsLost(t.partitions("lost")),
		kgo.Balancers(balancers(o)...),
		kgo.WithLogger(kgo.BasicLogger(os.Stderr, kgo.LogLevelWarn, nil)),
	}
	if o.Protocol == "consumer" {
		chosen = append(chosen, kgo.ServerSideBalancer())
	}
	if o.Instance != "" {
		chosen = append(chosen, kgo.InstanceID(o.Instance))
	}
	if o.Pattern != "" {
		return append(chosen, kgo.ConsumeRegex(), kgo.ConsumeTopics("^"+o.Pattern))
	}
	return append(chosen, kgo.ConsumeTopics(o.Topics...))
}

func (t *teller) readAndCommit(client *kgo.Client) {
	defer client.AllowRebalance()
	ctx, cancel := context.WithTimeout(context.Background(), pollTime)
	defer cancel()
	spans := [][4]any{}
	client.PollFetches(ctx).EachPartition(func(p kgo.FetchTopicPartition) {
		if len(p.Records) > 0 {
			spans = append(spans, [4]any{p.Topic, p.Partition, p.Records[0].Offset, p.Records[len(p.Records)-1].Offset})
		}
	})
	if len(spans) > 0 {
		t.tell("read", fields{"spans": spans})
	}
	t.commit(client)
}

// A cooperative member reads on while its commits are refused; what it read is committed with the next ones.
func (t *teller) commit(client *kgo.Client) {
	offsets := [][3]any{}
	for topic, partitions := range client.UncommittedOffsets() {
		for index, to := range partitions {
			offsets = append(offsets, [3]any{topic, index, to.Offset})
		}
	}
	if len(offsets) == 0 {
		return
	}
	switch err := client.CommitUncommittedOffsets(context.Background()); {
	case err == nil:
		t.tell("committed", fields{"offsets": offsets})
	case !errors.Is(err, kerr.RebalanceInProgress):
		t.tell("failed", fields{"message": err.Error()})
	}
}

func (t *teller) giveUp(ctx context.Context, client *kgo.Client, revoked map[string][]int32) {
	t.commit(client)
	t.partitions("revoked")(ctx, client, revoked)
}

func main() {
	var o options
	if err := json.Unmarshal([]byte(os.Args[1]), &o); err != nil {
		panic(err)
	}
	t := &teller{lines: json.NewEncoder(os.Stdout)}
	client, err := kgo.NewClient(settings(o, t)...)
	if err != nil {
		panic(err)
	}
	ended := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(ended)
	}()
	for {
		select {
		case <-ended:
			client.CloseAllowingRebalance()
			return
		default:
			t.readAndCommit(client)
		}
	}
}
