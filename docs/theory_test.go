package docs

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"zklock/internal/check/zktest"
	"zklock/internal/server/wiretap"
	"zklock/internal/upkeep/chapter"
)

// aWrite makes one, and returns the two halves of its zxid.
func (s *trio) aWrite(c *zktest.Client) (epoch, count int64) {
	mark := c.Tap.Mark()
	create(s.T, c, s.Root+"/a-write-", zk.FlagSequence)
	for _, f := range c.Tap.Since(mark) {
		if f.Kind == wiretap.Reply && f.Op == wiretap.Create {
			return f.Zxid >> 32, f.Zxid & (1<<32 - 1)
		}
	}
	require.Fail(s, "a write has no answer")
	return 0, 0
}

// The two guarantees. Each of two followers has a client. First they write in turn:
// a write is sent when the other client's last one was answered. Then one of them
// sends writes and reads and waits for no answer, while its server does not hear
// which writes are decided.
func oneOrder(s *trio) {
	one := zktest.NewOn(s, s.followers[0].Server).Client("a client of one follower")
	other := zktest.NewOn(s, s.followers[1].Server).Client("a client of the other follower")
	const writes = 20
	last, grew := int64(0), 0
	for i := range writes {
		epoch, count := s.aWrite([]*zktest.Client{one, other}[i%2])
		if zxid := epoch<<32 | count; zxid > last {
			last, grew = zxid, grew+1
		}
	}
	chapter.SaysIn(
		s.T,
		"theory.md",
		"clients of two followers write in turn, each after the other was answered: %d writes, the zxid grew %d times",
		writes,
		grew,
	)

	dir := create(s.T, one, s.Root+"/dir", 0)
	tell := s.hold(s.leader, s.followers[0])
	mark := one.Tap.Mark()
	const pairs = 3
	var answered sync.WaitGroup
	sends := func(op wiretap.Op, request func() error) {
		before := frames(one, mark, wiretap.Request, op)
		answered.Go(func() { assert.NoError(s, request()) })
		s.Await(fmt.Sprintf("a %v to be sent", op), func() bool {
			return frames(one, mark, wiretap.Request, op) > before
		})
	}
	for range pairs {
		sends(wiretap.Create, func() error {
			_, err := one.Create(dir+"/n-", nil, zk.FlagSequence, anyone)
			return err
		})
		sends(wiretap.GetChildren, func() error { _, _, err := one.Children(dir); return err })
	}
	requests, answers := s.line(one, mark)
	chapter.SaysIn(
		s.T,
		"theory.md",
		"a client sends %d requests, and its server does not hear what is decided: %d answers",
		len(requests),
		len(answers),
	)
	tell()
	answered.Wait()
	_, answers = s.line(one, mark)
	var order []string
	inOrder := slices.EqualFunc(requests, answers, func(request, answer wiretap.Frame) bool {
		if answer.Op == wiretap.GetChildren {
			order = append(order, fmt.Sprintf("getChildren (%d)", answer.Names))
		} else {
			order = append(order, answer.Op.String())
		}
		return request.Xid == answer.Xid
	})
	require.True(s, inOrder, "each request has its answer, in the order of the requests: %v", answers)
	require.True(
		s,
		slices.IsSortedFunc(answers, func(a, b wiretap.Frame) int { return int(a.Zxid - b.Zxid) }),
		"the answers' zxids: %v",
		answers,
	)
	chapter.SaysIn(
		s.T,
		"theory.md",
		"its server hears it; the answers, with the number of names in each list: %s",
		strings.Join(order, ", "),
	)
}

// line lists what has passed on a client's line since the mark, each way; no pings.
func (s *trio) line(c *zktest.Client, mark int) (requests, answers []wiretap.Frame) {
	for _, f := range c.Tap.Since(mark) {
		switch {
		case f.Op == wiretap.Ping:
		case f.Kind == wiretap.Request:
			requests = append(requests, f)
		case f.Kind == wiretap.Reply:
			answers = append(answers, f)
		}
	}
	return requests, answers
}
