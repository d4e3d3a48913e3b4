package sharedlock

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"zklock/internal/check/lockcheck"
	"zklock/internal/check/zktest"
)

func TestMain(m *testing.M) { zktest.Main(m) }

// open is Open without the client library's log: what happened is in the tap's record.
func open(servers []string, timeout time.Duration, dial zk.Dialer) (*Session, error) {
	return Open(servers, timeout, zk.WithDialer(dial), zk.WithLogger(zktest.NoLog))
}

var locks = func() lockcheck.Subject {
	subject := lockcheck.OverHolds("step 6", open, New)
	subject.NotHeld, subject.Lost = ErrNotHeld, ErrLost
	return subject
}()

func TestProperties(t *testing.T) {
	lockcheck.Holds(
		t, locks,
		// as in step 5
		lockcheck.OneHolder,
		lockcheck.CrashFrees,
		lockcheck.FirstCome,
		lockcheck.NoStranger,
		lockcheck.GivingUp,
		lockcheck.Unrelated,
		lockcheck.WaiterCrash,
		lockcheck.SilentWait,
		lockcheck.WakesOne,
		lockcheck.ArrivalWakesNobody,
		lockcheck.NoWatchLeft,
		lockcheck.LongHold,
		lockcheck.ParentsMade,
		lockcheck.ManyShare,
		lockcheck.WhateverIsInIt,
		lockcheck.LostWhileWaiting,
		lockcheck.ReleaseSeen,
		lockcheck.FailsClean,
		lockcheck.UnlockRepeated,
		lockcheck.LostTold,
		lockcheck.QuietAfter,
		lockcheck.OwnPlace,
		lockcheck.OldZnode,
		lockcheck.NotBeside,
		lockcheck.LostCreateReply,
		lockcheck.LostDeleteReply,
		lockcheck.LocksAgain,
		lockcheck.ToldOfLoss,
		lockcheck.Fenced,
		lockcheck.LineBreaks,
		lockcheck.GivesUpAtOnce,
		lockcheck.Tries,
		// new in this step
		lockcheck.Shared,
		lockcheck.Upgrade,
		lockcheck.ReaderStays,
	)
}

// The clients of these stories read and write in turn.
func TestReadersAndWritersInTurn(t *testing.T) {
	for _, lock := range []lockcheck.Subject{lockcheck.Reading(locks, true), lockcheck.Reading(locks, false)} {
		lockcheck.Holds(
			t, lock,
			lockcheck.CrashFrees,
			lockcheck.FirstCome,
			lockcheck.WakesOne,
			lockcheck.ArrivalWakesNobody,
			lockcheck.LostCreateReply,
			lockcheck.LostDeleteReply,
			lockcheck.LocksAgain,
			lockcheck.ToldOfLoss,
			lockcheck.Fenced,
		)
	}
	// A holds the lock, B and C wait, and B leaves the queue. If only B writes, C is let
	// in beside A, and rightly so: only a writer stood between two readers.
	lockcheck.Lacks(t, lockcheck.Reading(locks, true), lockcheck.WaiterCrash)
}

func TestEachWatchesTheOneItWaitsFor(t *testing.T) {
	t.Parallel()
	turns := queue(zktest.New(t), locks, "WRRWRWWRR")
	waitsFor := []int{
		0, 0, // the last writer before a reader,
		2, // the last of all before a writer
		3, 4, 5, 6, 6,
	}
	for i, turn := range turns[1:] {
		znode := turns[waitsFor[i]].Znode()
		require.Equal(t, []string{znode}, turn.Tap.Watched(), "%s watches number %d", turn.Name, waitsFor[i])
	}
}

// A reader may come in beside readers though a writer waits behind them. W26 waits for it.
func TestAReaderDoesNotWaitForAWriterBehindIt(t *testing.T) {
	t.Parallel()
	names := []string{"_c_a-__READ__0000000000", "_c_b-__READ__0000000001", "_c_c-__WRIT__0000000002"}
	before, err := predecessor(names, names[1])
	require.NoError(t, err)
	require.Empty(t, before, "whom the second reader waits for")
	before, err = predecessor(names, names[2])
	require.NoError(t, err)
	require.Equal(t, names[1], before, "whom the writer waits for")
}

// as is the member as a reader or a writer.
func as(k kind, m *zktest.Member) *zktest.Member {
	if k == read {
		return m.Reader
	}
	return m
}

// queue brings clients to the lock one after the other, R to read and W to write.
// It returns when those in front hold the lock, and all others wait silently.
func queue(z *zktest.Zoo, lock lockcheck.Subject, letters string) (turns []*zktest.Turn) {
	var waiting []*zktest.Turn
	for i, letter := range letters {
		k := map[rune]kind{'R': read, 'W': write}[letter]
		turn := as(k, lock.Join(z, fmt.Sprintf("client %d (%s)", i+1, k))).Start()
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
