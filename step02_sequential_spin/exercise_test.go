package sequentialspin

import (
	"context"
	pathpkg "path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"zklock/internal/exercise"
	"zklock/internal/property"
	starter "zklock/step02_sequential_spin/exercise"
)

// The check of the exercise accepts this step's lock, and right ones that differ from it. It
// refuses the starter and the wrong ones.
func TestTheExercise(t *testing.T) {
	queue := func(name string, newLock func(*zk.Conn, string) *wrong) property.Subject {
		s := property.Over(name, newLock)
		s.NotHeld = ErrNotHeld
		return s
	}
	exercise.Accepts(t, exercise.Step2, lock)
	exercise.Accepts(t, exercise.Step2, queue("pauses for longer", with(func(l *wrong) { l.poll = 5 * pollInterval })))
	exercise.Accepts(t, exercise.Step2, queue("pauses for half a second", with(func(l *wrong) { l.poll = 25 * pollInterval })))
	exercise.Accepts(t, exercise.Step2, queue("sorts texts, and has a ticker", with(sortsTexts)))
	// No reply or result of a lock shows how much of the stack it uses.
	exercise.Accepts(t, exercise.Step2, queue("W7", with(waitsByRecursion)))

	exercise.Refuses(t, exercise.Step2, property.FirstCome, property.Over("the starter", starter.New))
	exercise.Refuses(t, exercise.Step2, property.CrashFrees, queue("W1", with(persistentZnode)))
	exercise.Refuses(t, exercise.Step2, property.OneHolder, queue("W2", with(comparesItselfWithItself)))
	exercise.Refuses(t, exercise.Step2, property.OneHolder, queue("W3", with(overlooksNumberZero)))
	exercise.Refuses(t, exercise.Step2, property.OneHolder, queue("W4", with(returnsAfterAnError)))
	exercise.Refuses(t, exercise.Step2, property.Unrelated, queue("W5", with(oneQueueForAllLocks)))
	exercise.Refuses(t, exercise.Step2, property.OneHolder, property.Over("W6", newOneZnode))
	exercise.Refuses(t, exercise.Step2, property.OneHolder, queue("W16", with(sortsByAPieceOfTheGuid)))
	exercise.Refuses(t, exercise.Step2, property.OneHolder, queue("W17", with(sortsByTheHostname)))
	// mostly at once; on a slow machine, where it polls less often, in a long hold
	exercise.RefusesSomewhere(t, exercise.Step2, queue("polls without a pause", with(func(l *wrong) { l.poll = 0 })))
}

// Only the names of this queue, all of the same length, are sorted as texts.
func sortsTexts(l *wrong) {
	l.wait = func(ctx context.Context, node string) error {
		tick := time.NewTicker(200 * time.Millisecond)
		defer tick.Stop()
		for {
			names, _, err := l.conn.Children(l.dir)
			if err != nil {
				return err
			}
			own := pathpkg.Base(node)
			names = slices.DeleteFunc(names, func(name string) bool {
				number, isOurs := strings.CutPrefix(name, "lock-")
				return !isOurs || len(number) != 10 || strings.Trim(number, "0123456789") != ""
			})
			slices.Sort(names)
			if !slices.Contains(names, own) {
				return zk.ErrNoNode
			}
			if names[0] == own {
				return nil
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
}
