package zktest

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"

	"zklock/internal/wiretap"
)

// A Locker is a lock as steps 1 to 4 offer it.
type Locker interface {
	Lock(context.Context) error
	Unlock() error
}

// A Session is what a lock is made from: that of steps 5 and 6, or a stand-in where a lock is made
// only from a connection.
type Session interface {
	Conn() *zk.Conn
	Close()
}

// A Hold is what Lock returns in steps 5 and 6, and in leased.
type Hold interface {
	Context(parent context.Context) context.Context
	Token() int64
	Unlock() error
}

// A Way to take a lock, in one form for all steps: the Hold that Lock returns releases it.
type Way struct {
	Lock    func(ctx context.Context) (Hold, error)
	TryLock func(ctx context.Context) (Hold, error) // nil: the lock has no such call

	// Unlock is that of the lock itself, as in steps 1 to 4. Nil: only a hold can unlock.
	Unlock func() error
}

// HasHolds reports whether Lock returns a hold, as in steps 5 and 6: it has a token, and its
// context ends when the lock is lost.
func (w Way) HasHolds() bool { return w.Unlock == nil }

// HoldOf makes a hold for a lock whose Lock returns none.
// It has no token, and does not learn of a loss.
func HoldOf(unlock func() error) Hold { return plainHold{unlock} }

type plainHold struct{ unlock func() error }

func (h plainHold) Context(parent context.Context) context.Context { return parent }
func (h plainHold) Token() int64                                   { return 0 }
func (h plainHold) Unlock() error                                  { return h.unlock() }

// A Member of a story is a client with its lock.
type Member struct {
	*Client
	Way
	Session Session
	Path    string  // of the lock
	Reader  *Member // the same client as a reader, where readers share

	zoo *Zoo
}

// NewMember gives a client its lock: the way to take it, and the way to take it
// as a reader, or nil.
func NewMember(z *Zoo, c *Client, s Session, path string, write Way, read *Way) *Member {
	m := &Member{Client: c, Way: write, Session: s, Path: path, zoo: z}
	if read != nil {
		m.Reader = &Member{Client: c, Way: *read, Session: s, Path: path, zoo: z}
	}
	return m
}

// Queue lists the names in the lock's directory.
func (m *Member) Queue() []string {
	m.zoo.t.Helper()
	return m.zoo.Names(m.Path)
}

// Znode is the path of the last znode that the server has created for the member in the lock's
// directory, or "".
func (m *Member) Znode() string {
	made := slices.DeleteFunc(
		m.Tap.Done(wiretap.Create),
		func(path string) bool { return !strings.HasPrefix(path, m.Path+"/") },
	)
	if len(made) == 0 {
		return ""
	}
	return made[len(made)-1]
}

// Requests counts the member's requests since the mark, by kind.
func (m *Member) Requests(mark int) map[wiretap.Op]int {
	return wiretap.Count(m.Tap.Since(mark)).Requests
}

// Asked lists the member's requests since the mark, in order.
func (m *Member) Asked(mark int) []string { return wiretap.Count(m.Tap.Since(mark)).Asked }

// Line brings a holder and n waiters to a lock, one after the other. It returns when all waiters
// wait silently, so it is for locks whose waiters do not poll.
func (z *Zoo) Line(n int, join func(name string) *Member) (line []*Turn) {
	z.t.Helper()
	line = append(line, join("the holder").Acquire())
	for i := range n {
		waiter := join(fmt.Sprintf("waiter %d", i+1)).Start()
		waiter.Queued()
		line = append(line, waiter)
	}
	z.Settle(line[1:]...)
	return line
}

// Pass makes the first of the line release the lock. It returns the rest of the line, once the next
// client holds the lock and all others wait silently again.
func (z *Zoo) Pass(line []*Turn) []*Turn {
	z.t.Helper()
	line[0].Release()
	line = line[1:]
	if len(line) > 0 {
		line[0].Acquired()
		z.Settle(line[1:]...)
	}
	return line
}

// Settle returns when each waiter has received every notification of what has happened so far, has
// reacted to it, and waits silently.
func (z *Zoo) Settle(waiters ...*Turn) {
	z.t.Helper()
	for _, t := range waiters {
		z.Barrier(t.Client)
		z.Await(fmt.Sprintf("%v to wait silently", t.Name), func() bool {
			if t.Returned() {
				z.t.Fatalf("%s is not the first in the queue, and its Lock returned %v", t.Name, t.err)
			}
			silently, _ := t.Tap.Waiting(0)
			return silently
		})
	}
}

// Count is CountClients for turns.
func (z *Zoo) Count(turns ...*Turn) func() wiretap.Counts {
	var clients []*Client
	for _, t := range turns {
		clients = append(clients, t.Client)
	}
	return z.CountClients(clients...)
}

// CountClients counts, from now on, what passes between the clients and the server. The function
// that it returns returns the sum so far.
func (z *Zoo) CountClients(clients ...*Client) func() wiretap.Counts {
	marks := make([]int, len(clients))
	for i, c := range clients {
		marks[i] = c.Tap.Mark()
	}
	return func() wiretap.Counts {
		z.t.Helper()
		z.Barrier(clients...)
		var frames [][]wiretap.Frame
		for i, c := range clients {
			frames = append(frames, c.Tap.Since(marks[i]))
		}
		return wiretap.Count(frames...)
	}
}
