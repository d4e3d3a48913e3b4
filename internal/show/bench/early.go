package main

import (
	"context"
	"errors"
	pathpkg "path"
	"slices"

	"github.com/go-zookeeper/zk"

	"zklock/internal/check/zktest"
)

// An early lock looks one release early. A waiter watches the znode two places before
// its own, and lists when that goes. Then it knows that it is next, and lists no more:
// when the znode before its own goes, it goes in. It is here for its price alone:
// docs/benchmark.md says what it lacks.
type early struct{ *bare }

func newEarly(conn *zk.Conn, dir string) early { return early{newBare(conn, dir)} }

func (l early) Lock(ctx context.Context) error {
	if err := l.bare.Lock(ctx); err != nil {
		return err
	}
	for {
		names, _, err := l.conn.Children(l.dir)
		if err != nil {
			return err
		}
		slices.SortFunc(names, zktest.BySequence)
		mine := slices.Index(names, pathpkg.Base(l.node))
		if mine == 0 {
			return nil
		}
		_, _, gone, err := l.conn.GetW(l.dir + "/" + names[max(mine-2, 0)])
		if err == nil {
			select {
			case event := <-gone:
				err = event.Err
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		if err != nil && !errors.Is(err, zk.ErrNoNode) {
			return err
		}
		if mine == 1 { // nobody can come in between
			return nil
		}
	}
}
