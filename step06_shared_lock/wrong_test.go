package sharedlock

import (
	"cmp"
	"context"
	"errors"
	pathpkg "path"
	"slices"
	"strings"
	"testing"

	"zklock/internal/check/lockcheck"
)

// variant is the step's lock, whose clients watch the directory. It is made of
// functions that are not exported: a mistake is one of them done wrong.
type variant struct {
	*RWLock
	before func(names []string, mine string) (before string, err error) // whom a znode waits for
}

func (v variant) RLock(ctx context.Context) (context.Context, error) { return v.take(ctx, read) }
func (v variant) Lock(ctx context.Context) (context.Context, error)  { return v.take(ctx, write) }

func (v variant) take(ctx context.Context, k kind) (context.Context, error) {
	mine, err := v.join(ctx, k)
	if err != nil {
		return nil, err
	}
	if err := v.wait(ctx, &mine); err != nil {
		return nil, errors.Join(err, v.leave(mine))
	}
	return begin(ctx, v.RWLock, mine), nil
}

func (v variant) wait(ctx context.Context, mine *place) error {
	for {
		lease := v.s.takeLease()
		names, stat, changed, err := v.s.Conn().ChildrenW(v.dir)
		if err != nil {
			return err
		}
		before, err := v.before(names, pathpkg.Base(mine.node))
		if before == "" || err != nil {
			mine.lease, mine.token = lease, stat.Pzxid
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// watching makes a Subject of a lock that watches the directory.
func watching(name string, before func(names []string, mine string) (string, error)) lockcheck.Subject {
	return lockcheck.OverSession(
		name,
		open,
		func(s *Session, dir string) variant { return variant{New(s, dir), before} },
		Token,
	)
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
		asReader := strings.Replace(mine, string(write), string(read), 1)
		return predecessor(append(names, asReader), asReader)
	}
	lockcheck.Lacks(t, watching("a writer that waits for the last writer", lastWriter), lockcheck.Shared)
}

// The second: when the first in the queue is a reader, readers are inside, and
// one more does no harm. But a writer may wait between them, and while readers
// keep coming it waits for ever.
func TestReaderThatLooksAtTheFirstOnly(t *testing.T) {
	t.Parallel()
	joinReaders := func(names []string, mine string) (string, error) {
		_, own, _ := number(mine)
		if _, inside, _ := number(first(names)); own == read && inside == read {
			return "", nil
		}
		return predecessor(names, mine)
	}
	lockcheck.Lacks(t, watching("a reader that looks at the first znode", joinReaders), lockcheck.Shared)
}
