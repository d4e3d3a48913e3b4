package exercise

import (
	"context"
	"errors"
	pathpkg "path"
	"slices"

	"github.com/go-zookeeper/zk"

	"zklock/internal/lang"
	"zklock/internal/property"
	"zklock/internal/zktest"
)

// A mistake is one that was published, in a small lock, for a learner's own test: see
// docs/mistakes.md. The same mistakes stand in the steps' wrong_test.go, in locks that are right
// in all else.
type mistake struct {
	key  string
	what lang.Text
	lock func() property.Subject
}

// mistakes are by the name of the exercise.
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
		"W13", lang.Text{EN: "what the watch opens is made after it has fired", ZH: "监听器触发之后，才创建它要打开的闭锁"},
		wrongQueue("W13", zk.FlagEphemeralSequential, makesItsLatchTooLate),
	},
	"4": {
		"W8", lang.Text{EN: "a client that is woken takes that for the lock", ZH: "被唤醒就当拿到了锁"},
		wrongQueue("W8", zk.FlagEphemeralSequential, trustsTheWakeUp),
	},
}

// careless is W4: the error says that another client has the lock, and nobody reads it.
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

// queue is a lock with a queue of znodes. Its waiters watch the one before theirs.
type queue struct {
	conn  *zk.Conn
	dir   string
	mode  int32
	woken func(ctx context.Context, gone <-chan zk.Event) (mine bool, err error) // how a wait for the one before ends
	node  string
}

func wrongQueue(
	name string,
	mode int32,
	woken func(ctx context.Context, gone <-chan zk.Event) (mine bool, err error),
) func() property.Subject {
	return func() property.Subject {
		return property.Over(name, func(conn *zk.Conn, path string) *queue {
			return &queue{conn: conn, dir: path, mode: mode, woken: woken}
		})
	}
}

func (l *queue) Lock(ctx context.Context) error {
	if err := makeParents(l.conn, l.dir+"/lock-"); err != nil {
		return err
	}
	node, err := l.conn.Create(l.dir+"/lock-", nil, l.mode, zk.WorldACL(zk.PermAll))
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
		if at == 0 {
			return nil
		}
		_, _, gone, err := l.conn.GetW(l.dir + "/" + names[at-1])
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

// looksAgain is right.
func looksAgain(ctx context.Context, gone <-chan zk.Event) (mine bool, err error) {
	select {
	case event := <-gone:
		return false, event.Err
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// trustsTheWakeUp is W8: the one before may have been a waiter that crashed.
func trustsTheWakeUp(ctx context.Context, gone <-chan zk.Event) (mine bool, err error) {
	_, err = looksAgain(ctx, gone)
	return true, err
}

// makesItsLatchTooLate is W13: nobody opens the latch any more.
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

// makeParents makes what is missing above a znode.
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
