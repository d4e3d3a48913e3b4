package predecessorwatch

import (
	"cmp"
	"context"
	"errors"
	pathpkg "path"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"zklock/internal/explore"
	"zklock/internal/property"
	"zklock/internal/wiretap"
	"zklock/internal/zktest"
)

// right is this step's lock, as a part of the wrong ones.
type right = Lock

// waiting returns when node is the first in the queue.
type waiting func(l *right, ctx context.Context, node string) error

// wrong is this step's lock, whose waiting has a mistake in it.
type wrong struct {
	*right
	wait waiting
}

func (l wrong) Lock(ctx context.Context) error {
	node, err := create(l.conn, l.dir+"/lock-", zk.FlagEphemeralSequential)
	if err != nil {
		return err
	}
	if err := l.wait(l.right, ctx, node); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.node = node
	return nil
}

// waits makes a lock that waits in this way, and keeps its znode when the wait has failed.
func waits(wait waiting) func(*zk.Conn, string) wrong {
	return func(conn *zk.Conn, path string) wrong { return wrong{New(conn, path), wait} }
}

// leaving is the same wait, but it deletes the znode when it has failed, as is right.
func leaving(wait waiting) waiting {
	return func(l *right, ctx context.Context, node string) error {
		err := wait(l, ctx, node)
		if err != nil {
			err = errors.Join(err, l.leave(node))
		}
		return err
	}
}

// before is the path of the znode before ours, "" when ours is the first.
func before(l *right, node string) (path string, err error) {
	names, _, err := l.conn.Children(l.dir)
	if err != nil {
		return "", err
	}
	name, err := predecessor(names, pathpkg.Base(node))
	if name == "" || err != nil {
		return "", err
	}
	return l.dir + "/" + name, nil
}

// told returns when the watch has fired.
func told(ctx context.Context, gone <-chan zk.Event) error {
	select {
	case event := <-gone:
		return event.Err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// watch returns when the znode has been deleted.
func watch(l *right, ctx context.Context, path string) error {
	_, _, gone, err := l.conn.GetW(path)
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	if err != nil {
		return err
	}
	return told(ctx, gone)
}

var errNoneBefore = errors.New("no znode is before ours")

// W8, published in 基于zookeeper实现分布式锁(下) and in the course's article on 51CTO.
// The idea: I wait for the deletion of my predecessor's znode; it is deleted; it is my
// turn. But it may have been a waiter that crashed, and the holder still holds the lock.
func trustsTheWakeUp(l *right, ctx context.Context, node string) error {
	path, err := before(l, node)
	if path == "" || err != nil {
		return err
	}
	return watch(l, ctx, path)
}

var w8 = waits(leaving(trustsTheWakeUp))

func TestW8TrustsTheWakeUp(t *testing.T) {
	subject := property.Over("W8", w8)
	explore.Acts(subject)
	t.Parallel()
	property.Lacks(t, subject, property.WaiterCrash)

	// The predecessor is already deleted: both listings also return then, and it was a waiter's.
	z := zktest.New(t)
	a, b, c := lock.Join(z, "A"), lock.Join(z, "B"), subject.Join(z, "C")
	a.Acquire()
	gaveUp := b.Start()
	gaveUp.MustWait("A")
	slow := c.Tap.HoldRequest(wiretap.GetData, 1)
	late := c.Start()
	zktest.AwaitChan(z, "C to ask for B's znode", slow.Sprung())
	require.ErrorIs(t, gaveUp.Cancel(), context.Canceled, "what B's Lock answers")
	slow.Let()
	require.NoError(t, late.Err(), "what C's Lock answers, B's znode being gone, while A holds the lock")
	assert.Equal(t, a.ID, owner(t, z, a.Znode()), "the session of A's znode: A and C hold the lock at once")
}

// W27, published in 基于zookeeper实现分布式锁(下). The idea: whatever wakes me says that the znode before mine
// was deleted, so the event's type does not matter. But in Java every watcher also gets the session's events: a
// waiter whose connection breaks for a moment gets the lock. The listing also has W8. Here the lock lists again
// after a deletion, to show this mistake alone.
func looksAtNoType(s javaSession) waiting {
	return func(l *right, ctx context.Context, node string) error {
		for {
			path, err := before(l, node)
			if path == "" || err != nil {
				return err
			}
			event, err := s.watch(ctx, path)
			if event.Type == zk.EventSession || err != nil {
				return err
			}
		}
	}
}

// javaSession is a connection whose watchers get the events that they get in Java.
type javaSession struct {
	conn   *zk.Conn
	events <-chan zk.Event // of the session; in Java each watcher gets them, and here there is one watcher
}

func (s javaSession) Conn() *zk.Conn { return s.conn }
func (s javaSession) Close()         { s.conn.Close() }

func openAsInJava(servers []string, timeout time.Duration, dial zk.Dialer) (zktest.Session, error) {
	conn, events, err := zk.Connect(servers, timeout, zk.WithDialer(dial), zk.WithLogger(zktest.NoLog))
	return javaSession{conn, events}, err
}

// watch returns the first event that the watcher of a znode gets.
func (s javaSession) watch(ctx context.Context, path string) (event zk.Event, err error) {
	for len(s.events) > 0 {
		<-s.events // from before there was a watcher
	}
	_, _, gone, err := s.conn.GetW(path)
	if errors.Is(err, zk.ErrNoNode) {
		return event, nil
	}
	if err != nil {
		return event, err
	}
	select {
	case event = <-gone:
		return event, event.Err
	case event = <-s.events:
		return event, nil
	case <-ctx.Done():
		return event, ctx.Err()
	}
}

// The lock is at path, over a session with the events of Java.
func w27(s zktest.Session, path string) (write zktest.Way, read *zktest.Way) {
	session, _ := s.(javaSession)
	wait := leaving(looksAtNoType(session))
	return property.Over("W27", waits(wait)).Ways(s, path)
}

func TestW27LooksAtNoType(t *testing.T) {
	looks := property.Subject{Name: "W27", Open: openAsInJava, Ways: w27}
	explore.Acts(looks)
	t.Parallel()
	z := zktest.New(t)
	a, b := lock.Join(z, "A"), looks.Join(z, "B")
	a.Acquire()
	waiting := b.Start()
	waiting.MustWait("A")
	b.Tap.HangUp()
	require.NoError(t, waiting.Err(), "what B's Lock answers after its connection broke, while A holds the lock")
	require.Equal(t, a.ID, owner(t, z, a.Znode()), "the session of A's znode: A and B hold the lock at once")
	queue := a.Queue()
	require.Len(t, queue, 2, "the queue")
	t.Logf("W27: B's connection broke while A held the lock, and B got the lock as well; the queue: %v", queue)
}

// owner is the session that a znode belongs to; the znode must exist.
func owner(t *testing.T, z *zktest.Zoo, path string) int64 {
	t.Helper()
	session, there := z.Owner(path)
	require.True(t, there, "%s is there", path)
	return session
}

// W28, published in the course's article on 51CTO. The idea: an object is a lock, so it has a field for its znode.
// Each Lock writes its znode into it at once, even if it then has to wait. With two goroutines on one object, the
// holder's Unlock deletes the waiter's znode: the lock is not released, and the waiter has lost its place. The lock
// of 基于zookeeper实现分布式锁(下) creates its znode in the constructor: there both get the lock. See W6.
type oneField struct {
	*right
	note sync.Mutex // so that there is no data race as well
	last string
}

func newOneField(conn *zk.Conn, path string) *oneField { return &oneField{right: New(conn, path)} }

func (l *oneField) Lock(ctx context.Context) error {
	node, err := create(l.conn, l.dir+"/lock-", zk.FlagEphemeralSequential)
	if err != nil {
		return err
	}
	l.note.Lock()
	l.last = node
	l.note.Unlock()
	return leaving((*right).wait)(l.right, ctx, node)
}

func (l *oneField) Unlock() error {
	l.note.Lock()
	defer l.note.Unlock()
	return l.conn.Delete(l.last, -1)
}

func TestW28OneFieldForTheZnode(t *testing.T) {
	t.Parallel()
	subject := property.Over("W28", newOneField)
	property.Lacks(t, subject, property.ManyShare)

	z := zktest.New(t)
	shared := subject.Join(z, "two goroutines")
	first := shared.Acquire()
	held := shared.Znode()
	second := shared.Start()
	second.MustWait("the first goroutine")
	first.Release()
	queue := []string{pathpkg.Base(held)}
	assert.Equal(t, queue, shared.Queue(), "the queue: the first has unlocked, and its znode is there")
	second.MustWait("the znode of a goroutine that has unlocked")
}

// W9, published in the same two, in lenshood's text, and in nileader's article on the herd effect.
// The idea: exists() reports whether the znode exists, and sets the watch. It also
// sets one when the znode does not exist, to notify of its creation, which never
// happens: the watch stays.
func asksIfItExists(l *right, ctx context.Context, node string) error {
	for {
		path, err := before(l, node)
		if path == "" || err != nil {
			return err
		}
		there, _, gone, err := l.conn.ExistsW(path)
		if there {
			err = told(ctx, gone)
		}
		if err != nil {
			return err
		}
	}
}

var w9 = waits(leaving(asksIfItExists))

func TestW9AsksIfItExists(t *testing.T) {
	subject := property.Over("W9", w9)
	explore.Acts(subject)
	t.Parallel()
	property.Lacks(t, subject, property.NoWatchLeft)
}

// W12, published in the course's article on 51CTO. The idea:
// the time is up, so return to the caller. The znode is forgotten: it becomes the
// first in the queue, and everyone behind it waits for a client that has given
// up.
var w12 = waits((*right).wait)

func TestW12ForgetsItsZnode(t *testing.T) {
	subject := property.Over("W12", w12)
	explore.Acts(subject)
	t.Parallel()
	property.Lacks(t, subject, property.GivingUp)
}

// W18, published in the course's article on 51CTO. The idea:
// tryLock creates a znode, lists once, and returns false if another is before it. But
// the znode stays: the caller's next try is behind its first, and everybody else is
// behind both. It breaks "giving up leaves nothing behind".
func looksOnce(l *right, _ context.Context, node string) error {
	path, err := before(l, node)
	if path != "" {
		err = errHeld
	}
	return err
}

var errHeld = errors.New("somebody else holds the lock")

// tries is Lock that retries, as callers of tryLock do.
type tries struct{ wrong }

func (l tries) Lock(ctx context.Context) error {
	for {
		if err := l.wrong.Lock(ctx); !errors.Is(err, errHeld) {
			return err
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

var w18 = waits(looksOnce)

func newTries(conn *zk.Conn, path string) tries { return tries{w18(conn, path)} }

func TestW18TriesAndStays(t *testing.T) {
	explore.Acts(property.Over("W18", newTries))
	t.Parallel()
	z := zktest.New(t)
	holder, b := lock.Join(z, "the holder").Acquire(), property.Over("tryLock", w18).Join(z, "B")
	require.ErrorIs(t, b.Start().Err(), errHeld, "B's first try")
	next := lock.Join(z, "the next").Start()
	next.Queued()
	holder.Release()
	next.MustWait("B's TryLock has failed, and its znode is before this one")
	second := b.Start().Err()
	require.ErrorIs(t, second, errHeld, "B's second try, while nobody has the lock: its first znode is before its second")
	queue := holder.Queue()
	require.Len(t, queue, 3, "the queue: two of B's, and the next one's, and nobody holds the lock")
	t.Logf("W18: nobody holds the lock, and B's second try says %q; the queue, two of them B's: %v", second, queue)
}

// W19, published in the same. The idea: print an error of the list, and then wait
// for our predecessor's znode. But the code has not found that znode yet. Java turns
// its name into "null", there is no such znode, so it counts as deleted, and Lock
// returns.
func waitsForNobody(l *right, ctx context.Context, node string) error {
	for {
		path, unknown := before(l, node)
		if unknown != nil {
			return watch(l, ctx, l.dir+"/null")
		}
		if path == "" {
			return nil
		}
		if err := watch(l, ctx, path); err != nil {
			return err
		}
	}
}

var w19 = waits(leaving(waitsForNobody))

func TestW19WaitsForNobody(t *testing.T) {
	subject := property.Over("W19", w19)
	explore.Acts(subject)
	t.Parallel()
	property.Lacks(t, subject, property.OneHolder)
}

// W20, published in Java 基于 ZooKeeper 实现分布式锁需要注意什么. The idea: it is our
// turn when the first in the list is ours. But the list has names, and the create
// has returned a path. They are never equal, so no client ever gets the lock. Few
// properties show it, because nearly all begin with a lock that can be taken. It breaks
// "first come, first served".
func comparesAPathWithAName(l *right, ctx context.Context, node string) error {
	names, _, err := l.conn.Children(l.dir)
	if err != nil {
		return err
	}
	slices.Sort(names)
	if names[0] == node {
		return nil
	}
	at := slices.Index(names, node) - 1
	if at < 0 {
		return errNoneBefore
	}
	return errors.Join(watch(l, ctx, l.dir+"/"+names[at]), comparesAPathWithAName(l, ctx, node))
}

var w20 = waits(leaving(comparesAPathWithAName))

func TestW20ComparesAPathWithAName(t *testing.T) {
	compares := property.Over("W20", w20)
	explore.Acts(compares)
	t.Parallel()
	alone := compares.Join(zktest.New(t), "the only one")
	err := alone.Start().Err()
	require.ErrorIs(t, err, errNoneBefore, "the lock is free, and nobody else has ever asked for it")
	require.Equal(
		t,
		1,
		wiretap.Count(alone.Tap.Frames()).Names,
		"names in the list: its own is the first, and there is no other",
	)
	t.Logf("W20: the lock is free, nobody else has ever asked for it, and Lock returns the error %q", err)
}

// W21, published in the same, once W20 is fixed. The idea: list to see whether we are
// the first; if not, list to find our predecessor. If the holder releases between the
// two lists, we have no predecessor any more, and the code takes that for an error. It
// breaks "first come, first served": it is first, and is not served.
func looksTwice(l *right, ctx context.Context, node string) error {
	for {
		if path, err := before(l, node); path == "" || err != nil {
			return err
		}
		path, err := before(l, node)
		if path == "" || err != nil {
			return cmp.Or(err, errNoneBefore)
		}
		if err := watch(l, ctx, path); err != nil {
			return err
		}
	}
}

var w21 = waits(leaving(looksTwice))

func TestW21LooksTwice(t *testing.T) {
	looks := property.Over("W21", w21)
	explore.Acts(looks)
	t.Parallel()
	z := zktest.New(t)
	holder, waiter := lock.Join(z, "the holder").Acquire(), looks.Join(z, "the waiter")
	slow := waiter.Tap.HoldRequest(wiretap.GetChildren, 2)
	waiting := waiter.Start()
	zktest.AwaitChan(z, "the waiter's second look", slow.Sprung())
	holder.Release()
	assert.Len(t, holder.Queue(), 1, "the queue: the waiter is the first")
	slow.Let()
	err := waiting.Err()
	require.ErrorIs(t, err, errNoneBefore, "the lock is free, and it is the waiter's turn")
	t.Logf("W21: the lock is free, it is the waiter's turn, and its Lock returns the error %q", err)
}

// W22, published in the same. The idea: what can fail while we wait is in a try block,
// which deletes the znode when it fails. But the first list is before the try. If it
// fails, the caller gets an error, and the znode stays: everyone behind it waits until
// the session ends. It breaks "giving up leaves nothing behind".
func looksBeforeTheTry(l *right, ctx context.Context, node string) error {
	path, err := before(l, node)
	if path == "" || err != nil {
		return err
	}
	return leaving((*right).wait)(l, ctx, node)
}

var w22 = waits(looksBeforeTheTry)

func TestW22LooksBeforeTheTry(t *testing.T) {
	looks := property.Over("W22", w22)
	explore.Acts(looks)
	t.Parallel()
	z := zktest.New(t)
	a := looks.Join(z, "A")
	a.Tap.LoseReply(wiretap.GetChildren, 1)
	err := a.Start().Err()
	require.ErrorIs(t, err, zk.ErrConnectionClosed, "the error that the caller gets")
	z.Await("A to be back", func() bool { return a.State() == zk.StateHasSession })
	require.Equal(t, a.ID, a.SessionID(), "A's session lives on")
	lock.Join(z, "the next").Start().MustWait("A has given up, and its znode is before this one")
	t.Logf("W22: A's Lock returned the error %q, and the next client waits for A's znode; the queue: %v", err, a.Queue())
}

// W24, published in the same. The idea: set a watch on our predecessor, and wait for its
// notification. The code ignores the server's reply. If the znode was already deleted,
// exists has set a watch that never fires, and the lock is free. It breaks "first come,
// first served": it is first, and waits forever.
func waitsWhateverIsThere(l *right, ctx context.Context, node string) error {
	for {
		path, err := before(l, node)
		if path == "" || err != nil {
			return err
		}
		_, _, gone, err := l.conn.ExistsW(path)
		if err != nil {
			return err
		}
		if err := told(ctx, gone); err != nil {
			return err
		}
	}
}

var w24 = waits(leaving(waitsWhateverIsThere))

func TestW24WaitsWhateverIsThere(t *testing.T) {
	waitsOn := property.Over("W24", w24)
	explore.Acts(waitsOn)
	t.Parallel()
	z := zktest.New(t)
	holder, waiter := lock.Join(z, "the holder").Acquire(), waitsOn.Join(z, "the waiter")
	slow := waiter.Tap.HoldRequest(wiretap.Exists, 1)
	waiting := waiter.Start()
	zktest.AwaitChan(z, "the waiter's watch to be under way", slow.Sprung())
	holder.Release()
	slow.Let()
	waiting.MustWait("nobody, by mistake")
	queue := waiting.Queue()
	require.Equal(t, []string{pathpkg.Base(waiting.Znode())}, queue, "the queue: the waiter is the first")
	require.ErrorIs(t, waiting.Cancel(), context.Canceled, "only giving up ends the wait")
	t.Logf("W24: the holder has released the lock, and the waiter, the only one in the queue %v, still waits", queue)
}

// W15, published in the same. The idea: the watcher wakes the waiting thread,
// and takes the local lock to do so. But the waiting thread has the local lock:
// each waits for the other. If it got that lock, Java's signalAll would throw: the
// condition belongs to another lock. The properties get stuck on it, which is no
// evidence. It breaks "a release wakes one".
func wakesUnderTheWaitersLock(l *right, ctx context.Context, node string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	path, err := before(l, node)
	if path == "" || err != nil {
		return err
	}
	woken := make(chan error, 1)
	go func() {
		err := watch(l, ctx, path)
		l.mu.Lock()
		defer l.mu.Unlock()
		woken <- err
	}()
	select {
	case err := <-woken:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

var w15 = waits(leaving(wakesUnderTheWaitersLock))

func TestW15WakesUnderTheWaitersLock(t *testing.T) {
	wakes := property.Over("W15", w15)
	explore.Acts(wakes)
	t.Parallel()
	z := zktest.New(t)
	line := wakes.Line(z, 1)
	holder, waiter := line[0], line[1]
	count := z.Count(waiter)
	holder.Release()
	require.Equal(t, 1, count().Notifications, "the waiter was notified of the release")
	queue := waiter.Queue()
	require.Equal(t, []string{pathpkg.Base(waiter.Znode())}, queue, "the queue: the waiter is the first")
	require.Never(
		t,
		waiter.Returned,
		100*time.Millisecond,
		10*time.Millisecond,
		"its Lock, whose watcher waits for it, has returned",
	)
	require.ErrorIs(t, waiter.Cancel(), context.Canceled, "only giving up ends the wait")
	t.Logf("W15: the waiter was notified of the release, is the only one in the queue %v, and its Lock did not return", queue)
}
