package zktest

import (
	"context"
	"fmt"

	"zklock/internal/wiretap"
)

// A Locker is a lock as steps 1 to 4 offer it.
type Locker interface {
	Lock(context.Context) error
	Unlock() error
}

// A Member of a line is a client with its lock and its call to Lock.
type Member struct {
	*Client
	Locker
	*Attempt
}

// Enter brings a new client to a lock and returns when it stands in the queue.
func (z *Zoo) Enter(name string, join func(*Client) Locker) *Member {
	z.t.Helper()
	c := z.Client(name)
	lock := join(c)
	m := &Member{c, lock, z.Go(c, lock.Lock)}
	m.Queued()
	return m
}

// Line brings a holder and n waiters to a lock, one after the other. It is for
// locks whose waiters wait silently, and returns when all of them do.
func (z *Zoo) Line(n int, join func(*Client) Locker) (line []*Member) {
	z.t.Helper()
	holder := z.Enter("the holder", join)
	holder.Acquired()
	line = append(line, holder)
	for i := range n {
		line = append(line, z.Enter(fmt.Sprintf("waiter %d", i+1), join))
	}
	z.Settle(line[1:]...)
	return line
}

// Pass lets the first of the line release the lock. It returns the rest of the
// line when its first holds the lock and all others wait silently again.
func (z *Zoo) Pass(line []*Member) []*Member {
	z.t.Helper()
	if err := line[0].Unlock(); err != nil {
		z.t.Fatalf("%s: Unlock: %v", line[0].Name, err)
	}
	line = line[1:]
	if len(line) > 0 {
		line[0].Acquired()
		z.Settle(line[1:]...)
	}
	return line
}

// Settle returns when each waiter has received every notification of what has
// happened so far, has done what it does about it, and waits silently.
func (z *Zoo) Settle(waiters ...*Member) {
	z.t.Helper()
	for _, m := range waiters {
		z.Barrier(m.Client)
		z.Await(m.Name+" to wait silently", func() bool {
			if m.Returned() {
				z.t.Fatalf("%s is not the first in the queue, and its Lock returned %v", m.Name, m.err)
			}
			silently, _ := m.Tap.Waiting(0)
			return silently
		})
	}
}

// Count is CountClients for members of a line.
func (z *Zoo) Count(members ...*Member) func() wiretap.Counts {
	var clients []*Client
	for _, m := range members {
		clients = append(clients, m.Client)
	}
	return z.CountClients(clients...)
}

// CountClients counts, from now on, what passes between the clients and the
// server. The function that it returns gives the sum so far.
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
