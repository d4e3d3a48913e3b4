package leased

import (
	"context"
	"errors"
	"fmt"
	pathpkg "path"
	"strings"

	"github.com/go-zookeeper/zk"
)

// Downgrade makes a writer's hold a reader's, and no writer acquires the lock in between. It returns the
// reader's hold, for which an Unlock is due. The writer's hold is released, and its contexts have ended, before
// another reader acquires the lock.
//
// One transaction of the servers deletes the writer's znode, and creates a reader's with the same number. So
// clients that have queued up behind the writer are behind this reader. The token is still that of the writer.
//
// If Downgrade returns ErrNotDowngraded, nothing has changed, and each Unlock that was due is still due. The error
// says why, for example that ctx had ended before the call. If the lock was lost before the call, the error is also
// ErrLost.
//
// If the error is not ErrNotDowngraded, there is no hold any more, and no Unlock is due: the lock is released, if
// necessary in the background. This is so if ctx ends, or the lock is lost, during the call, and if the server
// refuses the transaction.
func (m *RWMutex) Downgrade(ctx context.Context, h *Hold) (*Hold, error) {
	if err := m.q.check(ctx); err != nil {
		return nil, fmt.Errorf("%w: %w", err, ErrNotDowngraded) // in this order, since err begins with "leased:"
	}
	reader, err := m.q.downgrade(ctx, h, m.q.exchange)
	return reader, failed("downgrade", m.q.dir, err)
}

// ErrNotDowngraded says that Downgrade has changed nothing. Downgrade needs a writer's hold of this lock that was not
// lost, and for which exactly one Unlock is due.
var ErrNotDowngraded = errors.New("the hold is unchanged")

// downgrade is Downgrade. The exchange returns a reader's hold that has not begun.
func (q *queue) downgrade(ctx context.Context, writer *Hold, exchange func(place) (*Hold, error)) (*Hold, error) {
	isOurs := !writer.isNone() && writer.q.holdKey() == q.holdKey() && writer.place.kind == write
	switch {
	case !isOurs:
		return nil, fmt.Errorf("%w: want a hold that Lock of this RWMutex has returned", ErrNotDowngraded)
	case ctx.Err() != nil:
		return nil, fmt.Errorf("%w: %w", ErrNotDowngraded, endedBefore(ctx))
	}
	if err := writer.exitIfLast(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotDowngraded, err)
	}
	writer.end(errReleased) // before another reader can acquire the lock
	defer writer.stopUsing()

	change := func() (*Hold, error) { return exchange(writer.place) }
	late := func(reader *Hold) {
		reader.begin()
		_ = reader.Unlock() // it logs a refusal
	}
	reader, err := doOrGiveUp(&try{s: q.s, ctx: ctx}, change, late)
	if err != nil {
		return nil, err
	}
	reader.begin() // it depends on the writer's lease, which is renewed until stopUsing
	return reader, nil
}

// exitIfLast is like exit if the last Unlock is due and the hold was not lost. Otherwise it changes
// nothing.
func (h *Hold) exitIfLast() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.ended != nil:
		return h.ended
	case h.count != 1:
		return fmt.Errorf("%d calls of Unlock are due, want 1", h.count)
	}
	h.count = 0
	return nil
}

// exchange replaces the writer's znode by a reader's, and retries until it knows that this is done.
// If it cannot be done, the writer's znode is deleted.
//
// The reader's name is the writer's except for its kind. So a transaction that is retried, because its answer
// was lost, finds the reader's znode: no other client creates one with our guid.
func (q *queue) exchange(writer place) (*Hold, error) {
	reader := writer
	reader.kind = read
	dir, name := pathpkg.Split(writer.node)
	reader.node = dir + strings.Replace(name, string(write), string(read), 1)
	for {
		_, err := q.s.Conn().Multi(
			&zk.CreateRequest{Path: reader.node, Data: q.s.label, Acl: q.s.acl, Flags: zk.FlagEphemeral},
			&zk.DeleteRequest{Path: writer.node, Version: -1},
		)
		sessionEnded := q.s.Conn().SessionID() != writer.owner
		switch {
		case q.s.isClosed():
			return nil, q.s.whyClosed()
		case sessionEnded:
			return nil, errExpired
		case err == nil, errors.Is(err, zk.ErrNodeExists):
			return newHold(q, reader), nil
		case errors.Is(err, zk.ErrNoNode):
			return nil, errZnodeDeleted
		case !q.s.canRetry(err):
			_ = q.forget(writer)
			_ = q.forget(reader) // of an earlier try whose answer was lost
			return nil, fmt.Errorf("the server has refused it, and the lock is released: %w", err)
		}
		pause()
	}
}
