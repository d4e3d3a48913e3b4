package sharedlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	pathpkg "path"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/go-zookeeper/zk"

	"zklock/internal/lockcheck"
)

// variant is the step's lock, whose clients wait in another way. It is made of
// functions that are not exported: a mistake is one of them done wrong.
type variant struct {
	*RWLock
	before   func(names []string, mine string) (before string, err error) // whom a znode waits for
	prefix   func() string                                                // of a znode's name, if not nil
	watchAll bool                                                         // by a watch on the directory, and not on one znode
}

func (v variant) RLock(ctx context.Context) (context.Context, error) { return v.take(ctx, v.other) }
func (v variant) Lock(ctx context.Context) (context.Context, error)  { return v.take(ctx, v.RWLock) }

func (v variant) take(ctx context.Context, l *RWLock) (context.Context, error) {
	name := l.kind
	if v.prefix != nil {
		name = v.prefix() + name
	}
	node, err := create(l.s.Conn(), l.dir+"/"+name, zk.FlagEphemeralSequential)
	if err != nil {
		return nil, err
	}
	p := place{node: node, owner: l.s.Conn().SessionID()}
	if err := v.wait(ctx, &p); err != nil {
		return nil, errors.Join(err, l.leave(p))
	}
	return begin(ctx, l, p, l.s.Keep(p.lease)), nil
}

func (v variant) wait(ctx context.Context, p *place) error {
	for {
		lease := v.s.Lease()
		names, stat, gone, err := v.list()
		if err != nil {
			return err
		}
		before, err := v.before(names, pathpkg.Base(p.node))
		if before == "" || err != nil {
			p.lease, p.token = lease, stat.Pzxid
			return err
		}
		if !v.watchAll {
			_, _, gone, err = v.s.Conn().GetW(v.dir + "/" + before)
		}
		if errors.Is(err, zk.ErrNoNode) {
			continue
		}
		if err != nil {
			return err
		}
		select {
		case <-gone:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (v variant) list() (names []string, stat *zk.Stat, changed <-chan zk.Event, err error) {
	if v.watchAll {
		return v.s.Conn().ChildrenW(v.dir)
	}
	names, stat, err = v.s.Conn().Children(v.dir)
	return names, stat, nil, err
}

// wrong makes a Subject of a variant.
func wrong(name string, v variant) lockcheck.Subject {
	return lockcheck.OverSession(name, open, func(s *Session, dir string) variant {
		mine := v
		mine.RWLock = New(s, dir)
		return mine
	}, Token)
}

// first is the name with the least number.
func first(names []string) string {
	return slices.MinFunc(names, func(a, b string) int {
		n, _, _ := number(a)
		m, _, _ := number(b)
		return cmp.Compare(n, m)
	})
}

// The first mistake that suggests itself: readers and writers are two kinds, and
// a writer must not meet another writer. It must not meet a reader either.
func TestWriterThatWaitsForWritersOnly(t *testing.T) {
	t.Parallel()
	lastWriter := func(names []string, mine string) (string, error) {
		asReader := strings.Replace(mine, write, read, 1)
		return predecessor(append(names, asReader), asReader)
	}
	lockcheck.Fails(t, wrong("a writer that waits for the last writer", variant{before: lastWriter}), lockcheck.Shared)
}

// The second: when the first in the queue is a reader, readers are inside, and
// one more does no harm. But a writer may wait between them, and while readers
// keep coming it waits for ever.
func TestReaderThatLooksAtTheFirstOnly(t *testing.T) {
	t.Parallel()
	joinReaders := func(names []string, mine string) (string, error) {
		_, kind, _ := number(mine)
		if _, inside, _ := number(first(names)); kind == read && inside == read {
			return "", nil
		}
		return predecessor(names, mine)
	}
	lockcheck.Fails(t, wrong("a reader that looks at the first znode", variant{before: joinReaders}), lockcheck.Shared)
}

// sorted finds the predecessor in names that are sorted by key.
func sorted(key func(name string) string) func([]string, string) (string, error) {
	return func(names []string, mine string) (before string, err error) {
		_, kind, _ := number(mine)
		slices.SortFunc(names, func(a, b string) int { return cmp.Compare(key(a), key(b)) })
		for _, name := range names {
			if name == mine {
				break
			}
			if _, other, ok := number(name); ok && (kind == write || other == write) {
				before = name
			}
		}
		return before, nil
	}
}

// later counts down. A host name or a guid may be anything; here each is less
// than the one before it, so that a late-comer always sorts first.
var later atomic.Int64

func countdown() int64 { return 0xffff + later.Add(-1) }

// W16, published in Java 基于 ZooKeeper 实现分布式锁需要注意什么, lenshood.github.io.
// The idea: the number is the third field between dashes. The guid has dashes,
// too, and the third field is a part of it.
func TestW16SortsByAPartOfTheGuid(t *testing.T) {
	t.Parallel()
	prefix := func() string { return fmt.Sprintf("_c_6a0e1c52-9f3b-%04x-8d11-0c5b7e2f9a64-", countdown()) }
	thirdField := func(name string) string { return strings.Split(name, "-")[2] }
	lock := wrong("W16", variant{before: sorted(thirdField), prefix: prefix})
	lockcheck.Fails(t, lock, lockcheck.OneHolder, lockcheck.FirstCome, lockcheck.Shared)
}

// W17, published in ZooKeeper 如何实现分布式锁, MXJULY. The idea: the znode is
// named after its host, its kind and its number, so that people can read the
// queue. Sorted by the whole name, the queue goes by host.
func TestW17SortsByTheHostName(t *testing.T) {
	t.Parallel()
	prefix := func() string { return fmt.Sprintf("host%05d-", countdown()) }
	wholeName := func(name string) string { return name }
	lock := wrong("W17", variant{before: sorted(wholeName), prefix: prefix})
	lockcheck.Fails(t, lock, lockcheck.OneHolder, lockcheck.FirstCome, lockcheck.Shared)
}

// W14, published in the same article as W16. The idea: whoever unlocks holds
// the lock, and the holder's znode is the first; so delete the first. But the
// session may be gone, and the first another's by now. Among readers it need
// not even be that: the second to come deletes the znode of the first.
type deletesTheFirst struct{ *RWLock }

func (l deletesTheFirst) Unlock(held context.Context) error {
	if _, ok := held.Value(holdOf{l.RWLock}).(*hold); !ok {
		return ErrNotHeld
	}
	names, _, err := l.s.Conn().Children(l.dir)
	if err != nil || len(names) == 0 {
		return errors.Join(err, ErrNotHeld)
	}
	return l.s.Conn().Delete(l.dir+"/"+first(names), -1)
}

func TestW14DeletesWhicheverZnodeIsFirst(t *testing.T) {
	t.Parallel()
	lock := lockcheck.OverSession("W14", open, func(s *Session, dir string) deletesTheFirst {
		return deletesTheFirst{New(s, dir)}
	}, Token)
	lockcheck.Fails(t, lock, lockcheck.NoStranger)
}
