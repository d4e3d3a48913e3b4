package leased

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"
)

// Participant is a client in a lock's queue: it holds the lock, or it waits. Its znode shows what is known of it.
type Participant struct {
	Znode string    // the znode's path
	Label string    // the znode's data: see WithLabel
	Since time.Time // when the znode was created, by the servers' clock
	Reads bool      // whether RLock or TryRLock created it

	// Holds reports whether the client holds the lock: no client is left for which it has to wait. The client itself
	// may learn this later, from its server.
	Holds bool
}

// Queue returns the clients that hold the lock and those that wait for it, in the order in which they are
// served. It costs a list, and a read for each of them.
//
// A server that lags behind may not list a client that has just queued up, and may list one that has just left.
// A writer that becomes a reader at this moment may be missing. So use Queue for people and for metrics. To find
// out whether the lock can be acquired, call TryLock.
//
// Queue waits for the servers' answers until ctx ends.
func (m *Mutex) Queue(ctx context.Context) ([]Participant, error) { return m.q.participants(ctx, all) }

// Queue is like the Queue of a Mutex. Several readers can hold the lock.
func (m *RWMutex) Queue(ctx context.Context) ([]Participant, error) {
	return m.q.participants(ctx, all)
}

// Queue is like the Queue of a Mutex. Usually it shows one znode for all goroutines of a process. After a loss, or
// if a server has refused to delete a znode, it may show more.
func (c *Cohort) Queue(ctx context.Context) ([]Participant, error) { return c.q.participants(ctx, all) }

// all stands for any number of participants.
const all = math.MaxInt

// participants returns the first clients in the queue, at most this many.
func (q *queue) participants(ctx context.Context, most int) ([]Participant, error) {
	if err := q.mayList(ctx); err != nil {
		return nil, err
	}
	t := &try{s: q.s, ctx: ctx}
	found, err := doOrGiveUp(t, func() ([]Participant, error) { return q.readFirst(t, most) }, func([]Participant) {})
	return found, failed("list the queue of", q.dir, err)
}

// mayList refuses a call of Queue that cannot be answered.
func (q *queue) mayList(ctx context.Context) error {
	if err := q.check(ctx); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return failed("list the queue of", q.dir, endedBefore(ctx))
	}
	return nil
}

// readFirst lists the queue, and reads its first znodes.
func (q *queue) readFirst(t *try, most int) ([]Participant, error) {
	conn := q.s.Conn()
	var names []string
	err := q.s.untilAnswered(t, func() (err error) {
		names, _, err = conn.Children(q.dir)
		return err
	})
	if errors.Is(err, zk.ErrNoNode) {
		return nil, nil // not even the directory exists
	}
	if err != nil {
		return nil, err
	}
	names = slices.DeleteFunc(names, func(name string) bool {
		_, _, inQueue := q.number(name)
		return !inQueue
	})
	slices.SortFunc(names, func(a, b string) int {
		numberOfA, _, _ := q.number(a)
		numberOfB, _, _ := q.number(b)
		return cmp.Compare(numberOfA, numberOfB)
	})

	var found []Participant
	writerBefore := false
	for _, name := range names {
		if len(found) == most {
			break
		}
		path := q.dir + "/" + name
		var label []byte
		var stat *zk.Stat
		err := q.s.untilAnswered(t, func() (err error) {
			label, stat, err = conn.Get(path)
			return err
		})
		if errors.Is(err, zk.ErrNoNode) {
			continue // it has left meanwhile
		}
		if err != nil {
			return nil, err
		}
		if isOwned := stat.EphemeralOwner != 0; !isOwned {
			continue // it was created by hand, and is no place in the queue
		}
		_, k, _ := q.number(name)
		reads := k == read
		isFirst := len(found) == 0
		found = append(found, Participant{
			Znode: path,
			Label: string(label),
			Since: time.UnixMilli(stat.Ctime),
			Reads: reads,
			Holds: isFirst || reads && !writerBefore,
		})
		writerBefore = writerBefore || !reads
	}
	return found, nil
}

// untilAnswered retries a request until it is answered, or until the call gives up.
func (s *Session) untilAnswered(t *try, request func() error) error {
	for t.ctx.Err() == nil {
		err := request()
		if !s.canRetry(err) {
			return err
		}
		pause()
	}
	return t.whyEnded()
}
