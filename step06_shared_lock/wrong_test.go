package sharedlock

import (
	"cmp"
	"context"
	"errors"
	pathpkg "path"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"zklock/internal/property"
	"zklock/internal/zktest"
)

// variant is the step's lock, but its clients watch the directory. before says what a znode
// waits for, and each mistake is a wrong before.
type variant struct {
	*RWLock
	before func(names []string, mine string) (before string, err error) // what a znode waits for
}

func (v *variant) RLock(ctx context.Context) (*Hold, error) { return v.take(ctx, read) }
func (v *variant) Lock(ctx context.Context) (*Hold, error)  { return v.take(ctx, write) }

func (v *variant) take(ctx context.Context, k kind) (*Hold, error) {
	mine, err := v.join(ctx, k)
	if err != nil {
		return nil, err
	}
	h, err := v.wait(ctx, mine)
	if err != nil {
		return nil, errors.Join(err, v.leave(mine))
	}
	return h, nil
}

func (v *variant) wait(ctx context.Context, mine place) (*Hold, error) {
	for {
		connection := v.s.connection()
		names, stat, changed, err := v.s.conn.ChildrenW(v.dir)
		if err != nil {
			return nil, err
		}
		before, err := v.before(names, pathpkg.Base(mine.node))
		if err != nil {
			return nil, err
		}
		if before == "" {
			return newHold(v.RWLock, mine, connection, stat.Pzxid), nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// watching makes a Subject of a lock that watches the directory.
func watching(name string, before func(names []string, mine string) (string, error)) property.Subject {
	return property.OverHolds(name, open, func(s *Session, dir string) *variant { return &variant{New(s, dir), before} })
}

// first is the name with the least number.
func first(names []string) string {
	return slices.MinFunc(names, func(a, b string) int {
		n, _, _ := number(a)
		m, _, _ := number(b)
		return cmp.Compare(n, m)
	})
}

// The first likely mistake: readers and writers are two kinds, and a writer excludes
// only other writers. It must exclude readers as well.
func TestWriterThatWaitsForWritersOnly(t *testing.T) {
	t.Parallel()
	property.Lacks(t, watching("a writer that waits for the last writer", waitsForTheLastWriter), property.Shared)
}

func waitsForTheLastWriter(names []string, mine string) (string, error) {
	asReader := strings.Replace(mine, string(write), string(read), 1)
	return predecessor(append(names, asReader), asReader)
}

// The second likely mistake: a reader looks only at the first znode in the queue. If that is a
// reader's, readers hold the lock, and one more does no harm. But a writer may wait between them,
// and while readers keep arriving it waits forever.
func TestReaderThatLooksAtTheFirstOnly(t *testing.T) {
	t.Parallel()
	property.Lacks(t, watching("a reader that looks at the first znode", joinsReaders), property.Shared)
}

func joinsReaders(names []string, mine string) (string, error) {
	_, own, _ := number(mine)
	if _, inside, _ := number(first(names)); own == read && inside == read {
		return "", nil
	}
	return predecessor(names, mine)
}

// W26, published in kazoo. The idea: a reader waits while a writer is in the queue. But the
// writer may be behind it, and wait for the reader: then both wait forever.
func TestW26AReaderThatWaitsForAWriterBehindIt(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	lock := watching("W26", waitsForAnyWriter)
	turns := queue(z, lock, "WR") // a writer holds the lock, and a reader waits
	behind := lock.Join(z, "a writer behind the reader").Start()
	behind.MustWait("the reader before it")
	turns[0].Release()
	turns[1].MustWait("the writer behind it")
	require.False(t, behind.Returned(), "the writer waits for the reader before it")
	property.Lacks(t, lock, property.Shared)
}

func waitsForAnyWriter(names []string, mine string) (string, error) {
	_, own, _ := number(mine)
	for _, name := range names {
		if _, other, _ := number(name); own == read && other == write {
			return name, nil
		}
	}
	return predecessor(names, mine)
}
