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
	wait func(ctx context.Context, l *right, p *place, kind string) error
	name func(kind string) string
}

func (v variant) RLock(ctx context.Context) (context.Context, error) { return v.acquire(ctx, read) }
func (v variant) Lock(ctx context.Context) (context.Context, error)  { return v.acquire(ctx, write) }

func (v variant) acquire(ctx context.Context, kind string) (context.Context, error) {
	p, err := v.queueUp(ctx, kind)
	if err != nil {
		return nil, err
	}
	if err := v.wait(ctx, v.right, &p, kind); err != nil {
		return nil, errors.Join(err, v.remove(p, false))
	}
	return v.grant(ctx, kind, p), nil
}

func (v variant) queueUp(ctx context.Context, kind string) (place, error) {
	if v.name == nil {
		return v.enqueue(ctx, kind)
	}
	node, err := create(v.s.conn, v.dir+"/"+v.name(kind), zk.FlagEphemeralSequential)
	return place{node: node, owner: v.s.conn.SessionID()}, err
}

// waitFor is the step's wait, for somebody else.
func waitFor(predecessor func(names []string, mine, kind string) string) func(context.Context, *right, *place, string) error {
	return func(ctx context.Context, l *right, p *place, kind string) error {
		for {
			life, _ := l.s.now()
			names, stat, err := l.s.conn.Children(l.dir)
			if err != nil {
				return err
			}
			before := predecessor(names, p.node, kind)
			if before == "" {
				p.token, p.life = stat.Pzxid, life
				return nil
			}
			_, _, gone, err := l.s.conn.GetW(l.dir + "/" + before)
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
	lastWriter := func(names []string, mine, _ string) string { return predecessor(names, mine, read) }
	lockcheck.Fails(t, wrong("a writer that waits for the last writer", variant{wait: waitFor(lastWriter)}), lockcheck.Shared)
}

// The second: when the first in the queue is a reader, readers are inside, and
// one more does no harm. But a writer may wait between them, and while readers
// keep coming it waits for ever.
func TestReaderThatLooksAtTheFirstOnly(t *testing.T) {
	t.Parallel()
	joinReaders := func(names []string, mine, kind string) string {
		if _, inside, _ := number(slices.MinFunc(names, byNumber)); kind == read && inside == read {
			return ""
		}
		return predecessor(names, mine, kind)
	}
	lockcheck.Fails(t, wrong("a reader that looks at the first znode", variant{wait: waitFor(joinReaders)}), lockcheck.Shared)
}

// sorted finds the predecessor in names that are sorted by key.
func sorted(key func(name string) string) func(names []string, mine, kind string) string {
	return func(names []string, mine, kind string) (before string) {
		slices.SortFunc(names, func(a, b string) int { return cmp.Compare(key(a), key(b)) })
		for _, name := range names {
			if name == pathpkg.Base(mine) {
				break
			}
			if _, other, ok := number(name); ok && (kind == write || other == write) {
				before = name
			}
		}
		return before
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
	names, _, err := l.s.conn.Children(l.dir)
	if err != nil || len(names) == 0 {
		return errors.Join(err, ErrNotHeld)
	}
	return l.s.conn.Delete(l.dir+"/"+slices.MinFunc(names, byNumber), -1)
}

func TestW14DeletesWhicheverZnodeIsFirst(t *testing.T) {
	t.Parallel()
	lock := lockcheck.OverSession("W14", open, func(s *Session, dir string) deletesTheFirst {
		return deletesTheFirst{variant{right: New(s, dir), wait: waitFor(predecessor)}}
	}, Token)
	lockcheck.Fails(t, lock, lockcheck.NoStranger)
}
