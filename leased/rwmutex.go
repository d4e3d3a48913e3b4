package leased

import "context"

// RWMutex is a process's view of a lock that many readers or one writer can hold. It is safe
// for use by many goroutines. Clients are served in order: a reader waits for the writers that queued up
// before it, and a writer for all clients that queued up before it.
type RWMutex struct {
	_ noCopy
	q *queue
}

// NewRWMutex returns the lock whose directory is path, as NewMutex does. The children of this directory that are
// named _c_<guid>-__READ__<number> or _c_<guid>-__WRIT__<number> are the queue (the _c_ may be missing). So
// Curator's InterProcessReadWriteLock on the same path joins the same queue. A Mutex does not.
func NewRWMutex(s *Session, path string) *RWMutex {
	return &RWMutex{q: &queue{s: s, dir: path, kinds: []kind{read, write}}}
}

// Lock is like the Lock of a Mutex, for a writer. With the context of a reader's hold it returns ErrUpgrade,
// and the hold continues.
func (m *RWMutex) Lock(ctx context.Context) (*Hold, error) {
	return m.q.take(ctx, write, true)
}

// RLock is like the Lock of a Mutex, for a reader. With the context of a writer's hold it is re-entry, and the
// hold remains a writer's until its last Unlock.
//
// A reader that calls RLock again, with a context that its hold has not made, queues up behind the writers that
// have queued up meanwhile. They wait for the reader, so it waits for itself.
func (m *RWMutex) RLock(ctx context.Context) (*Hold, error) {
	return m.q.take(ctx, read, true)
}

// TryLock is like the TryLock of a Mutex, for a writer.
func (m *RWMutex) TryLock(ctx context.Context) (*Hold, error) {
	return m.q.take(ctx, write, false)
}

// TryRLock is like the TryLock of a Mutex, for a reader.
func (m *RWMutex) TryRLock(ctx context.Context) (*Hold, error) {
	return m.q.take(ctx, read, false)
}
