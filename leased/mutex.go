package leased

import (
	"context"
	"time"
)

// Mutex is a process's view of a lock that one at a time can hold. It is safe for use by many
// goroutines: each of them queues up with a znode of its own.
type Mutex struct {
	_ noCopy
	q *queue
}

// NewMutex returns the lock whose directory is path, absolute and below the root, such
// as /locks/orders. It sends nothing: Lock reports a bad argument.
//
// The children whose names end in lock-<ten digits or more> are the queue. So a zk.Lock or
// Curator's InterProcessMutex on the same path stands in it, too. Other children are ignored: an
// RWMutex or another kind of lock on the same path does not exclude a Mutex.
//
// To lock again inside a hold, use the same Mutex: another one for the same path queues up.
func NewMutex(s *Session, path string) *Mutex {
	return &Mutex{q: &queue{s: s, dir: path, kinds: []kind{exclusive}}}
}

// Lock blocks until its znode is the first in the queue, and returns the hold.
//
// The hold's context ends with a LostError as its cause when the lock can no longer be relied
// on. Work under the lock should stop then, and call Unlock: while the session lives, nobody
// else comes in before that Unlock. If somebody deletes the znode, only Unlock notices. The
// context ends with ctx, too, without a release: a deadline for the waiting belongs in TryLock.
//
// With a hold's context, or one made from it, Lock is re-entry: it returns the same hold at
// once, and one more Unlock is due.
//
// When ctx ends first, Lock returns its error at once; the znode is deleted later.
// A connection that fails, or a session that expires, does not end the wait. What
// the server refuses, such as zk.ErrNoAuth, does.
//
// If ctx is of a type of your own, its methods must not block. When a hold is lost, they are
// called with the session's mutex locked, and the session would stand still.
func (m *Mutex) Lock(ctx context.Context) (*Hold, error) {
	return m.q.take(ctx, exclusive, forever)
}

// TryLock is Lock that returns ErrLocked when it does not get the lock within wait. With 0 it
// does not wait behind anybody. For the servers' answers it waits longer than that if it has
// to, but no longer than a second: without an answer the error is ErrNoAnswer.
func (m *Mutex) TryLock(ctx context.Context, wait time.Duration) (*Hold, error) {
	return m.q.take(ctx, exclusive, max(wait, 0))
}
