package leased

import (
	"fmt"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"

	"zklock/internal/property"
	"zklock/internal/wiretap"
	"zklock/internal/zktest"
)

// as returns the member as a reader or a writer, by the letter R or W.
func as(letter rune, m *zktest.Member) *zktest.Member {
	if letter == 'R' {
		return m.Reader
	}
	return m
}

// line lets clients call Lock one after the other, R as readers and W as writers. It returns when those at
// the front hold the lock, and all others wait without sending requests.
func line(z *zktest.Zoo, letters string) (turns []*zktest.Turn) {
	var waiting []*zktest.Turn
	for i, letter := range letters {
		turn := as(letter, rwmutexes.Join(z, fmt.Sprintf("client %d (%c)", i+1, letter))).Start()
		turn.Queued()
		if i == 0 || !strings.Contains(letters[:i+1], "W") {
			turn.Acquired()
		} else {
			waiting = append(waiting, turn)
		}
		turns = append(turns, turn)
	}
	z.Settle(waiting...)
	return turns
}

func TestEachWatchesTheOneItWaitsFor(t *testing.T) {
	t.Parallel()
	turns := line(zktest.New(t), "WRRWRWWRR")
	behind := []int{ // the client that each of the others waits for
		0, 0, // a reader waits for the last writer before it
		2, // a writer waits for the last client before it
		3, 4, 5, 6, 6,
	}
	for i, turn := range turns[1:] {
		watches := []string{turns[behind[i]].Znode()}
		require.Equal(t, watches, turn.Tap.Watched(), "%s watches number %d", turn.Name, behind[i]+1)
	}
}

// The readers before the first writer in the queue acquire the lock together. Each of them must be notified,
// and no other client is.
func TestAWritersReleaseTellsThoseWhomItLetsIn(t *testing.T) {
	t.Parallel()
	for waiting, letIn := range map[string]int{"RRRRRRRRRR": 10, "RRRRRWRRRRR": 5} {
		z := zktest.New(t)
		turns := line(z, "W"+waiting)
		writer, waiters := turns[0], turns[1:]
		count := z.Count(waiters...)
		writer.Release()
		for _, turn := range waiters[:letIn] {
			turn.Acquired()
		}
		z.Settle(waiters[letIn:]...)
		require.Equal(t, letIn, count().Notifications, "notifications, while these wait: %s", waiting)
	}
}

// Ten readers unlock in the order in which they arrived. The writer behind them needs only the notification
// about the last one.
func TestAWriterIsToldOfTheLastReader(t *testing.T) {
	t.Parallel()
	const n = 10
	z := zktest.New(t)
	turns := line(z, strings.Repeat("R", n)+"W")
	readers, writer := turns[:n], turns[n]
	count := z.Count(writer)
	for i, reader := range readers {
		reader.Release()
		if i < n-1 {
			z.Settle(writer)
		}
	}
	writer.Acquired()
	require.Equal(t, 1, count().Notifications, "notifications")
}

// W1 holds the lock, R waits, and W2 waits behind R. When W1 unlocks, R is notified and lists again. It must
// not begin to wait for W2, which waits for R.
func TestAReaderDoesNotWaitForAWriterBehindIt(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	turns := line(z, "WRW")
	turns[0].Release()
	turns[1].Acquired()
	turns[2].MustWait("client 2 reads")
	turns[1].Release()
	turns[2].Release()
}

// TryRLock returns ErrLocked behind a writer, but not behind readers. A writer's TryLock returns it behind
// either.
func TestATryOfAReader(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a, b, c := rwmutexes.Join(z, "A"), rwmutexes.Join(z, "B"), rwmutexes.Join(z, "C")
	one := a.Reader.Call(a.Reader.TryLock)
	one.Acquired()
	two := b.Reader.Call(b.Reader.TryLock)
	two.Acquired()
	_, err := c.TryLock(z.Ctx)
	require.ErrorIs(t, err, ErrLocked, "a writer, while two read")
	writer := c.Start()
	writer.MustWait("two read")
	_, err = b.Reader.TryLock(z.Ctx)
	require.ErrorIs(t, err, ErrLocked, "a reader, while a writer waits")
	one.Release()
	two.Release()
	writer.Release()
}

// A function that a reader calls does not get the hold's context, and calls RLock again while a writer waits.
// So the reader waits for itself. The call returns when its context ends, and leaves no znode behind. With
// the hold's context it returns the hold.
func TestAReaderThatForgetsItsHold(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a, b := rwmutexes.Join(z, "A"), rwmutexes.Join(z, "B")
	outer := a.Reader.Acquire()
	writer := b.Start()
	writer.MustWait("A reads")
	a.Reader.StartIn(outer.Context()).Release()
	forgot := a.Reader.Start()
	forgot.MustWait("B came first, and waits for A's own read")
	require.Error(t, forgot.Cancel())
	z.Await("nothing of it to be left", func() bool { return len(a.Queue()) == 2 })
	outer.Release()
	writer.Release()
}

// All calls inside a writer's hold share one znode, which stays a writer's until it is deleted. No other
// client acquires the lock before every Unlock was called, in whatever order the calls to Lock and RLock were
// made.
func TestAWritersHoldStaysExclusiveUntilAllIsReleased(t *testing.T) {
	t.Parallel()
	for _, entriesAndExits := range []string{"Rxx", "WRxxx", "RRxxx", "RxWxx"} { // a letter: an entry; x: an exit
		z := zktest.New(t)
		a, b := rwmutexes.Join(z, "the writer"), rwmutexes.Join(z, "a reader")
		held := a.Acquire().Held()
		_, err := b.Reader.TryLock(z.Ctx)
		require.ErrorIs(t, err, ErrLocked, "a reader that asks once")
		mark, reader := a.Tap.Mark(), b.Reader.Start()
		for i, letter := range entriesAndExits {
			reader.MustWait("the end of %s, from number %d", entriesAndExits, i+1)
			if unicode.IsUpper(letter) {
				_, err := as(letter, a).Lock(held.Context(z.Ctx))
				require.NoError(t, err, "%c inside a writer's hold", letter)
			} else {
				require.NoError(t, held.Unlock(), "exit number %d of %s", i+1, entriesAndExits)
			}
		}
		reader.Acquired()
		require.Zero(t, a.Requests(mark)[wiretap.Create], "znodes made by %s", entriesAndExits)
		require.Zero(t, session(a).Stats().Holds, "holds of the session")
	}
}

// A reader calls Lock and TryLock inside its hold. Both are refused, without a request.
func TestAnUpgradeIsRefusedWithoutARequest(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a := rwmutexes.Join(z, "A")
	reading := a.Reader.Acquire()
	mark := a.Tap.Mark()
	_, err := a.Lock(reading.Context())
	require.ErrorIs(t, err, ErrUpgrade)
	_, err = a.TryLock(reading.Context())
	require.ErrorIs(t, err, ErrUpgrade)
	require.Empty(t, a.Asked(mark))
	require.NoError(t, reading.Context().Err(), "the hold goes on")
	reading.Release()
}

// A writer, A, holds the lock. The readers B and C wait, and meanwhile B's session expires. B queues up again
// as a reader, so B and C hold the lock together.
func TestAReaderThatQueuesAgainIsAReader(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a, b, c := rwmutexes.Join(z, "A"), rwmutexes.JoinMortal(z, "B"), rwmutexes.Join(z, "C")
	held := a.Acquire()
	first := b.Reader.Start()
	first.MustWait("A writes")
	z.Expire(b.Client)
	b.Tap.Restore()
	z.Await("B to queue again", func() bool { return len(b.Queue()) == 2 || first.Returned() })
	second := c.Reader.Start()
	second.MustWait("A writes")
	held.Release()
	first.Acquired()
	second.Acquired()
}

// The reply to B's create is lost. B finds its znode, and holds the lock beside A, another reader.
func TestAReaderThatFindsItsZnodeIsAReader(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a, b := rwmutexes.Join(z, "A"), rwmutexes.Join(z, "B")
	a.Reader.Acquire()
	lost := b.Tap.LoseReply(wiretap.Create, 1)
	b.Reader.Acquire()
	zktest.AwaitChan(z, "the reply to be lost", lost.Sprung())
}

// The properties, for clients that read and write in turn. Three are left out: Shared, which brings readers
// of its own; ManyShare, which has one client; and OneHolder, because readers may hold the lock together.
func TestReadersAndWritersInTurn(t *testing.T) {
	t.Parallel()
	readersFirst, writersFirst := property.Reading(rwmutexes, true), property.Reading(rwmutexes, false)
	for _, lock := range []property.Subject{readersFirst, writersFirst} {
		property.Holds(t, lock,
			property.CrashFrees,
			property.FirstCome,
			property.OnlyHolder,
			property.Unrelated,
			property.SilentWait,
			property.WakesOne,
			property.ArrivalWakesNobody,
			property.LostCreateReply,
			property.LostDeleteReply,
			property.LocksAgain,
			property.ToldOfLoss,
			property.Fenced,
			property.LongHold,
			property.ParentsMade,
			property.WhateverIsInIt,
			property.LostWhileWaiting,
			property.WaiterCrash,
		)
	}
	// A holds the lock, B and C wait, and B leaves the queue. If only B writes, C rightly acquires the lock
	// beside A: between these two readers there was only a writer.
	property.Lacks(t, readersFirst, property.GivingUp)
	property.Holds(t, readersFirst, property.NoWatchLeft)
	property.Holds(t, writersFirst, property.GivingUp, property.NoWatchLeft)
}
