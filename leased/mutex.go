package leased

import "context"

// Mutex is a process's view of a lock that one client at a time can hold. It is safe for use by many
// goroutines: each of them queues up with a znode of its own.
type Mutex struct {
	_ noCopy
	q *queue
}

// NewMutex returns the lock whose directory is path. The path is absolute and below the root, such
// as /locks/orders. NewMutex sends no request; if an argument is invalid, Lock returns the error.
//
// The children of this directory that are named _c_<guid>-lock-<number> are the queue (the _c_ may be missing). So
// zk.Lock and Curator's InterProcessMutex on the same path join the same queue. Other children, and those that are not
// ephemeral, are ignored: an RWMutex or another kind of lock on the same path does not exclude a Mutex.
//
// Two Mutex values of one session for one path are the same lock: with a context from a hold of one, Lock of
// the other is re-entry.
func NewMutex(s *Session, path string) *Mutex {
	return &Mutex{q: &queue{s: s, dir: path, kinds: []kind{exclusive}}}
}

// Lock blocks until its znode is the first in the queue, and returns the hold. ctx bounds the wait,
// and nothing else: to limit the wait, give it a deadline.
//
// When the lock can no longer be relied on, the contexts that Hold.Context has made end, with a LostError as
// their cause. Work under the lock should stop then, and call Unlock: while the session
// lives, no other client acquires the lock before that Unlock. If a program deletes the znode, the holder
// learns of it only at Unlock.
//
// With a context that Hold.Context has made, or one made from it, Lock is re-entry: it returns the
// same hold at once, and one more Unlock is due. If that hold was lost, Lock returns the reason.
//
// If ctx ends first, Lock returns its error at once; the znode is deleted later. The error is also
// ErrLocked, with the name and the label of the znode that Lock waited for, or ErrNoAnswer if no server has named
// one. If ctx had ended before the call, the error is only ctx's. A connection that fails, or a session that
// expires, does not end the wait. A server that refuses a request does, for example with zk.ErrNoAuth. So does
// Session.Close: then the error says that the session is closed.
func (m *Mutex) Lock(ctx context.Context) (*Hold, error) {
	return m.q.take(ctx, exclusive, true)
}

// TryLock is like Lock, but does not wait for other clients: if one holds the lock or is queued, TryLock returns
// ErrLocked. It waits only for the servers' answers, until ctx ends.
//
// It first reads the queue. If another client is in it, this costs two reads and no write, and the error has the
// name and the label of the znode that Lock would wait for. A server that lags behind may name a znode that has
// just been deleted.
func (m *Mutex) TryLock(ctx context.Context) (*Hold, error) {
	return m.q.take(ctx, exclusive, false)
}
