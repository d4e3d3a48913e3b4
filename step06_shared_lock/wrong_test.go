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

// right is this step's lock, as a part of the wrong ones.
type right = RWLock

// variant is the step's lock with another way to wait, and perhaps with names
// of its own.
type variant struct {
	*right
	wait func(ctx context.Context, l *right, p *place) error
	name func(kind string) string
}

func (v variant) RLock(ctx context.Context) (context.Context, error) { return v.take(ctx, v.other) }
func (v variant) Lock(ctx context.Context) (context.Context, error)  { return v.take(ctx, v.right) }

func (v variant) take(ctx context.Context, l *right) (context.Context, error) {
	p, err := v.join(ctx, l)
	if err != nil {
		return nil, err
	}
	if err := v.wait(ctx, l, &p); err != nil {
		return nil, errors.Join(err, l.leave(p))
	}
	return begin(ctx, l, p, l.s.Keep(p.lease)), nil
}

func (v variant) join(ctx context.Context, l *right) (place, error) {
	if v.name == nil {
		return l.enqueue(ctx)
	}
	node, err := create(l.s.Conn(), l.dir+"/"+v.name(l.kind), zk.FlagEphemeralSequential)
	return place{node: node, owner: l.s.Conn().SessionID()}, err
}

// order tells whom a znode waits for, as predecessor does.
type order func(names []string, mine string) (before string, err error)

// waitFor is the step's wait, for somebody else.
func waitFor(predecessor order) func(context.Context, *right, *place) error {
	return func(ctx context.Context, l *right, p *place) error {
		for {
			lease := l.s.Lease()
			names, stat, err := l.s.Conn().Children(l.dir)
			if err != nil {
				return err
			}
			before, err := predecessor(names, pathpkg.Base(p.node))
			if before == "" || err != nil {
				p.lease, p.token = lease, stat.Pzxid
				return err
			}
			_, _, gone, err := l.s.Conn().GetW(l.dir + "/" + before)
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
}

// wrong makes a Subject of a variant.
func wrong(name string, v variant) lockcheck.Subject {
	return lockcheck.OverSession(name, open, func(s *Session, dir string) variant {
		mine := v
		mine.right = New(s, dir)
		return mine
	}, Token)
}

// The first mistake that suggests itself: readers and writers are two kinds, and
// a writer must not meet another writer. It must not meet a reader either.
func TestWriterThatWaitsForWritersOnly(t *testing.T) {
	t.Parallel()
	lastWriter := func(names []string, mine string) (string, error) {
		asReader := strings.Replace(mine, write, read, 1)
		return predecessor(append(names, asReader), asReader)
	}
	lockcheck.Fails(t, wrong("a writer that waits for the last writer", variant{wait: waitFor(lastWriter)}), lockcheck.Shared)
}

// The second: when the first in the queue is a reader, readers are inside, and
// one more does no harm. But a writer may wait between them, and while readers
// keep coming it waits for ever.
func TestReaderThatLooksAtTheFirstOnly(t *testing.T) {
	t.Parallel()
	joinReaders := func(names []string, mine string) (string, error) {
		_, kind, _ := number(mine)
		if _, inside, _ := number(slices.MinFunc(names, byNumber)); kind == read && inside == read {
			return "", nil
		}
		return predecessor(names, mine)
	}
	lockcheck.Fails(t, wrong("a reader that looks at the first znode", variant{wait: waitFor(joinReaders)}), lockcheck.Shared)
}

// sorted finds the predecessor in names that are sorted by key.
func sorted(key func(name string) string) order {
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
	name := func(kind string) string {
		return fmt.Sprintf("_c_6a0e1c52-9f3b-%04x-8d11-0c5b7e2f9a64-%s", countdown(), kind)
	}
	thirdField := func(name string) string { return strings.Split(name, "-")[2] }
	lock := wrong("W16", variant{wait: waitFor(sorted(thirdField)), name: name})
	lockcheck.Fails(t, lock, lockcheck.OneHolder, lockcheck.FirstCome, lockcheck.Shared)
}

// W17, published in ZooKeeper 如何实现分布式锁, MXJULY. The idea: the znode is
// named after its host, its kind and its number, so that people can read the
// queue. Sorted by the whole name, the queue goes by host.
func TestW17SortsByTheHostName(t *testing.T) {
	t.Parallel()
	name := func(kind string) string { return fmt.Sprintf("host%05d-%s", countdown(), kind) }
	wholeName := func(name string) string { return name }
	lock := wrong("W17", variant{wait: waitFor(sorted(wholeName)), name: name})
	lockcheck.Fails(t, lock, lockcheck.OneHolder, lockcheck.FirstCome, lockcheck.Shared)
}

// W14, published in the same article as W16. The idea: whoever unlocks holds
// the lock, and the holder's znode is the first; so delete the first. But the
// session may be gone, and the first another's by now. Among readers it need
// not even be that: the second to come deletes the znode of the first.
type deletesTheFirst struct{ variant }

func (l deletesTheFirst) Unlock(held context.Context) error {
	if _, ok := held.Value(holdOf{l.right}).(*hold); !ok {
		return ErrNotHeld
	}
	names, _, err := l.s.Conn().Children(l.dir)
	if err != nil || len(names) == 0 {
		return errors.Join(err, ErrNotHeld)
	}
	return l.s.Conn().Delete(l.dir+"/"+slices.MinFunc(names, byNumber), -1)
}

func TestW14DeletesWhicheverZnodeIsFirst(t *testing.T) {
	t.Parallel()
	lock := lockcheck.OverSession("W14", open, func(s *Session, dir string) deletesTheFirst {
		return deletesTheFirst{variant{right: New(s, dir), wait: waitFor(predecessor)}}
	}, Token)
	lockcheck.Fails(t, lock, lockcheck.NoStranger)
}
