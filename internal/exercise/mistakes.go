package exercise

import (
	"context"
	"errors"
	pathpkg "path"
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"

	"zklock/internal/lang"
	"zklock/internal/property"
	"zklock/internal/zktest"
)

// A mistake is a small lock with a published mistake, for a learner's own test: see
// docs/mistakes.md. The files wrong_test.go of the steps have the same mistakes, in locks that are
// otherwise right.
type mistake struct {
	key  string
	what lang.Text
	lock func() property.Subject
}

// mistakes has a mistake for each step, by the name of the exercise.
var mistakes = map[string]mistake{
	"1": {
		"W4", lang.Text{EN: "Lock returns after an error", ZH: "Lock 出错照样返回"},
		func() property.Subject {
			s := property.Over("W4", func(conn *zk.Conn, path string) careless { return careless{conn, path} })
			s.Znode = true
			return s
		},
	},
	"2": {
		"W1", lang.Text{EN: "the znode is persistent", ZH: "znode 是持久节点"},
		wrongQueue("W1", zk.FlagSequence, looksAgain),
	},
	"3": {
		"W13", lang.Text{EN: "the latch that the watch opens is created after the watch has fired", ZH: "监听器触发之后，才创建它要打开的闭锁"},
		wrongQueue("W13", zk.FlagEphemeralSequential, makesItsLatchTooLate),
	},
	"4": {
		"W8", lang.Text{EN: "a client that is woken believes that it has the lock", ZH: "被唤醒就当拿到了锁"},
		wrongQueue("W8", zk.FlagEphemeralSequential, trustsTheWakeUp),
	},
	"5": {
		"W11", lang.Text{EN: "only a client that had to wait is recognized as the holder", ZH: "只有等过的才被认作持有者"},
		func() property.Subject { return property.OverHolds("W11", property.Connect, newForgetsItsHolder) },
	},
	"6": {
		"W26", lang.Text{EN: "a reader waits for a writer behind it", ZH: "读者等排在自己后面的写者"},
		func() property.Subject { return property.OverHolds("W26", property.Connect, newWaitsForAnyWriter) },
	},
}

// careless is W4: Lock ignores the error which says that another client holds the lock.
type careless struct {
	conn *zk.Conn
	path string
}

func (l careless) Lock(context.Context) error {
	_ = makeParents(l.conn, l.path)
	_, _ = l.conn.Create(l.path, nil, 0, zk.WorldACL(zk.PermAll))
	return nil
}

func (l careless) Unlock() error { return l.conn.Delete(l.path, -1) }

// queue is a lock with a queue of znodes. Each waiter watches one znode, usually the one before its
// own.
type queue struct {
	conn   *zk.Conn
	dir    string
	name   string // of a znode, before its number
	mode   int32
	before func(queue []string, at int) string                                    // the znode to wait for
	woken  func(ctx context.Context, gone <-chan zk.Event) (mine bool, err error) // how a wait ends
	node   string
}

func newQueue(conn *zk.Conn, dir string) queue {
	return queue{
		conn: conn, dir: dir, name: "lock-", mode: zk.FlagEphemeralSequential,
		before: theOneBefore, woken: looksAgain,
	}
}

// theOneBefore is right: each waits for the znode before it, and the first for none.
func theOneBefore(queue []string, at int) string {
	if at == 0 {
		return ""
	}
	return queue[at-1]
}

func wrongQueue(
	name string,
	mode int32,
	woken func(ctx context.Context, gone <-chan zk.Event) (mine bool, err error),
) func() property.Subject {
	return func() property.Subject {
		return property.Over(name, func(conn *zk.Conn, path string) *queue {
			l := newQueue(conn, path)
			l.mode, l.woken = mode, woken
			return &l
		})
	}
}

func (l *queue) Lock(ctx context.Context) error {
	if err := makeParents(l.conn, l.dir+"/"+l.name); err != nil {
		return err
	}
	node, err := l.conn.Create(l.dir+"/"+l.name, nil, l.mode, zk.WorldACL(zk.PermAll))
	if err != nil {
		return err
	}
	l.node = node
	for {
		names, _, err := l.conn.Children(l.dir)
		if err != nil {
			return err
		}
		slices.SortFunc(names, zktest.BySequence)
		at := slices.Index(names, pathpkg.Base(node))
		if at < 0 {
			return zk.ErrNoNode
		}
		before := l.before(names, at)
		if before == "" {
			return nil
		}
		_, _, gone, err := l.conn.GetW(l.dir + "/" + before)
		if errors.Is(err, zk.ErrNoNode) {
			continue
		}
		if err != nil {
			return err
		}
		if mine, err := l.woken(ctx, gone); mine || err != nil {
			return err
		}
	}
}

func (l *queue) Unlock() error { return l.conn.Delete(l.node, -1) }

// looksAgain is right: a client that is woken lists the queue again.
func looksAgain(ctx context.Context, gone <-chan zk.Event) (mine bool, err error) {
	select {
	case event := <-gone:
		return false, event.Err
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// trustsTheWakeUp is W8: a client that is woken takes the lock, although the one before it may have
// been a waiter that crashed.
func trustsTheWakeUp(ctx context.Context, gone <-chan zk.Event) (mine bool, err error) {
	_, err = looksAgain(ctx, gone)
	return true, err
}

// makesItsLatchTooLate is W13: nothing opens the latch, because the watch has fired before.
func makesItsLatchTooLate(ctx context.Context, gone <-chan zk.Event) (mine bool, err error) {
	if _, err := looksAgain(ctx, gone); err != nil {
		return false, err
	}
	latch := make(chan struct{})
	select {
	case <-latch:
		return false, nil
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// makeParents creates the parents of a znode that are missing.
func makeParents(conn *zk.Conn, path string) error {
	parent := pathpkg.Dir(path)
	if parent == "/" {
		return nil
	}
	if err := makeParents(conn, parent); err != nil {
		return err
	}
	_, err := conn.Create(parent, nil, 0, zk.WorldACL(zk.PermAll))
	if errors.Is(err, zk.ErrNodeExists) {
		return nil
	}
	return err
}

// forgetsItsHolder is W11: a client that finds the lock free is not recognized as its holder.
type forgetsItsHolder struct{ queue }

func newForgetsItsHolder(session zktest.Session, path string) *forgetsItsHolder {
	return &forgetsItsHolder{newQueue(session.Conn(), path)}
}

func (l *forgetsItsHolder) Lock(ctx context.Context) (*countedHold, error) {
	if h, isInside := ctx.Value(l).(*countedHold); isInside {
		h.count++
		return h, nil
	}
	others, _, _ := l.conn.Children(l.dir)
	if err := l.queue.Lock(ctx); err != nil {
		return nil, err
	}
	return &countedHold{lock: l, isKnown: len(others) > 0, count: 1}, nil
}

func (l *forgetsItsHolder) TryLock(ctx context.Context) (*countedHold, error) { return l.Lock(ctx) }

type countedHold struct {
	lock    *forgetsItsHolder
	isKnown bool
	count   int
}

func (h *countedHold) Context(parent context.Context) context.Context {
	if !h.isKnown {
		return parent
	}
	return context.WithValue(parent, h.lock, h)
}

func (h *countedHold) Token() int64 { return 0 }

func (h *countedHold) Unlock() error {
	if h.count--; h.count > 0 {
		return nil
	}
	return h.lock.Unlock()
}

// waitsForAnyWriter is W26: a reader waits while a writer is in the queue, even behind the reader.
type waitsForAnyWriter struct {
	conn *zk.Conn
	dir  string
}

func newWaitsForAnyWriter(session zktest.Session, path string) waitsForAnyWriter {
	return waitsForAnyWriter{session.Conn(), path}
}

const (
	writes = "write-"
	reads  = "read-"
)

func (l waitsForAnyWriter) Lock(ctx context.Context) (zktest.Hold, error) {
	return l.lock(ctx, writes, theOneBefore)
}

func (l waitsForAnyWriter) RLock(ctx context.Context) (zktest.Hold, error) {
	return l.lock(ctx, reads, func(queue []string, at int) string {
		writer := slices.IndexFunc(queue, func(name string) bool { return strings.HasPrefix(name, writes) })
		if writer < 0 {
			return ""
		}
		return queue[writer]
	})
}

func (l waitsForAnyWriter) TryLock(ctx context.Context) (zktest.Hold, error)  { return l.Lock(ctx) }
func (l waitsForAnyWriter) TryRLock(ctx context.Context) (zktest.Hold, error) { return l.RLock(ctx) }

func (l waitsForAnyWriter) lock(
	ctx context.Context,
	name string,
	before func(queue []string, at int) string,
) (zktest.Hold, error) {
	q := newQueue(l.conn, l.dir)
	q.name, q.before = name, before
	if err := q.Lock(ctx); err != nil {
		return nil, err
	}
	return zktest.HoldOf(q.Unlock), nil
}
