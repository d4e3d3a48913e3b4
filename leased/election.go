package leased

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"
)

// Election is for a task that only one of several processes, the leader, may do at a time. It is made of a Mutex:
// the process that holds the lock leads, and the Queue of a Mutex on the same path lists the candidates.
type Election struct {
	_    noCopy
	lock *Mutex
}

// NewElection returns the election whose directory is path, as NewMutex does. Other processes see the label
// of a candidate's session: see WithLabel.
func NewElection(s *Session, path string) *Election {
	return &Election{lock: NewMutex(s, path)}
}

// Campaign waits until this process leads, and calls lead once. When lead returns or panics, Campaign releases
// the lock, as Unlock does. A panic continues after that. To lead again, call Campaign again after it has returned.
//
// The context of lead ends with ctx, and when the leadership is lost: then its cause is a LostError, and it ends
// before another process leads. lead has to return then. Until it does, and while the session lives, no
// other process leads.
//
// The token is the fencing token of this term: see Hold.Token. Let the store check it before lead
// reads anything there: from then on, the store refuses the writes of earlier leaders.
//
// The error is that of lead. It is also ErrLost if the leadership was lost, and that of Unlock if the release has
// failed. If ctx ends before this process leads, Campaign returns the error of Mutex.Lock, and does not call lead.
//
// Do not call Campaign within lead. With lead's context it is re-entry: the inner lead is called at once. With
// another context, the process waits for itself.
func (e *Election) Campaign(
	ctx context.Context, lead func(ctx context.Context, token int64) error,
) error {
	if e.lock == nil {
		return errors.New("leased: the Election is a zero value: make it with NewElection")
	}
	return campaign(ctx, e.lock.Lock, lead)
}

// campaign is Campaign with any lock.
func campaign(
	ctx context.Context, lock func(context.Context) (*Hold, error), lead func(ctx context.Context, token int64) error,
) error {
	if lead == nil {
		return errors.New("leased: Campaign needs a function that leads")
	}
	return do(ctx, lock, func(ctx context.Context, hold *Hold) error { return lead(ctx, hold.Token()) })
}

// Leader returns the label of the process that leads, or "" if none does. It costs a list and a read.
//
// The server that answers may lag behind, and the leadership may end at any moment. So use the answer only
// for display or metrics, or to forward a request to the leader, which may have to refuse it. A process may do the
// task only within Campaign.
func (e *Election) Leader(ctx context.Context) (label string, err error) {
	if e.lock == nil {
		return "", errors.New("leased: the Election is a zero value: make it with NewElection")
	}
	first, err := e.lock.q.participants(ctx, 1)
	if err != nil || len(first) == 0 {
		return "", err
	}
	return first[0].Label, nil
}

// Observe calls changed with the label of the process that leads, or "" if none does, and again after a change,
// until ctx ends. Like the answer of Leader, the label may be out of date. If
// several changes follow quickly, Observe may leave out all but the last. The next call comes when changed has returned.
//
// The error is that of ctx, or of a server that refuses a request.
func (e *Election) Observe(ctx context.Context, changed func(leader string)) error {
	if e.lock == nil {
		return errors.New("leased: the Election is a zero value: make it with NewElection")
	}
	q := e.lock.q
	if err := q.mayList(ctx); err != nil {
		return err
	}
	t := &try{s: q.s, ctx: ctx}
	last := "none yet"
	for {
		lost := q.s.watchesLost() // taken before the watch is set
		now, err := doOrGiveUp(t, func() (leader, error) { return q.watchLeader(t) }, func(leader) {})
		if err != nil {
			return failed("observe the election", q.dir, err)
		}
		if now.znode != last {
			changed(now.label)
			last = now.znode
		}
		select {
		case <-now.over:
		case <-lost:
		case <-ctx.Done():
			return failed("observe the election", q.dir, whyEnded(ctx))
		case <-q.s.done: // the next request fails
		}
	}
}

// leader is the first znode of an election's queue, or none.
type leader struct {
	znode, label string
	over         <-chan zk.Event // is ready when that may have changed
}

// watchLeader returns the first znode, with a watch on it. If there is none, the watch is on the directory.
func (q *queue) watchLeader(t *try) (now leader, err error) {
	for {
		now, err := q.watchFirst(t)
		isGone := errors.Is(err, zk.ErrNoNode)
		if !isGone && (err != nil || now.znode != "") {
			return now, err
		}
		if !isGone {
			now.over, isGone, err = q.watchDirectory(t)
			first, listErr := q.readFirst(t, 1)
			if err = errors.Join(err, listErr); err != nil {
				return leader{}, err
			}
			if len(first) == 0 && !isGone {
				return now, nil
			}
		}
	}
}

// watchFirst returns the first znode with a watch, or none. The error is zk.ErrNoNode if it was deleted meanwhile.
func (q *queue) watchFirst(t *try) (now leader, err error) {
	first, err := q.readFirst(t, 1)
	if err != nil || len(first) == 0 {
		return leader{}, err
	}
	err = q.s.untilAnswered(t, func() (err error) {
		_, _, now.over, err = q.s.Conn().GetW(first[0].Znode)
		return err
	})
	now.znode, now.label = first[0].Znode, first[0].Label
	return now, err
}

// watchDirectory sets a watch on the directory's children, or on its creation. It reports whether the directory was
// created meanwhile.
func (q *queue) watchDirectory(t *try) (over <-chan zk.Event, isNew bool, err error) {
	conn := q.s.Conn()
	err = q.s.untilAnswered(t, func() (err error) {
		_, _, over, err = conn.ChildrenW(q.dir)
		return err
	})
	if !errors.Is(err, zk.ErrNoNode) {
		return over, false, err
	}
	err = q.s.untilAnswered(t, func() (err error) {
		isNew, _, over, err = conn.ExistsW(q.dir)
		return err
	})
	return over, isNew, err
}
