package leased

import "context"

// Mutex is a process's view of a lock that one client at a time can hold. It is safe for use by many
// goroutines: each of them queues up with a znode of its own.
type Mutex struct {
	_ noCopy
	q *queue
}

// NewMutex returns the lock whose directory is path, absolute and below the root, such
// as /locks/orders. It sends nothing: Lock reports a bad argument.
//
// The children of this directory that are named <guid>-lock-<number> are the queue. So a zk.Lock and Curator's
// InterProcessMutex on the same path queue up in it also. Other children, and those that are not ephemeral, are
// ignored: an RWMutex or another kind of lock on the same path does not exclude a Mutex.
//
// Two Mutex values of one session for one path stand for one lock: inside the hold of one, Lock of the
// other is re-entry.
func NewMutex(s *Session, path string) *Mutex {
	return &Mutex{q: &queue{s: s, dir: path, kinds: []kind{exclusive}}}
}

// Lock blocks until its znode is the first in the queue, and returns the hold. ctx bounds the wait,
// and nothing else: for a deadline of the wait, give it one.
//
// The contexts that Hold.Context makes end with a LostError as their cause when the lock can no
// longer be relied on. Work under the lock should stop then, and call Unlock: while the session
// lives, no other client acquires the lock before that Unlock. If another client deletes the znode, the holder
// learns of it only at Unlock.
//
// With a context that Hold.Context has made, or one made from it, Lock is re-entry: it returns the
// same hold at once, and one more Unlock is due. A hold that has ended refuses it, with the reason.
//
// When ctx ends first, Lock returns its error at once; the znode is deleted later. The error is also
// ErrLocked, with the name and the label of the znode that Lock waited for, or ErrNoAnswer, if no server has named
// one. A connection that fails, or a session that expires, does not end the wait. What the server refuses, such as
// zk.ErrNoAuth, does.
func (m *Mutex) Lock(ctx context.Context) (*Hold, error) {
	return m.q.take(ctx, exclusive, true)
}

// TryLock is Lock that waits for no other client: if one holds the lock, or is queued, TryLock returns
// ErrLocked. It waits only for the servers' answers, until ctx ends.
//
// It first reads the queue. If another client is in it, that is two reads and no write, and the error has the
// name and the label of the znode that Lock would wait for. A server that lags behind may name a znode that has
// just been deleted.
func (m *Mutex) TryLock(ctx context.Context) (*Hold, error) {
	return m.q.take(ctx, exclusive, false)
}
