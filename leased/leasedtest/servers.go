package leasedtest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"zklock/leased"
	"zklock/leased/internal/inmemory"
)

// Servers stand for the servers of one ZooKeeper. Two locks on the same path exclude one another only if their
// sessions were opened on the same Servers. The zero value is ready to use.
type Servers struct {
	mu      sync.Mutex
	lines   map[lineName]*line
	changes int64         // of all lines
	changed chan struct{} // is closed at the next change; nil if nobody waits for it
}

// lineName names a line. Locks of different kinds on one path do not see each other.
type lineName struct {
	path   string
	shared bool // of an RWMutex
}

// line is the queue of one lock.
type line struct {
	places     []*place
	lastChange int64
}

// place is one place in a line.
type place struct {
	s      *Session
	number int64
	since  time.Time
	reads  bool
	holds  bool
	gone   leased.Reason // why it is not in the line any more: after leave it is ReasonClosed
}

// queue is a lock, as one session sees it.
type queue struct {
	s  *Session
	at lineName
}

// session is nil for a lock without one: leased refuses that.
func (q queue) session() *leased.Session {
	if q.s == nil {
		return nil
	}
	return q.s.session
}

// take is Lock, RLock, TryLock or TryRLock.
func (q queue) take(ctx context.Context, reads, mayWait bool) (*leased.Hold, error) {
	stand := func(letIn func(inmemory.Place)) error { return q.stand(ctx, reads, mayWait, letIn) }
	return door.Take(ctx, q.session(), q.at.path, reads, q.at.shared, stand)
}

// stand joins the line, and waits until there is no client left to wait for.
func (q queue) stand(ctx context.Context, reads, mayWait bool, letIn func(inmemory.Place)) error {
	z := q.s.servers
	mine := &place{s: q.s, reads: reads}
	z.join(q.at, mine)
	for {
		before, changed, err := z.look(q.at, mine, letIn)
		if before == nil {
			return err
		}
		if !mayWait {
			_ = z.leave(q.at, mine)
			return before.asLocked(q)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			_ = z.leave(q.at, mine)
			return door.GivenUp(ctx, q.session(), before.asLocked(q))
		}
	}
}

func (z *Servers) join(at lineName, mine *place) {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.append(at, mine)
}

// append puts a place at the end of the line, unless its session is closed. The caller has z.mu.
func (z *Servers) append(at lineName, mine *place) {
	if mine.s.closed {
		mine.gone = leased.ReasonClosed
		return
	}
	if z.lines == nil {
		z.lines = map[lineName]*line{}
	}
	if z.lines[at] == nil {
		z.lines[at] = &line{}
	}
	z.lines[at].places = append(z.lines[at].places, mine)
	z.change(at)
	mine.number, mine.since, mine.gone = z.changes, time.Now(), ""
}

// look returns the place that mine has to wait for. If there is none, look lets mine in, and it holds the lock from
// now on, unless there is an error: the session is closed.
func (z *Servers) look(
	at lineName, mine *place, letIn func(inmemory.Place),
) (before *place, changed <-chan struct{}, err error) {
	z.mu.Lock()
	defer z.mu.Unlock()
	if mine.gone == leased.ReasonExpired {
		z.append(at, mine) // start again at the end
	}
	if mine.gone == leased.ReasonClosed {
		return nil, nil, zk.ErrClosing
	}
	l := z.lines[at]
	before = l.before(mine)
	if before == nil {
		mine.holds = true
		letIn(inmemory.Place{
			Znode:   mine.znode(at),
			Token:   l.lastChange,
			Release: func() error { return z.leave(at, mine) },
		})
		return nil, nil, nil
	}
	return before, z.nextChange(), nil
}

// nextChange returns a channel that is closed at the next change. The caller has z.mu.
func (z *Servers) nextChange() <-chan struct{} {
	if z.changed == nil {
		z.changed = make(chan struct{})
	}
	return z.changed
}

// first returns the number and the label of the first place in the line, or 0 if it is empty.
func (q queue) first() (number int64, label string, next <-chan struct{}) {
	z := q.s.servers
	z.mu.Lock()
	defer z.mu.Unlock()
	if l := z.lines[q.at]; l != nil && len(l.places) > 0 {
		number, label = l.places[0].number, l.places[0].s.label
	}
	return number, label, z.nextChange()
}

// before returns the last place that mine has to wait for, nil if there is none.
func (l *line) before(mine *place) (before *place) {
	for _, other := range l.places {
		if other == mine {
			break
		}
		bothRead := other.reads && mine.reads
		if !bothRead {
			before = other
		}
	}
	return before
}

// participants is like Queue.
func (q queue) participants(ctx context.Context) (found []leased.Participant, err error) {
	if err := door.MayList(ctx, q.session(), q.at.path); err != nil {
		return nil, err
	}
	z := q.s.servers
	z.mu.Lock()
	defer z.mu.Unlock()
	l := z.lines[q.at]
	if l == nil {
		return nil, nil
	}
	for _, p := range l.places {
		found = append(found, leased.Participant{
			Znode: p.znode(q.at),
			Label: p.s.label,
			Since: p.since,
			Reads: p.reads,
			Holds: l.before(p) == nil,
		})
	}
	return found, nil
}

// znode is the path that this place would have.
func (p *place) znode(at lineName) string {
	kind := "lock-"
	switch {
	case p.reads:
		kind = "__READ__"
	case at.shared:
		kind = "__WRIT__"
	}
	return fmt.Sprintf("%s/_c_%016x-%s%010d", at.path, p.number, kind, p.number)
}

// asLocked is the error of a call for a lock that has this place before its own.
func (p *place) asLocked(q queue) *leased.LockedError {
	return &leased.LockedError{Znode: p.znode(q.at), Label: p.s.label, SameProcess: p.s == q.s}
}

// leave removes a place from its line. The error says that it was removed before.
func (z *Servers) leave(at lineName, mine *place) error {
	z.mu.Lock()
	defer z.mu.Unlock()
	if mine.gone != "" {
		return door.Lost(mine.gone)
	}
	z.remove(at, leased.ReasonClosed, func(p *place) bool { return p == mine })
	return nil
}

// expire notifies the holders of a session that it has expired. Then the next clients can acquire the locks.
func (z *Servers) expire(s *Session) {
	z.mu.Lock()
	defer z.mu.Unlock()
	door.LoseHolds(s.session, leased.ReasonExpired)
	z.removeIn(leased.ReasonExpired, func(p *place) bool { return p.s == s })
}

// close removes all places of a closed session from their lines. From now on it gets no others.
func (z *Servers) close(s *Session) {
	z.mu.Lock()
	defer z.mu.Unlock()
	s.closed = true
	z.removeIn(leased.ReasonClosed, func(p *place) bool { return p.s == s })
}

// deleteHolders removes the places of a session that hold a lock from their lines.
func (z *Servers) deleteHolders(s *Session) {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.removeIn(leased.ReasonDeleted, func(p *place) bool { return p.s == s && p.holds })
}

// removeIn removes such places from all lines. The caller has z.mu.
func (z *Servers) removeIn(why leased.Reason, such func(*place) bool) {
	for at := range z.lines {
		z.remove(at, why, such)
	}
}

// remove removes such places from one line. The caller has z.mu.
func (z *Servers) remove(at lineName, why leased.Reason, such func(*place) bool) {
	l := z.lines[at]
	for _, p := range l.places {
		if such(p) {
			p.gone = why
		}
	}
	l.places = slices.DeleteFunc(l.places, such)
	z.change(at)
}

// change counts a change of a line, and wakes all calls that wait. The caller has z.mu.
func (z *Servers) change(at lineName) {
	z.changes++
	z.lines[at].lastChange = z.changes
	if z.changed != nil {
		close(z.changed)
		z.changed = nil
	}
}
