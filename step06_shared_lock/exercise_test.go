package sharedlock

import (
	"context"
	"errors"
	pathpkg "path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"zklock/internal/exercise"
	"zklock/internal/property"
	"zklock/internal/zktest"
	starter "zklock/step06_shared_lock/exercise"
)

// The check of the exercise accepts this step's lock, and one that differs from it. It
// refuses the starter and the wrong ones.
func TestTheExercise(t *testing.T) {
	exercise.Accepts(t, exercise.Step6, locks)
	exercise.Accepts(t, exercise.Step6, over("a function for each kind", func(l *right) *queued {
		return &queued{right: l, before: aFunctionForEachKind}
	}))
	exercise.Accepts(t, exercise.Step6, over("sorts the queue", func(l *right) *queued {
		return &queued{right: l, before: sortsTheQueue}
	}))

	openStarter := func(servers []string, timeout time.Duration, dial zk.Dialer) (*starter.Session, error) {
		return starter.Open(servers, timeout, zk.WithDialer(dial), zk.WithLogger(zktest.NoLog))
	}
	exercise.Refuses(t, exercise.Step6, property.Shared, property.OverHolds("the starter", openStarter, starter.New))
	for name, before := range map[string]func(names []string, mine string) (string, error){
		"a writer waits for writers only":             waitsForTheLastWriter,
		"a reader looks at the first only":            joinsReaders,
		"a reader waits for all before it":            waitsForAll,
		"behind a writer, a reader waits for readers": waitsForReadersBehindAWriter,
		"W26": waitsForAnyWriter,
	} {
		wrong := over(name, func(l *right) *queued { return &queued{right: l, before: before} })
		exercise.Refuses(t, exercise.Step6, property.Shared, wrong)
	}
	herd := over("a reader watches the first writer", func(l *right) *queued {
		return &queued{right: l, before: firstWriterOrPredecessor}
	})
	exercise.Refuses(t, exercise.Step6, property.WakesOne, herd)
	exercise.Refuses(t, exercise.Step6, property.Upgrade, over("a reader that wants to write queues up", newQueuesUp))
	anySession := over("compares no sessions in its wait", func(l *right) *queued {
		return &queued{right: l, before: predecessor, inAnySession: true}
	})
	exercise.Refuses(t, exercise.Step6, property.KeptList, anySession)

	exercise.RefusesByOne(t, exercise.Step6, []exercise.Wrong{
		{By: property.Shared, Lock: over("readers of one lock share a znode", newSharesAZnode)},
		{By: property.Upgrade, Lock: over("a reader may write", newMayWrite)},
		{By: property.ReaderStays, Lock: over("a reader queues again as a writer", newQueuesAgain)},
	}...)
}

// right is this step's lock, as a part of the others.
type right = RWLock

// over is this step's lock in another form.
func over[L interface {
	Lock(context.Context) (*Hold, error)
	TryLock(context.Context) (*Hold, error)
}](name string, newLock func(*right) L) property.Subject {
	s := property.OverHolds(name, open, func(s *Session, path string) L { return newLock(New(s, path)) })
	s.NotHeld = ErrNotHeld
	return s
}

// queued is this step's lock, with a field for the function that finds out whom to wait for.
type queued struct {
	*right
	before       func(names []string, mine string) (before string, err error)
	inAnySession bool // a mistake: "my znode is in the list, so the place is mine"
}

func (l *queued) Lock(ctx context.Context) (*Hold, error)     { return l.lock(ctx, write, true) }
func (l *queued) RLock(ctx context.Context) (*Hold, error)    { return l.lock(ctx, read, true) }
func (l *queued) TryLock(ctx context.Context) (*Hold, error)  { return l.lock(ctx, write, false) }
func (l *queued) TryRLock(ctx context.Context) (*Hold, error) { return l.lock(ctx, read, false) }

// lock is the step's own, without its checks.
func (l *queued) lock(ctx context.Context, k kind, mayWait bool) (*Hold, error) {
	if h := holdIn(ctx, l.right); h != nil {
		return h, h.enter(k)
	}
	for {
		mine, err := l.join(ctx, k)
		if err != nil {
			return nil, err
		}
		h, err := l.wait(ctx, mine, mayWait)
		if errors.Is(err, zk.ErrNoNode) {
			continue
		}
		if err != nil {
			go l.leave(mine)
			return nil, err
		}
		return h, nil
	}
}

func (l *queued) wait(ctx context.Context, mine place, mayWait bool) (*Hold, error) {
	for ctx.Err() == nil {
		connection := l.s.connection()
		if connection.Err() != nil && !l.s.isClosed() {
			pause()
			continue
		}
		if l.s.conn.SessionID() != mine.session && !l.inAnySession {
			return nil, zk.ErrNoNode
		}
		names, stat, err := l.s.conn.Children(l.dir)
		before := ""
		if err == nil {
			_, err = predecessor(names, pathpkg.Base(mine.node)) // is our znode in the list?
		}
		if err == nil {
			before, err = l.before(names, pathpkg.Base(mine.node))
		}
		var gone <-chan zk.Event
		switch {
		case err == nil && before == "":
			return newHold(l.right, mine, connection, stat.Pzxid), nil
		case err == nil && !mayWait:
			return nil, ErrLocked
		case err == nil:
			_, _, gone, err = l.s.conn.GetW(l.dir + "/" + before)
			if errors.Is(err, zk.ErrNoNode) {
				continue
			}
		}
		if l.s.mustRetry(err) {
			pause()
			continue
		}
		if err != nil {
			return nil, err
		}
		select {
		case <-gone:
		case <-ctx.Done():
		}
	}
	return nil, context.Cause(ctx)
}

// Right: a writer waits for the last znode before its own, and a reader for the last writer's.
func aFunctionForEachKind(names []string, mine string) (string, error) {
	own, ownKind, _ := number(mine)
	waitsFor := map[kind]func(k kind) bool{
		write: func(kind) bool { return true },
		read:  func(k kind) bool { return k == write },
	}[ownKind]
	before := slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		n, k, ok := number(name)
		return !ok || n >= own || !waitsFor(k)
	})
	if len(before) == 0 {
		return "", nil
	}
	return slices.MaxFunc(before, zktest.BySequence), nil
}

// Right: in a sorted queue, the one to wait for is the nearest before ours that excludes ours.
func sortsTheQueue(names []string, mine string) (string, error) {
	queue := slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		_, _, isPlace := number(name)
		return !isPlace
	})
	slices.SortFunc(queue, zktest.BySequence)
	_, own, _ := number(mine)
	for _, name := range slices.Backward(queue[:slices.Index(queue, mine)]) {
		_, other, _ := number(name)
		if own == write || other == write {
			return name, nil
		}
	}
	return "", nil
}

// "The queue is served in its order."
func waitsForAll(names []string, mine string) (string, error) {
	asWriter := strings.Replace(mine, string(read), string(write), 1)
	return predecessor(append(names, asWriter), asWriter)
}

// "Behind a writer all are queued, and a client that gets the lock wakes the next."
func waitsForReadersBehindAWriter(names []string, mine string) (string, error) {
	before, err := predecessor(names, mine)
	if before == "" || err != nil {
		return before, err
	}
	return waitsForAll(names, mine)
}

// "A reader waits for a writer, and the first one is the next to release." It is also woken by that
// one, and goes back to sleep behind the second.
func firstWriterOrPredecessor(names []string, mine string) (string, error) {
	before, err := predecessor(names, mine)
	if before == "" || err != nil {
		return before, err
	}
	own, ownKind, _ := number(mine)
	if ownKind == write {
		return before, nil
	}
	var writers []string
	for _, name := range names {
		n, k, ok := number(name)
		isWriter := ok && k == write
		if isWriter && n < own {
			writers = append(writers, name)
		}
	}
	return first(writers), nil
}

// "A client that holds the lock may lock again."
type mayWrite struct{ *right }

func newMayWrite(l *right) mayWrite { return mayWrite{l} }

func (l mayWrite) Lock(ctx context.Context) (*Hold, error) {
	if h := holdIn(ctx, l.right); h != nil && h.mine.kind == read {
		return l.RLock(ctx)
	}
	return l.right.Lock(ctx)
}

// "A client that wants to write waits until the readers release."
type queuesUp struct{ *right }

func newQueuesUp(l *right) queuesUp { return queuesUp{l} }

func (l queuesUp) Lock(ctx context.Context) (*Hold, error) {
	if h := holdIn(ctx, l.right); h != nil && h.mine.kind == read {
		ctx = context.WithValue(ctx, l.right, (*Hold)(nil)) // as if nobody held the lock
	}
	return l.right.Lock(ctx)
}

// "A new place is a new place: the safe kind is the writer's."
type queuesAgain struct{ *right }

func newQueuesAgain(l *right) queuesAgain { return queuesAgain{l} }

func (l queuesAgain) RLock(ctx context.Context) (*Hold, error) {
	if holdIn(ctx, l.right) != nil {
		return l.right.RLock(ctx)
	}
	mine, err := l.join(ctx, read)
	if err != nil {
		return nil, err
	}
	h, err := l.wait(ctx, mine, true)
	if errors.Is(err, zk.ErrNoNode) {
		return l.right.Lock(ctx)
	}
	if err != nil {
		go l.leave(mine)
		return nil, err
	}
	return h, nil
}

// "A goroutine that reads with this lock shares its hold with the others that read with it."
type sharesAZnode struct {
	*right
	mu    sync.Mutex
	first *Hold // of the present readers
}

func newSharesAZnode(l *right) *sharesAZnode { return &sharesAZnode{right: l} }

func (l *sharesAZnode) RLock(ctx context.Context) (*Hold, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.first != nil && l.first.life.Err() == nil {
		return l.first, l.first.enter(read)
	}
	h, err := l.right.RLock(ctx)
	if err == nil {
		l.first = h
	}
	return h, err
}
