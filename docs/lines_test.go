package docs

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"zklock/internal/check/lockcheck"
	"zklock/internal/check/steps"
	"zklock/internal/check/zktest"
	"zklock/internal/server/wiretap"
	"zklock/internal/upkeep/chapter"
	reentrant "zklock/step05_reentrant"
	sharedlock "zklock/step06_shared_lock"
)

// Two sessions of one process are two clients. A hold belongs to the lock of one.
func TestTwoSessionsInOneProcess(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	saw := map[string][]string{} // the steps
	for n := 5; n <= 6; n++ {
		seat := lockcheck.Seat{Path: fmt.Sprintf("%s/lock%d", z.Root, n)}
		one, other := steps.All[n-1].JoinAs(z, "one session", seat), steps.All[n-1].JoinAs(z, "another", seat)
		see := func(what string, err error) {
			for known, name := range map[error]string{
				reentrant.ErrLocked:   "ErrLocked",
				sharedlock.ErrLocked:  "ErrLocked",
				reentrant.ErrNotHeld:  "ErrNotHeld",
				sharedlock.ErrNotHeld: "ErrNotHeld",
			} {
				if errors.Is(err, known) {
					what += ": " + name
				}
			}
			saw[what] = append(saw[what], fmt.Sprint(n))
		}
		held := one.Acquire()
		_, err := other.TryLock(z.Ctx, 0)
		see("the other session's TryLock", err)
		_, err = other.TryLock(held.Held(), 0)
		see("with the first one's hold as its context", err)
		see("its Unlock with that hold", other.Unlock(held.Held()))
		require.NoError(t, held.Held().Err())
		waits := other.StartIn(held.Held())
		waits.MustWait("the first session holds the lock")
		held.Release()
		require.Error(t, waits.Err(), "the hold was its context, and has ended")
		z.Await("its znode to go", func() bool { return len(waits.Queue()) == 0 })
		see("its Lock with that hold waits, and ends with it", nil)
	}
	in := func(what string) string { return strings.Join(saw[what], ", ") }
	chapter.SaysIn(
		t,
		"operations.md",
		"two sessions of one process; one has the lock; the other's TryLock: ErrLocked: steps %s",
		in("the other session's TryLock: ErrLocked"),
	)
	chapter.SaysIn(t, "operations.md", "its TryLock with the first one's hold as its context: ErrLocked: steps %s",
		in("with the first one's hold as its context: ErrLocked"))
	chapter.SaysIn(
		t,
		"operations.md",
		"its Unlock with that hold: ErrNotHeld: steps %s",
		in("its Unlock with that hold: ErrNotHeld"),
	)
	chapter.SaysIn(
		t,
		"operations.md",
		"its Lock with that hold waits until the hold ends, fails then, and leaves no znode: steps %s",
		in("its Lock with that hold waits, and ends with it"),
	)
}

// A repeater sends frames of one kind twice, from when it is on.
type repeater struct {
	op       wiretap.Op // of requests
	kind     wiretap.Kind
	on       atomic.Bool
	repeated atomic.Int32
}

type repeating struct {
	*zktest.Altered
	*repeater
	greeted bool
}

func (r *repeater) line(tap zk.Dialer) zk.Dialer {
	return zktest.Over(func(c net.Conn) net.Conn {
		alter := func(n int, frame []byte) ([]byte, error) {
			kind := wiretap.Reply
			if n > 0 && int32(binary.BigEndian.Uint32(frame[4:])) == -1 {
				kind = wiretap.Notification
			}
			if kind != r.kind || !r.on.Load() {
				return frame, nil
			}
			r.repeated.Add(1)
			return slices.Concat(frame, frame), nil
		}
		return &repeating{repeater: r, Altered: &zktest.Altered{Conn: c, Alter: alter}}
	})(tap)
}

func (c *repeating) Write(b []byte) (int, error) {
	op := wiretap.Connect
	if c.greeted {
		op = wiretap.Op(int32(binary.BigEndian.Uint32(b[8:])))
	}
	c.greeted = true
	twice := bytes.Clone(b)
	n, err := c.Altered.Write(b)
	if err == nil && c.kind == wiretap.Request && op == c.op && c.on.Load() {
		if c.repeated.Add(1); op == wiretap.Connect {
			c.on.Store(false) // or no handshake ever succeeds
		}
		_, err = c.Altered.Write(twice)
	}
	return n, err
}

// A proxy between the client and its server sends something twice.
func TestWhatIsSentTwice(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	client := func(r *repeater) (m, other *zktest.Member) {
		r.on.Store(true)
		path := fmt.Sprintf("%s/%v-%v", z.Root, r.kind, r.op)
		return step5.JoinAs(z, "A", lockcheck.Seat{Path: path, Timeout: 4 * time.Second, Through: r.line}),
			step5.JoinAs(z, "B", lockcheck.Seat{Path: path})
	}
	var harmless []string
	for _, r := range []*repeater{
		{op: wiretap.Connect},
		{op: wiretap.GetChildren},
		{op: wiretap.GetData},
		{op: wiretap.SetWatches},
		{op: wiretap.Ping},
		{op: wiretap.Delete},
		{kind: wiretap.Reply}, {kind: wiretap.Notification},
	} {
		a, b := client(r)
		first := b.Acquire()
		turn := a.Start()
		turn.MustWait("B holds the lock")
		a.Tap.HangUp() // it sends its handshake and its watch again
		z.Await("A to be back", func() bool { return len(a.Tap.Watched()) > 0 })
		first.Release()
		turn.Acquired()
		z.Await("something to be sent twice", func() bool { return r.repeated.Load() > 0 || r.op == wiretap.Delete })
		require.NoError(t, turn.Held().Err())
		turn.Release()
		last := b.Acquire()
		assert.Len(t, last.Queue(), 1)
		assert.Positive(t, r.repeated.Load())
		last.Release()
		name := r.op.String()
		switch r.kind {
		case wiretap.Reply:
			name = "all replies"
		case wiretap.Notification:
			name = "all notifications"
		}
		harmless = append(harmless, name)
	}
	chapter.SaysIn(t, "operations.md", "sent twice, and no harm is done: %s", strings.Join(harmless, ", "))

	a, b := client(&repeater{op: wiretap.Create})
	create(t, z.Observer(), a.Path, 0)
	turn := a.Acquire()
	znodes := len(turn.Queue())
	next := b.Start()
	next.MustWait("A holds the lock")
	turn.Release()
	next.MustWait("A's second znode is before B's")
	a.Close()
	next.Acquired()
	chapter.SaysIn(
		t,
		"operations.md",
		"a create is sent twice: %d znodes of the holder; after its Unlock the next one still waits; when its session is closed, the next one has the lock",
		znodes,
	)
}
