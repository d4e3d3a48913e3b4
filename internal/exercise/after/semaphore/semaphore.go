// Package semaphore is the solution of an exercise after the steps: a semaphore gives permits to a
// fixed number of clients at a time.
package semaphore

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	predecessorwatch "zklock/step04_predecessor_watch"
)

// Semaphore is one semaphore, seen by one client.
type Semaphore struct {
	conn    *zk.Conn
	path    string
	permits int
}

// New returns the semaphore at path. All clients must give the same number of permits. The waiters
// queue at the lock path/line. Each child of path/permits is a permit that is taken.
func New(conn *zk.Conn, path string, permits int) *Semaphore {
	return &Semaphore{conn, path, permits}
}

// Acquire blocks until it gets a permit, and returns the function that gives it back. If ctx ends
// first, it returns ctx's error and leaves nothing behind.
//
// Only the holder of the line's lock takes a permit or waits for one. So no client is overtaken,
// and a release wakes one client.
func (s *Semaphore) Acquire(ctx context.Context) (release func() error, err error) {
	line := predecessorwatch.New(s.conn, s.path+"/line")
	if err := line.Lock(ctx); err != nil {
		return nil, err
	}
	node, err := s.take(ctx)
	if left := line.Unlock(); left != nil && err == nil {
		err = errors.Join(left, s.conn.Delete(node, -1))
	}
	if err != nil {
		return nil, fmt.Errorf("semaphore %s: %w", s.path, err)
	}
	return func() error { return s.conn.Delete(node, -1) }, nil
}

// take waits until fewer permits are taken than there are, and takes one. The caller holds the
// line's lock, so no other client takes one meanwhile.
func (s *Semaphore) take(ctx context.Context) (node string, err error) {
	for {
		out, _, changed, err := s.conn.ChildrenW(s.path + "/permits")
		if errors.Is(err, zk.ErrNoNode) {
			// The line's lock has made path.
			_, err = s.conn.Create(s.path+"/permits", nil, zk.FlagPersistent, zk.WorldACL(zk.PermAll))
			if err == nil || errors.Is(err, zk.ErrNodeExists) {
				continue
			}
		}
		if err != nil {
			return "", err
		}
		if len(out) < s.permits {
			return s.conn.Create(s.path+"/permits/permit-", nil, zk.FlagEphemeralSequential, zk.WorldACL(zk.PermAll))
		}
		select {
		case event := <-changed:
			if event.Err != nil { // the session has ended, or the client is closed
				return "", event.Err
			}
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}
