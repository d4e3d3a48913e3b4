package plainnode

import (
	"context"
	"errors"
	"fmt"
	pathpkg "path"
	"sync"
	"sync/atomic"
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
	// mostly at once; on a slow machine it polls less often, and is refused in a long hold
	exercise.RefusesSomewhere(t, exercise.Step1, plain("polls without a pause", 0), ephemeral)

	exercise.RefusesByOne(t, exercise.Step1, []exercise.Wrong{
		{By: property.OneHolder, Lock: altering("takes any znode for its own", takesAnyZnode)},
		{By: property.GivingUp, Lock: altering("forgets what it has just made", forgetsWhatItHasMade)},
		{By: property.CrashFrees, Lock: altering("a persistent znode", func(l *altered) { l.mode = zk.FlagPersistent })},
		{By: property.Unrelated, Lock: altering("one znode for all locks", oneZnodeForAllLocks)},
		{By: property.ParentsMade, Lock: altering("makes a parent alone, or fails", makesParentsAlone)},
		{By: property.ManyShare, Lock: altering("Unlock waits for Lock", unlockWaitsForLock)},
		{By: property.WhateverIsInIt, Lock: altering("deletes version 0", deletesVersion0)},
		{By: property.LostWhileWaiting, Lock: altering("waits for a deletion only", waitsForADeletionOnly)},
		{
			By: property.ReleaseSeen, Lock: altering("watches what has gone", watchesWhatHasGone),
			Besides: []*property.Property{property.OneHolder, property.ManyShare},
			Why:     "where many contend, one of many releases comes at that moment, or none",
		},
		{By: property.UnlockTooMany, Lock: altering("does not say which lock", doesNotSayWhich)},
		{By: property.UnlockRepeated, Lock: altering("unlocks once", unlocksOnce)},
		{By: property.LostTold, Lock: altering("is glad if its znode has gone", isGladIfGone)},
		{By: property.QuietAfter, Lock: altering("looks on after its Unlock", looksOn)},
		{By: property.LongHold, Lock: altering("asks all the time whether it holds", asksAllTheTime)},
	}...)
}

// waiting is this step's lock, but it waits in another way.
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

// altered is NewEphemeral with one change. So CrashFrees can be checked like the other properties.
type altered struct {
	*right
	lock   func(ctx context.Context) error
	unlock func() error
	isHeld atomic.Bool // for some changes
}

func (l *altered) Lock(ctx context.Context) error { return l.lock(ctx) }
func (l *altered) Unlock() error                  { return l.unlock() }

// right is this step's lock, as a part of a wrong one.
type right = Lock

func altering(name string, change func(l *altered)) property.Subject {
	s := property.Over(name, func(conn *zk.Conn, path string) *altered {
		l := &altered{right: NewEphemeral(conn, path)}
		l.lock, l.unlock = l.right.Lock, l.right.Unlock
		change(l)
		return l
	})
	s.Znode, s.NotHeld = true, zk.ErrNoNode
	return s
}

// rest pauses between two tries.
func (l *altered) rest(ctx context.Context) {
	select {
	case <-time.After(l.poll):
	case <-ctx.Done():
	}
}

// "It did not exist when I looked. If it exists now, it is mine."
func takesAnyZnode(l *altered) {
	var oneByOne sync.Mutex // the goroutines of this process
	take := func() (mine bool, err error) {
		oneByOne.Lock()
		defer oneByOne.Unlock()
		there, _, err := l.conn.Exists(l.path)
		if there || err != nil {
			return false, err
		}
		_, err = l.conn.Create(l.path, nil, l.mode, zk.WorldACL(zk.PermAll))
		if errors.Is(err, zk.ErrNoNode) {
			err = create(l.conn, pathpkg.Dir(l.path), zk.FlagPersistent)
			if errors.Is(err, zk.ErrNodeExists) {
				err = nil
			}
			return false, err
		}
		return true, nil
	}
	l.lock = func(ctx context.Context) error {
		for ctx.Err() == nil {
			if mine, err := take(); mine || err != nil {
				return err
			}
			l.rest(ctx)
		}
		return ctx.Err()
	}
}

// "The caller has given up, so there is no lock."
func forgetsWhatItHasMade(l *altered) {
	l.lock = func(ctx context.Context) error {
		if err := l.right.Lock(ctx); err != nil {
			return err
		}
		return ctx.Err()
	}
}

// "A directory is locked as a whole."
func oneZnodeForAllLocks(l *altered) {
	path := l.path
	l.path = pathpkg.Dir(path) + "/all"
	l.unlock = func() error {
		if err := l.right.Unlock(); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		return nil
	}
}

// "I have found that the parent is missing, so I can make it."
func makesParentsAlone(l *altered) {
	var makes func(path string, mode int32) error
	makes = func(path string, mode int32) error {
		_, err := l.conn.Create(path, nil, mode, zk.WorldACL(zk.PermAll))
		if !errors.Is(err, zk.ErrNoNode) {
			return err
		}
		if err := makes(pathpkg.Dir(path), zk.FlagPersistent); err != nil {
			return fmt.Errorf("make the parent: %v", err)
		}
		return makes(path, mode)
	}
	l.lock = func(ctx context.Context) error {
		for ctx.Err() == nil {
			if err := makes(l.path, l.mode); !errors.Is(err, zk.ErrNodeExists) {
				return err
			}
			l.rest(ctx)
		}
		return ctx.Err()
	}
}

// "One call at a time."
func unlockWaitsForLock(l *altered) {
	var oneByOne sync.Mutex
	l.lock = func(ctx context.Context) error {
		oneByOne.Lock()
		defer oneByOne.Unlock()
		return l.right.Lock(ctx)
	}
	l.unlock = func() error {
		oneByOne.Lock()
		defer oneByOne.Unlock()
		return l.right.Unlock()
	}
}

// "Nobody has changed it since I made it."
func deletesVersion0(l *altered) {
	l.unlock = func() error { return failed("unlock", l.path, l.conn.Delete(l.path, 0)) }
}

// "It is my turn only after a deletion." When the session has ended, no deletion is notified any more.
func waitsForADeletionOnly(l *altered) {
	l.lock = func(ctx context.Context) error {
		for ctx.Err() == nil {
			err := create(l.conn, l.path, l.mode)
			if !errors.Is(err, zk.ErrNodeExists) {
				return err
			}
			there, _, gone, err := l.conn.ExistsW(l.path)
			if err != nil {
				return err
			}
			for there && ctx.Err() == nil {
				select {
				case event := <-gone:
					there = event.Type != zk.EventNodeDeleted
					gone = nil // it fires once
				case <-ctx.Done():
				}
			}
		}
		return ctx.Err()
	}
}

// W24: it does not check whether the znode exists.
func watchesWhatHasGone(l *altered) {
	l.lock = func(ctx context.Context) error {
		for ctx.Err() == nil {
			err := create(l.conn, l.path, l.mode)
			if !errors.Is(err, zk.ErrNodeExists) {
				return err
			}
			_, _, changed, err := l.conn.ExistsW(l.path)
			if err != nil {
				return err
			}
			select {
			case <-changed:
			case <-ctx.Done():
			}
		}
		return ctx.Err()
	}
}

func doesNotSayWhich(l *altered) {
	l.unlock = func() error {
		err := l.right.Unlock()
		if errors.Is(err, zk.ErrNoNode) {
			return zk.ErrNoNode
		}
		return err
	}
}

// notes makes Lock note that the lock is held.
func (l *altered) notes() {
	l.lock = func(ctx context.Context) error {
		err := l.right.Lock(ctx)
		if err == nil {
			l.isHeld.Store(true)
		}
		return err
	}
}

// "Unlock was called, so the lock is not held any more."
func unlocksOnce(l *altered) {
	l.notes()
	l.unlock = func() error {
		if !l.isHeld.Swap(false) {
			return failed("unlock", l.path, zk.ErrNoNode)
		}
		return l.right.Unlock()
	}
}

// "Unlock must delete the znode. If it is already deleted, all is well."
func isGladIfGone(l *altered) {
	l.notes()
	l.unlock = func() error {
		wasHeld := l.isHeld.Swap(false)
		err := l.right.Unlock()
		if errors.Is(err, zk.ErrNoNode) && wasHeld {
			return nil
		}
		if err != nil {
			l.isHeld.Store(wasHeld)
		}
		return err
	}
}

// "Who has it now?"
func looksOn(l *altered) {
	l.unlock = func() error {
		err := l.right.Unlock()
		go func() {
			for range 30 {
				time.Sleep(200 * time.Millisecond)
				if _, _, err := l.conn.Exists(l.path); err != nil {
					return
				}
			}
		}()
		return err
	}
}

// "Do I still hold it?"
func asksAllTheTime(l *altered) {
	var unlocked atomic.Pointer[chan struct{}] // of the present hold
	l.lock = func(ctx context.Context) error {
		if err := l.right.Lock(ctx); err != nil {
			return err
		}
		stop := make(chan struct{})
		unlocked.Store(&stop)
		go func() {
			for {
				select {
				case <-time.After(4 * time.Millisecond):
					go l.conn.Exists(l.path) // no need to wait for the answer
				case <-stop:
					return
				}
			}
		}()
		return nil
	}
	l.unlock = func() error {
		if stop := unlocked.Swap(nil); stop != nil {
			close(*stop)
		}
		return l.right.Unlock()
	}
}
