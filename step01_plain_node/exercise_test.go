package plainnode

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"zklock/internal/exercise"
	"zklock/internal/property"
	starter "zklock/step01_plain_node/exercise"
	childrenwatch "zklock/step03_children_watch"
)

// The check of the exercise accepts this step's lock, and right ones that differ from it. It
// refuses the starter and the wrong ones.
func TestTheExercise(t *testing.T) {
	plain := func(name string, poll time.Duration) property.Subject {
		s := property.Over(name, func(conn *zk.Conn, path string) *Lock {
			return &Lock{conn: conn, path: path, mode: zk.FlagPersistent, poll: poll}
		})
		s.Znode, s.NotHeld = true, zk.ErrNoNode
		return s
	}
	own, ephemeral := plain("step 1", pollInterval), property.Over("NewEphemeral", NewEphemeral)
	exercise.Accepts(t, exercise.Step1, own, ephemeral)
	exercise.Accepts(t, exercise.Step1, plain("pauses for longer", 15*pollInterval), ephemeral)
	watches := property.Over("watches", childrenwatch.NewWatched)
	watches.Znode, watches.NotHeld = true, zk.ErrNoNode
	exercise.Accepts(t, exercise.Step1, watches, ephemeral)
	for name, wait := range map[string]func(*Lock, context.Context) error{
		"looks before each try": looksBeforeEachTry,
		"watches the znode":     watchesTheZnode,
		"tries after any error": triesAfterAnyError,
	} {
		s := property.Over(name, func(conn *zk.Conn, path string) waiting { return waiting{New(conn, path), wait} })
		s.Znode, s.NotHeld = true, zk.ErrNoNode
		exercise.Accepts(t, exercise.Step1, s, ephemeral)
	}

	exercise.Refuses(t, exercise.Step1, property.OneHolder, property.Over("the starter", starter.New))
	exercise.Refuses(t, exercise.Step1, property.OneHolder, property.Over("W4", newCareless))
	// mostly at once; on a slow machine, where it polls less often, in a long hold
	exercise.RefusesSomewhere(t, exercise.Step1, plain("polls without a pause", 0), ephemeral)
	exercise.Refuses(t, exercise.Step1, property.CrashFrees, own, property.Over("a persistent one", New))
}

// waiting is this step's lock, which gets the lock in another way.
type waiting struct {
	own  *Lock
	wait func(l *Lock, ctx context.Context) error
}

func (l waiting) Lock(ctx context.Context) error { return l.wait(l.own, ctx) }
func (l waiting) Unlock() error                  { return l.own.Unlock() }

// A read is cheaper than a create that fails.
func looksBeforeEachTry(l *Lock, ctx context.Context) error {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for ctx.Err() == nil {
		there, _, err := l.conn.Exists(l.path)
		if err == nil && !there {
			err = create(l.conn, l.path, l.mode)
		}
		if err != nil && !errors.Is(err, zk.ErrNodeExists) {
			return err
		}
		if err == nil && !there {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
	return ctx.Err()
}

// When the session expires, its watch ends, and the client gets another session: it looks again.
func watchesTheZnode(l *Lock, ctx context.Context) error {
	for ctx.Err() == nil {
		err := create(l.conn, l.path, l.mode)
		if !errors.Is(err, zk.ErrNodeExists) {
			return err
		}
		there, _, gone, err := l.conn.ExistsW(l.path)
		if err != nil {
			return err
		}
		if !there {
			continue
		}
		select {
		case <-gone:
		case <-ctx.Done():
		}
	}
	return ctx.Err()
}

// An error may be temporary. The pause is long.
func triesAfterAnyError(l *Lock, ctx context.Context) error {
	for ctx.Err() == nil {
		if create(l.conn, l.path, l.mode) == nil {
			return nil
		}
		select {
		case <-time.After(500 * time.Millisecond):
		case <-ctx.Done():
		}
	}
	return ctx.Err()
}
