package sequentialspin

import (
	"context"
	"errors"
	"math/rand/v2"
	pathpkg "path"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"zklock/internal/exercise"
	"zklock/internal/property"
	"zklock/internal/zktest"
	plainnode "zklock/step01_plain_node"
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
	halfASecond := with(func(l *wrong) { l.poll = 25 * pollInterval })
	exercise.Accepts(t, exercise.Step2, queue("pauses for half a second", halfASecond))
	exercise.Accepts(t, exercise.Step2, queue("sorts texts, and has a ticker", with(sortsTexts)))
	exercise.Accepts(t, exercise.Step2, queue("pauses for longer and longer, at random", with(pausesAtRandom)))
	exercise.Accepts(t, exercise.Step2, queue("sorts the queue", with(sortsTheQueue)))
	channel := property.Over("a channel as mutex", newWithAChannel)
	channel.NotHeld = ErrNotHeld
	exercise.Accepts(t, exercise.Step2, channel)
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
	// mostly at once; on a slow machine it polls less often, and is refused in a long hold
	exercise.RefusesSomewhere(t, exercise.Step2, queue("polls without a pause", with(func(l *wrong) { l.poll = 0 })))

	oneZnode := property.Over("one znode, and Unlock looks whose it is", newLooksWhoseItIs)
	oneZnode.Znode, oneZnode.NotHeld = true, zk.ErrNoNode
	exercise.RefusesByOne(t, exercise.Step2, []exercise.Wrong{
		{By: property.FirstCome, Lock: oneZnode},
		{By: property.OnlyHolder, Lock: over("is glad if its session has gone", newIsGladWithoutSession)},
		{
			By: property.WaiterCrash, Lock: queue("waits for the one before", with(waitsForTheOneBefore)),
			Besides: []*property.Property{property.GivingUp, property.NotBeside},
			Why:     "to those behind it is the same whether a waiter crashes, gives up, or loses its znode",
		},
		{By: property.MadeOnce, Lock: over("makes the directory each time", newMakesEachTime)},
		{By: property.NotBeside, Lock: queue("does not miss its own znode", with(doesNotMissItsOwn))},
		{By: property.FailsClean, Lock: over("stays in the queue after an error", newStaysAfterAnError)},
	}...)
}

// over is a wrong lock in another form.
func over[L zktest.Locker](name string, newLock func(*wrong) L) property.Subject {
	s := property.Over(name, func(conn *zk.Conn, path string) L { return newLock(newWrong(conn, path)) })
	s.NotHeld = ErrNotHeld
	return s
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

// Right: a client that has waited long may poll less often.
func pausesAtRandom(l *wrong) {
	l.wait = func(ctx context.Context, node string) error {
		pause := l.poll
		for first := false; !first; {
			var err error
			if first, err = l.lookAndPause(ctx, node, pause); err != nil {
				return err
			}
			pause = min(pause+rand.N(pause), 300*time.Millisecond)
		}
		return nil
	}
}

// Right: in a queue that is sorted by the numbers, the first is the holder.
func sortsTheQueue(l *wrong) {
	l.isFirst = func(names []string, mine string) (bool, error) {
		queue := slices.DeleteFunc(names, func(name string) bool {
			_, isPlace := number(name)
			return !isPlace
		})
		slices.SortFunc(queue, zktest.BySequence)
		at := slices.Index(queue, mine)
		if at < 0 {
			return false, zk.ErrNoNode
		}
		return at == 0, nil
	}
}

// withAChannel is right: the channel holds the znode of the present holder.
type withAChannel struct {
	*wrong
	held chan string
}

func newWithAChannel(conn *zk.Conn, path string) withAChannel {
	return withAChannel{newWrong(conn, path), make(chan string, 1)}
}

func (l withAChannel) Lock(ctx context.Context) error {
	node, err := create(l.conn, l.prefix, l.mode)
	if err != nil {
		return err
	}
	if err := l.wait(ctx, node); err != nil {
		return errors.Join(err, l.leave(node))
	}
	select {
	case <-l.held: // of a hold that was lost
	default:
	}
	l.held <- node
	return nil
}

func (l withAChannel) Unlock() error {
	select {
	case node := <-l.held:
		err := l.conn.Delete(node, -1)
		isOver := err == nil || errors.Is(err, zk.ErrNoNode)
		if !isOver {
			l.held <- node
		}
		return failed("unlock", node, err)
	default:
		return failed("unlock", l.dir, ErrNotHeld)
	}
}

// looksWhoseItIs is step 1's lock, but its Unlock deletes no znode of another session.
type looksWhoseItIs struct {
	own     *plainnode.Lock
	conn    *zk.Conn
	path    string
	session atomic.Int64 // that got the lock
}

func newLooksWhoseItIs(conn *zk.Conn, path string) *looksWhoseItIs {
	return &looksWhoseItIs{own: plainnode.NewEphemeral(conn, path), conn: conn, path: path}
}

func (l *looksWhoseItIs) Lock(ctx context.Context) error {
	err := l.own.Lock(ctx)
	if err == nil {
		l.session.Store(l.conn.SessionID())
	}
	return err
}

func (l *looksWhoseItIs) Unlock() error {
	_, stat, err := l.conn.Get(l.path)
	if err != nil {
		return failed("unlock", l.path, err)
	}
	if stat.EphemeralOwner != l.session.Load() {
		return failed("unlock", l.path, zk.ErrNoNode)
	}
	return l.own.Unlock()
}

// "My znode of the old session was deleted with the session, and Unlock wants no more."
type isGladWithoutSession struct {
	*wrong
	session atomic.Int64
}

func newIsGladWithoutSession(l *wrong) *isGladWithoutSession { return &isGladWithoutSession{wrong: l} }

func (l *isGladWithoutSession) Lock(ctx context.Context) error {
	err := l.wrong.Lock(ctx)
	if err == nil {
		l.session.Store(l.conn.SessionID())
	}
	return err
}

func (l *isGladWithoutSession) Unlock() error {
	err := l.wrong.Unlock()
	session := l.session.Load()
	hasGone := session != 0 && session != l.conn.SessionID()
	if hasGone {
		return nil
	}
	return err
}

// W8, by polling: the znode before ours is deleted, so it is our turn.
func waitsForTheOneBefore(l *wrong) {
	l.wait = func(ctx context.Context, node string) error {
		before := "" // the znode before ours at the first look
		look := func(names []string, mine string) (isOurTurn bool, err error) {
			if first, err := isFirst(names, mine); first || err != nil {
				return first, err
			}
			if before == "" {
				own, _ := number(mine)
				queue := slices.DeleteFunc(names, func(name string) bool {
					n, isPlace := number(name)
					return !isPlace || n >= own
				})
				before = slices.MaxFunc(queue, zktest.BySequence)
				return false, nil
			}
			return !slices.Contains(names, before), nil
		}
		waiting := *l
		waiting.isFirst = look
		for {
			if first, err := waiting.look(ctx, node); first || err != nil {
				return err
			}
		}
	}
}

// "First of all, the directory must exist."
type makesEachTime struct{ *wrong }

func newMakesEachTime(l *wrong) makesEachTime { return makesEachTime{l} }

func (l makesEachTime) Lock(ctx context.Context) error {
	if _, err := create(l.conn, l.dir, zk.FlagPersistent); err != nil && !errors.Is(err, zk.ErrNodeExists) {
		return err
	}
	return l.wrong.Lock(ctx)
}

// "Nobody is before me." But its own znode is not in the queue
// either. When its session has ended, it returns an error.
func doesNotMissItsOwn(l *wrong) {
	l.isFirst = func(names []string, mine string) (bool, error) { return isFirst(append(names, mine), mine) }
	wait := l.look
	l.wait = func(ctx context.Context, node string) error {
		session := l.conn.SessionID()
		for {
			first, err := wait(ctx, node)
			if l.conn.SessionID() != session {
				return zk.ErrSessionExpired
			}
			if first || err != nil {
				return err
			}
		}
	}
}

// "If I cannot reach the server, I cannot delete my znode either."
type staysAfterAnError struct{ *wrong }

func newStaysAfterAnError(l *wrong) staysAfterAnError { return staysAfterAnError{l} }

func (l staysAfterAnError) Lock(ctx context.Context) error {
	node, err := create(l.conn, l.prefix, l.mode)
	if err != nil {
		return err
	}
	err = l.wait(ctx, node)
	if err != nil && ctx.Err() != nil {
		return errors.Join(err, l.leave(node))
	}
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.node = node
	return nil
}
