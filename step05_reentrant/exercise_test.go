package reentrant

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	pathpkg "path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"zklock/internal/exercise"
	"zklock/internal/property"
	"zklock/internal/zktest"
	starter "zklock/step05_reentrant/exercise"
)

// The check of the exercise accepts this step's lock, and right ones that differ from it. It
// refuses the starter and the wrong ones.
func TestTheExercise(t *testing.T) {
	exercise.Accepts(t, exercise.Step5, locks)
	exercise.Accepts(t, exercise.Step5, queueing("a longer guid", func(l *queued) {
		l.prefix = func() string { return fmt.Sprintf("%s/_c_%016x%016x-lock-", l.dir, rand.Uint64(), rand.Uint64()) }
	}))
	exercise.Accepts(t, exercise.Step5, queueing("deletes what it finds, and creates again", func(l *queued) {
		l.find = l.findAndDelete
	}))
	exercise.Accepts(t, exercise.Step5, queueing("the token is of the own znode's create", func(l *queued) {
		l.wait = l.waitForCzxid
	}))

	exercise.Accepts(t, exercise.Step5, over("knows its holds by a map", newHoldsInAMap))
	exercise.Accepts(t, exercise.Step5, over("one call of a process queues at a time", newSeated))

	exercise.Refuses(t, exercise.Step5, property.LostCreateReply, starting())
	for _, wrong := range []struct {
		name   string
		change func(l *queued)
		at     *property.Property
	}{
		{"creates again without looking", func(l *queued) { l.find = findsNothing }, property.LostCreateReply},
		{"leaves a lost create to its caller", func(l *queued) { l.find = givesBack }, property.LostCreateReply},
		{"compares no sessions in its wait", func(l *queued) { l.wait = l.waitInAnySession }, property.KeptList},
		{"is not told of a loss", func(l *queued) { l.wait = l.waitWithoutConnection }, property.ToldOfLoss},
	} {
		exercise.Refuses(t, exercise.Step5, wrong.at, queueing(wrong.name, wrong.change))
	}
	for _, wrong := range []struct {
		name   string
		change func(h *changed)
		at     *property.Property
	}{
		{"its context goes on", func(h *changed) { h.context = h.contextThatGoesOn }, property.ToldOfLoss},
		{"the token is the time of day", func(h *changed) { h.token = time.Now().UnixNano() }, property.Fenced},
		{"the token is counted in the process", func(h *changed) { h.token = turns.Add(1) }, property.Fenced},
		{"W14", func(h *changed) { h.unlock = h.deleteTheFirst }, property.LostApart},
		{"is glad if its znode has gone", func(h *changed) { h.unlock = h.unlockAnyway }, property.OnlyHolder},
	} {
		exercise.Refuses(t, exercise.Step5, wrong.at, holding(wrong.name, wrong.change))
	}
	exercise.Refuses(t, exercise.Step5, property.LocksAgain, over("W10", newOneHoldForAllLocks))
	exercise.Refuses(t, exercise.Step5, property.LocksAgain, over("W11", newEntersIfItWaited))
	exercise.Refuses(t, exercise.Step5, property.Tries, over("a try that stays in the queue", newTriesAndStays))

	queues := func(by *property.Property, name string, change func(l *queued)) exercise.Wrong {
		return exercise.Wrong{By: by, Lock: queueing(name, change)}
	}
	holds := func(by *property.Property, name string, change func(h *changed)) exercise.Wrong {
		return exercise.Wrong{By: by, Lock: holding(name, change)}
	}
	exercise.RefusesByOne(t, exercise.Step5, []exercise.Wrong{
		queues(property.LostCreateReply, "looks once", func(l *queued) { l.find = l.findOnce }),
		queues(property.OwnPlace, "one guid for all calls", func(l *queued) { l.prefix = sameName(l.dir) }),
		queues(property.OldZnode, "takes any znode with its guid", func(l *queued) { l.find = l.findWhoever }),
		queues(property.KeptCreate, "compares no sessions after its create", func(l *queued) { l.trusts = true }),
		queues(property.KeptList, "takes its connection after the list", func(l *queued) { l.wait = l.waitAndConnect }),
		queues(property.LaggingServer, "lists without a sync", func(l *queued) { l.find = l.findWithoutSync }),
		queues(property.GivesUpCutOff, "gives up with one delete", func(l *queued) { l.giveUp = l.deleteOnceAfterAWait }),
		queues(property.LineBreaks, "gives up its place when a list fails", func(l *queued) { l.wait = l.waitAskingOnce }),
		queues(property.ToldOfLoss, "looks at its connection once", func(l *queued) { l.wait = l.waitLookingOnce }),
		holds(property.LostDeleteReply, "leaves a lost delete to its caller", func(h *changed) { h.unlock = h.deleteOnce }),
		holds(property.LocksAgain, "the first of two Unlocks ends it", func(h *changed) { h.unlock = h.unlockAll }),
		{By: property.LocksAgain, Lock: over("enters a hold that is over", newEntersWhatIsOver)},
		holds(property.Fenced, "the token is the znode's number", func(h *changed) { h.token = h.number() }),
		{By: property.LostApart, Lock: over("counts in the lock", newCountsInTheLock)},
		{By: property.Tries, Lock: over("a try that ends the hold", newTriesWithItsTime)},
		{By: property.TryLost, Lock: over("a try that deletes once", newTriesAndDeletesOnce)},
	}...)

	// These are changes of step 4's lock.
	exercise.Refuses(t, exercise.Step4, property.GivingUp, property.Over("W23", newTakesAnInterruptForTheLock))
	exercise.Refuses(t, exercise.Step4, property.Unrelated, property.Over("W25", newTakesADirectoryForAPlace))
}

func starting() property.Subject {
	open := func(servers []string, timeout time.Duration, dial zk.Dialer) (*starter.Session, error) {
		return starter.Open(servers, timeout, zk.WithDialer(dial), zk.WithLogger(zktest.NoLog))
	}
	return property.OverHolds("the starter", open, starter.New)
}

// over is this step's lock in another form.
func over[H zktest.Hold, L interface {
	Lock(context.Context) (H, error)
	TryLock(context.Context) (H, error)
}](name string, newLock func(*Lock) L) property.Subject {
	open := func(servers []string, timeout time.Duration, dial zk.Dialer) (*Session, error) {
		return Open(servers, timeout, zk.WithDialer(dial), zk.WithLogger(zktest.NoLog))
	}
	s := property.OverHolds(name, open, func(s *Session, path string) L { return newLock(New(s, path)) })
	s.NotHeld = ErrNotHeld
	return s
}

// right is this step's lock, as a part of the others.
type right = Lock

// queued is this step's lock, with fields for the places where a queue can go wrong.
type queued struct {
	*right
	prefix func() string
	trusts bool // an answer to a create, in any session
	find   func(ctx context.Context, prefix string) (place, error)
	wait   func(ctx context.Context, mine place, mayWait bool) (*Hold, error)
	giveUp func(mine place, hasWaited bool)
}

// queueing is such a lock with one change.
func queueing(name string, change func(l *queued)) property.Subject {
	return over(name, func(own *Lock) *queued {
		l := &queued{right: own, find: own.find, wait: own.wait}
		l.giveUp = func(mine place, _ bool) { _ = own.leave(mine) }
		l.prefix = func() string { return fmt.Sprintf("%s/_c_%016x-lock-", own.dir, rand.Uint64()) }
		change(l)
		return l
	})
}

func (l *queued) Lock(ctx context.Context) (*Hold, error)    { return l.lock(ctx, true) }
func (l *queued) TryLock(ctx context.Context) (*Hold, error) { return l.lock(ctx, false) }

// lock is the step's own, without its checks.
func (l *queued) lock(ctx context.Context, mayWait bool) (*Hold, error) {
	if h := holdIn(ctx, l.right); h != nil {
		return h, h.enter()
	}
	for {
		mine, err := l.join(ctx)
		if err != nil {
			return nil, err
		}
		h, err := l.wait(ctx, mine, mayWait)
		if errors.Is(err, zk.ErrNoNode) {
			continue
		}
		if err != nil {
			go l.giveUp(mine, mayWait)
			return nil, err
		}
		return h, nil
	}
}

func (l *queued) join(ctx context.Context) (place, error) {
	prefix := l.prefix()
	for ctx.Err() == nil {
		session := l.s.conn.SessionID()
		node, err := create(l.s.conn, prefix, zk.FlagEphemeralSequential)
		if err == nil && (l.trusts || l.s.conn.SessionID() == session) {
			return place{node: node, session: session}, nil
		}
		if err != nil && !l.s.mustRetry(err) {
			return place{}, err
		}
		mine, err := l.find(ctx, prefix)
		if err != nil || mine.node != "" {
			return mine, err
		}
	}
	return place{}, context.Cause(ctx)
}

// "The create was not answered, so it has failed, and I try again."
func findsNothing(context.Context, string) (place, error) { return place{}, nil }

// "The create was not answered, and the caller may try again."
func givesBack(context.Context, string) (place, error) { return place{}, zk.ErrConnectionClosed }

// Right: a znode that was made without an answer can be deleted, and a new one made.
func (l *queued) findAndDelete(ctx context.Context, prefix string) (place, error) {
	mine, err := l.right.find(ctx, prefix)
	if err != nil || mine.node == "" {
		return place{}, err
	}
	if err := l.leave(mine); isRefused(err) {
		return place{}, err
	}
	return place{}, nil
}

// "The delete was sent, and the caller does not wait for more."
func (l *queued) deleteOnceAfterAWait(mine place, hasWaited bool) {
	if hasWaited {
		_ = l.s.conn.Delete(mine.node, -1)
	} else {
		_ = l.leave(mine)
	}
}

// "The guid is mine alone, so the znode is mine."
func (l *queued) findWhoever(_ context.Context, prefix string) (place, error) {
	return l.findIf(prefix, true, func(place) (bool, error) { return true, nil })
}

// "If the server has made my znode, it is in the list."
func (l *queued) findWithoutSync(_ context.Context, prefix string) (place, error) {
	return l.findIf(prefix, false, func(found place) (bool, error) {
		_, stat, err := l.s.conn.Get(found.node)
		return err == nil && stat.EphemeralOwner == found.session, err
	})
}

// "The list has failed, so there is nothing to find."
func (l *queued) findOnce(ctx context.Context, prefix string) (place, error) {
	for {
		_, err := l.s.conn.Sync(l.dir)
		if l.s.mustRetry(err) {
			pause()
			continue
		}
		mine, err := l.look(prefix)
		if l.s.mustRetry(err) {
			return place{}, nil
		}
		return mine, err
	}
}

// findIf looks for a znode whose path begins with prefix, and takes it if it is right.
func (l *queued) findIf(prefix string, syncs bool, isRight func(place) (bool, error)) (place, error) {
	for {
		if syncs {
			_, _ = l.s.conn.Sync(l.dir) // the list returns the error
		}
		names, _, err := l.s.conn.Children(l.dir)
		at := slices.IndexFunc(names, func(name string) bool { return strings.HasPrefix(l.dir+"/"+name, prefix) })
		found, right := place{}, false
		if err == nil && at >= 0 {
			found = place{l.dir + "/" + names[at], l.s.conn.SessionID()}
			right, err = isRight(found)
		}
		if l.s.mustRetry(err) {
			pause()
			continue
		}
		if errors.Is(err, zk.ErrNoNode) {
			return place{}, nil // not even the directory exists
		}
		if err != nil || !right {
			return place{}, err
		}
		return found, nil
	}
}

// "The guid tells my znodes from those of others, so one for each lock is enough."
func sameName(dir string) func() string {
	name := fmt.Sprintf("%s/_c_%016x-lock-", dir, rand.Uint64())
	return func() string { return name }
}

// "A list without an answer ends the wait."
func (l *queued) waitAskingOnce(ctx context.Context, mine place, mayWait bool) (*Hold, error) {
	if _, _, err := l.s.conn.Children(l.dir); err != nil {
		return nil, err
	}
	return l.right.wait(ctx, mine, mayWait)
}

// "The session is mine until I close it."
func (l *queued) waitWithoutConnection(ctx context.Context, mine place, mayWait bool) (*Hold, error) {
	h, err := l.right.wait(ctx, mine, mayWait)
	if err != nil {
		return nil, err
	}
	return newHold(l.right, mine, l.s.open, h.token), nil
}

// "Now that it is my turn, I need a connection."
func (l *queued) waitAndConnect(ctx context.Context, mine place, mayWait bool) (*Hold, error) {
	h, err := l.right.wait(ctx, mine, mayWait)
	if err != nil {
		return nil, err
	}
	return newHold(l.right, mine, l.s.connection(), h.token), nil
}

// "I am connected when I get the lock, so all is well."
func (l *queued) waitLookingOnce(ctx context.Context, mine place, mayWait bool) (*Hold, error) {
	h, err := l.right.wait(ctx, mine, mayWait)
	if err != nil || h.life.Err() != nil {
		return h, err
	}
	return newHold(l.right, mine, l.s.open, h.token), nil
}

// "My znode is in the list, so the place is mine."
func (l *queued) waitInAnySession(ctx context.Context, mine place, mayWait bool) (*Hold, error) {
	for {
		mine.session = l.s.conn.SessionID()
		h, err := l.right.wait(ctx, mine, mayWait)
		sessionHasChanged := l.s.conn.SessionID() != mine.session
		if errors.Is(err, zk.ErrNoNode) && sessionHasChanged {
			continue
		}
		return h, err
	}
}

// Right: the holders' znodes are made in the order in which they are served.
func (l *queued) waitForCzxid(ctx context.Context, mine place, mayWait bool) (*Hold, error) {
	h, err := l.right.wait(ctx, mine, mayWait)
	if err != nil {
		return nil, err
	}
	_, stat, err := l.s.conn.Get(mine.node)
	for l.s.mustRetry(err) {
		pause()
		_, stat, err = l.s.conn.Get(mine.node)
	}
	if err != nil {
		return nil, err
	}
	h.token = stat.Czxid
	return h, nil
}

// changed is a hold that differs from this step's in one method.
type changed struct {
	*Hold
	context func(parent context.Context) context.Context
	token   int64
	unlock  func() error
}

func (h *changed) Context(parent context.Context) context.Context { return h.context(parent) }
func (h *changed) Token() int64                                   { return h.token }
func (h *changed) Unlock() error {
	if h == nil {
		return ErrNotHeld
	}
	return h.unlock()
}

// changing is this step's lock with changed holds.
type changing struct {
	*right
	change func(h *changed)
}

func (l *changing) Lock(ctx context.Context) (*changed, error) { return l.changed(l.right.Lock(ctx)) }
func (l *changing) TryLock(ctx context.Context) (*changed, error) {
	return l.changed(l.right.TryLock(ctx))
}

func (l *changing) changed(h *Hold, err error) (*changed, error) {
	if err != nil {
		return nil, err
	}
	own := &changed{h, h.Context, h.Token(), h.Unlock}
	l.change(own)
	return own, nil
}

// holding is such a lock.
func holding(name string, change func(h *changed)) property.Subject {
	return over(name, func(l *Lock) *changing { return &changing{l, change} })
}

// "The work ends when it is done."
func (h *changed) contextThatGoesOn(parent context.Context) context.Context {
	return context.WithValue(parent, h.lock, h.Hold)
}

// "Each turn has a number of its own."
var turns atomic.Int64

// "The delete was not answered, and the caller may call Unlock again."
func (h *changed) deleteOnce() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.count == 0 {
		return ErrNotHeld
	}
	if h.count > 1 {
		h.count--
		return nil
	}
	h.end(ErrNotHeld)
	err := h.lock.s.conn.Delete(h.mine.node, -1)
	if !h.lock.s.mustRetry(err) {
		h.count--
	}
	return err
}

// "An Unlock releases the lock."
func (h *changed) unlockAll() error {
	for {
		h.mu.Lock()
		left := h.count
		h.mu.Unlock()
		if err := h.Hold.Unlock(); left <= 1 || err != nil {
			return err
		}
	}
}

// "Unlock must delete the znode. If it is already deleted, all is well."
func (h *changed) unlockAnyway() error {
	err := h.Hold.Unlock()
	if errors.Is(err, ErrLost) {
		return nil
	}
	return err
}

// W14: the holder's znode is the first, so unlock deletes the first.
func (h *changed) deleteTheFirst() error {
	names, _, err := h.lock.s.conn.Children(h.lock.dir)
	if err == nil && len(names) > 0 {
		slices.SortFunc(names, zktest.BySequence)
		h.mine.node = h.lock.dir + "/" + names[0]
	}
	return h.Hold.Unlock()
}

// "Each znode has a greater number than the one before."
func (h *changed) number() int64 {
	n, _ := number(pathpkg.Base(h.mine.node))
	return int64(n)
}

// W10: there is one count for all locks, so the hold of another one is a hold of this one.
type oneHoldForAllLocks struct{ *changing }

type anyHold struct{} // the mistake: it does not name the lock

func newOneHoldForAllLocks(l *Lock) oneHoldForAllLocks {
	return oneHoldForAllLocks{&changing{l, func(h *changed) {
		h.context = func(parent context.Context) context.Context {
			return context.WithValue(h.Hold.Context(parent), anyHold{}, h)
		}
	}}}
}

func (l oneHoldForAllLocks) Lock(ctx context.Context) (*changed, error) {
	if h, ok := ctx.Value(anyHold{}).(*changed); ok {
		return h, h.enter()
	}
	return l.changing.Lock(ctx)
}

// holdsInAMap is right: the context carries a key, by which the lock finds the hold.
type holdsInAMap struct {
	*changing
	mu   sync.Mutex
	held map[int64]*changed
	keys int64
}

type keyOf struct{ lock *holdsInAMap }

func newHoldsInAMap(own *Lock) *holdsInAMap {
	l := &holdsInAMap{held: map[int64]*changed{}}
	l.changing = &changing{own, l.knows}
	return l
}

// knows notes a new hold.
func (l *holdsInAMap) knows(h *changed) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.keys++
	key := l.keys
	l.held[key] = h
	h.context = func(parent context.Context) context.Context {
		return context.WithValue(h.Hold.Context(parent), keyOf{l}, key)
	}
	context.AfterFunc(h.life, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.held, key)
	})
}

func (l *holdsInAMap) Lock(ctx context.Context) (*changed, error) {
	return l.lock(ctx, l.changing.Lock)
}

func (l *holdsInAMap) TryLock(ctx context.Context) (*changed, error) {
	return l.lock(ctx, l.changing.TryLock)
}

func (l *holdsInAMap) lock(
	ctx context.Context,
	from func(context.Context) (*changed, error),
) (*changed, error) {
	key, isInside := ctx.Value(keyOf{l}).(int64)
	if !isInside {
		return from(ctx)
	}
	l.mu.Lock()
	h := l.held[key]
	l.mu.Unlock()
	if h == nil {
		return nil, ErrLost
	}
	return h, h.enter()
}

// "The lock knows how often it is locked."
type countsInTheLock struct {
	*right
	mu    sync.Mutex
	count int
}

func newCountsInTheLock(l *Lock) *countsInTheLock { return &countsInTheLock{right: l} }

func (l *countsInTheLock) Lock(ctx context.Context) (*countedInTheLock, error) {
	return l.counted(holdIn(ctx, l.right), func() (*Hold, error) { return l.right.Lock(ctx) })
}

func (l *countsInTheLock) TryLock(ctx context.Context) (*countedInTheLock, error) {
	return l.counted(holdIn(ctx, l.right), func() (*Hold, error) { return l.right.TryLock(ctx) })
}

func (l *countsInTheLock) counted(inside *Hold, lock func() (*Hold, error)) (*countedInTheLock, error) {
	h := inside
	if inside == nil {
		var err error
		if h, err = lock(); err != nil {
			return nil, err
		}
	} else if h.life.Err() != nil {
		return nil, context.Cause(h.life)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if inside == nil {
		l.count = 0
	}
	l.count++
	return &countedInTheLock{h, l}, nil
}

type countedInTheLock struct {
	*Hold
	lock *countsInTheLock
}

func (h *countedInTheLock) Unlock() error {
	h.lock.mu.Lock()
	defer h.lock.mu.Unlock()
	if h.lock.count == 0 {
		return ErrNotHeld
	}
	if h.lock.count--; h.lock.count > 0 {
		return nil
	}
	return h.Hold.Unlock()
}

// W11: the count is set only on the path that waited.
type entersIfItWaited struct{ *changing }

func newEntersIfItWaited(l *Lock) entersIfItWaited {
	return entersIfItWaited{&changing{l, func(*changed) {}}}
}

func (l entersIfItWaited) Lock(ctx context.Context) (*changed, error) {
	others, _, _ := l.s.conn.Children(l.dir)
	h, err := l.changing.Lock(ctx)
	if err == nil && len(others) == 0 {
		h.context = func(parent context.Context) context.Context {
			return context.WithValue(h.Hold.Context(parent), l.right, (*Hold)(nil)) // not known as its holder
		}
	}
	return h, err
}

// "The holder is known by its context."
type entersWhatIsOver struct{ *changing }

func newEntersWhatIsOver(l *Lock) entersWhatIsOver {
	return entersWhatIsOver{&changing{l, func(*changed) {}}}
}

func (l entersWhatIsOver) Lock(ctx context.Context) (*changed, error) {
	h := holdIn(ctx, l.right)
	if h == nil {
		return l.changing.Lock(ctx)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.count++
	return l.changed(h, nil)
}

// seated saves requests: of all calls of its process, only one is queued at a time. The others wait
// in the process, also for a hold that was lost, until it is released.
type seated struct {
	*changing
	seat chan struct{}
}

func newSeated(l *Lock) seated {
	return seated{&changing{l, func(*changed) {}}, make(chan struct{}, 1)}
}

func (l seated) Lock(ctx context.Context) (*changed, error) {
	if holdIn(ctx, l.right) != nil {
		return l.changing.Lock(ctx)
	}
	select {
	case l.seat <- struct{}{}:
	case <-ctx.Done():
		return nil, failed("lock", l.dir, context.Cause(ctx))
	case <-l.s.open.Done():
		return nil, failed("lock", l.dir, zk.ErrConnectionClosed)
	}
	return l.sits(l.right.Lock(ctx))
}

func (l seated) TryLock(ctx context.Context) (*changed, error) {
	if holdIn(ctx, l.right) != nil {
		return l.changing.TryLock(ctx)
	}
	select {
	case l.seat <- struct{}{}:
	default:
		return nil, failed("lock", l.dir, ErrLocked)
	}
	return l.sits(l.right.TryLock(ctx))
}

func (l seated) sits(h *Hold, err error) (*changed, error) {
	if err != nil {
		<-l.seat
		return nil, err
	}
	context.AfterFunc(h.life, func() { <-l.seat })
	return l.changed(h, nil)
}

// "The work ends with the context that TryLock was given."
type triesWithItsTime struct{ *changing }

func newTriesWithItsTime(l *Lock) triesWithItsTime {
	return triesWithItsTime{&changing{l, func(*changed) {}}}
}

func (l triesWithItsTime) TryLock(ctx context.Context) (*changed, error) {
	h, err := l.changing.TryLock(ctx)
	if err != nil {
		return nil, err
	}
	h.context = func(parent context.Context) context.Context {
		work, end := context.WithCancelCause(h.Hold.Context(parent))
		context.AfterFunc(ctx, func() { end(ctx.Err()) })
		return work
	}
	return h, nil
}

// "Somebody else holds the lock, and the next try will find it free."
type triesAndStays struct{ *right }

func newTriesAndStays(l *Lock) triesAndStays { return triesAndStays{l} }

func (l triesAndStays) TryLock(ctx context.Context) (*Hold, error) {
	holds := make(chan *Hold, 1)
	errs := make(chan error, 1)
	go func() {
		h, err := l.right.Lock(ctx)
		holds <- h
		errs <- err
	}()
	select {
	case h := <-holds:
		return h, <-errs
	case <-time.After(time.Second):
		return nil, ErrLocked
	}
}

// "The delete was sent, and TryLock has an answer to give."
type triesAndDeletesOnce struct{ *right }

func newTriesAndDeletesOnce(l *Lock) triesAndDeletesOnce { return triesAndDeletesOnce{l} }

func (l triesAndDeletesOnce) TryLock(ctx context.Context) (*Hold, error) {
	mine, err := l.join(ctx)
	if err != nil {
		return nil, err
	}
	h, err := l.wait(ctx, mine, false)
	if err != nil {
		_ = l.s.conn.Delete(mine.node, -1)
		return nil, err
	}
	return h, nil
}
