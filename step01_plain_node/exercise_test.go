package plainnode

import (
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
	own, ephemeral := plain("the step's own", pollInterval), property.Over("NewEphemeral", NewEphemeral)
	exercise.Accepts(t, exercise.Step1, own, ephemeral)
	exercise.Accepts(t, exercise.Step1, plain("rests for longer", 15*pollInterval), ephemeral)
	watches := property.Over("watches", childrenwatch.NewWatched)
	watches.Znode, watches.NotHeld = true, zk.ErrNoNode
	exercise.Accepts(t, exercise.Step1, watches, ephemeral)

	exercise.Refuses(t, exercise.Step1, property.OneHolder, property.Over("the starter", starter.New))
	exercise.Refuses(t, exercise.Step1, property.OneHolder, property.Over("W4", newCareless))
	// as a rule at once; on a slow machine, which lets it ask less often, in a long hold
	exercise.RefusesSomewhere(t, exercise.Step1, plain("asks without a rest", 0), ephemeral)
	exercise.Refuses(t, exercise.Step1, property.CrashFrees, own, property.Over("a persistent one", New))
}
