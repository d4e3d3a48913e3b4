package property

import (
	"encoding/binary"
	"net"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"zklock/internal/lang"
	"zklock/internal/wiretap"
	"zklock/internal/zktest"
	predecessorwatch "zklock/step04_predecessor_watch"
	reentrant "zklock/step05_reentrant"
)

// A holds the lock. Its session ends by an accident, as on a machine that pauses, and B gets the
// lock beside it. The lock is right, so there is no verdict.
func TestAnAccidentIsNoEvidence(t *testing.T) {
	t.Parallel()
	server, err := zktest.Shared()
	require.NoError(t, err)
	story := New(lang.Text{EN: "nobody gets the lock beside A"}, lang.Text{}, lang.Text{}, func(s *Story) {
		a, b := s.Join("A"), s.Join("B")
		a.Acquire()
		waiting := s.queue(b)[0]
		s.Zoo.EndSession(a.Client)
		waiting.Acquired()
		s.Fails("B got the lock beside A")
	})
	r := Check(server, Over("step 4", predecessorwatch.New), story)
	assert.Equal(t, Stuck, r.Verdict, r.Evidence)
	assert.Contains(t, r.Evidence, "which this check did not cause; then B got the lock beside A")
	assert.Contains(t, r.Asked, "A: create /lock, create /lock/lock-, getChildren /lock; B: ")
}

// B's session ends by an accident before B arrives. Later the story lets B crash. The story must wait for the end of
// the session that B has then, and it has no verdict: who knows what else the accident has changed?
func TestAnAccidentBeforeAFaultIsNoEvidence(t *testing.T) {
	t.Parallel()
	server, err := zktest.Shared()
	require.NoError(t, err)
	var crashed, expired int64
	story := New(lang.Text{EN: "a waiter crashes"}, lang.Text{}, lang.Text{}, func(s *Story) {
		b := s.Join("B")
		s.Zoo.EndSession(b.Client)
		s.Await("B to have another session", func() bool { return b.State() == zk.StateHasSession && b.SessionID() != b.ID })
		b.Acquire()
		crashed, _ = s.Owner(b.Znode())
		s.Expire(b.Client)
		if _, lives := s.Owner(b.Znode()); !lives {
			expired = crashed
		}
		s.Holds("B crashed")
	})
	r := Check(server, Over("step 4", predecessorwatch.New), story)
	assert.NotZero(t, crashed, "the session of B's znode")
	assert.Equal(t, crashed, expired, "the session whose end the story waited for")
	assert.Equal(t, Stuck, r.Verdict, r.Evidence)
	assert.Contains(t, r.Evidence, "the connection of B broke, which this check did not cause; then B crashed")
}

// B's connection breaks just when the server has carried out its second create, so the story never sees the reply. B
// finds its znode, as the lock of step 5 promises.
func TestAReplyThatTheStoryDoesNotSeeIsNoMistake(t *testing.T) {
	t.Parallel()
	server, err := zktest.Shared()
	require.NoError(t, err)
	clients := 0
	open := func(servers []string, timeout time.Duration, dial zk.Dialer) (*reentrant.Session, error) {
		clients++
		if clients == 2 {
			creates := 0
			tapped := dial
			dial = func(network, address string, limit time.Duration) (net.Conn, error) {
				conn, err := tapped(network, address, limit)
				return breaksAtSecondCreate{conn, &creates}, err
			}
		}
		return reentrant.Open(servers, timeout, zk.WithDialer(dial), zk.WithLogger(zktest.NoLog))
	}
	lock := OverHolds("step 5", open, reentrant.New)
	lock.NotHeld = reentrant.ErrNotHeld
	r := Check(server, lock, LostWhileWaiting)
	assert.Equal(t, Yes, r.Verdict, r.Evidence)
}

type breaksAtSecondCreate struct {
	net.Conn
	creates *int // of the client
}

func (c breaksAtSecondCreate) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	const opcode, create = 8, 1 // where the number of the request's kind is, and that of a create
	if len(b) >= opcode+4 && binary.BigEndian.Uint32(b[opcode:]) == create {
		if *c.creates++; *c.creates == 2 {
			_ = c.Conn.Close()
		}
	}
	return n, err
}

// To ask for an accident, a story sends a request. It must not spring a trap that holds requests.
func TestAFrameOnHoldIsNoAccident(t *testing.T) {
	t.Parallel()
	server, err := zktest.Shared()
	require.NoError(t, err)
	story := New(lang.Text{EN: "something holds"}, lang.Text{}, lang.Text{}, func(s *Story) {
		s.Join("A").Tap.HoldRequest(wiretap.Any, 1)
		s.Fails("it does not")
	})
	r := Check(server, Over("step 4", predecessorwatch.New), story)
	assert.Equal(t, No, r.Verdict, r.Evidence)
}
