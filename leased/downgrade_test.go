package leased

import (
	"context"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"zklock/internal/wiretap"
	"zklock/internal/zktest"
)

// downgrading returns a client that holds the lock as a writer.
func downgrading(z *zktest.Zoo) (*RWMutex, *Hold, *zktest.Client) {
	s, client := labelled(z, "A")
	lock := NewRWMutex(s, z.Root+"/lock")
	writer, err := lock.Lock(z.Ctx)
	if err != nil {
		panic(err)
	}
	return lock, writer, client
}

// behind lets clients queue up behind A, R as a reader and W as a writer.
func behind(z *zktest.Zoo, letters string) (turns []*zktest.Turn) {
	for _, letter := range letters {
		turn := as(letter, rwmutexes.Join(z, string(letter))).Start()
		turn.MustWait("A writes")
		turns = append(turns, turn)
	}
	return turns
}

// A is a writer, and readers and writers wait behind it. One transaction makes A a reader. The readers
// directly behind it acquire the lock. No writer does, and no reader behind a writer.
func TestAWriterBecomesAReaderAndNobodyGetsInBetween(t *testing.T) {
	t.Parallel()
	for letters, letIn := range map[string]int{"RWRW": 1, "WRW": 0, "RRR": 3} {
		t.Run(letters, func(t *testing.T) {
			t.Parallel()
			z := zktest.New(t)
			lock, writer, client := downgrading(z)
			turns := behind(z, letters)
			mark := client.Tap.Mark()
			reader, err := lock.Downgrade(z.Ctx, writer)
			require.NoError(t, err)
			for i, turn := range turns {
				if i < letIn {
					turn.Acquired()
				} else {
					turn.MustWait("A reads")
				}
			}
			requests := wiretap.Count(client.Tap.Since(mark)).Requests
			require.Equal(t, 1, requests[wiretap.Multi], "transactions")
			require.Zero(t, requests[wiretap.Create]+requests[wiretap.GetChildren], "other requests: %v", requests)
			require.NoError(t, reader.Context(z.Ctx).Err(), "the reader's hold")
			require.ErrorIs(t, context.Cause(writer.Context(z.Ctx)), ErrNotHeld, "the writer's hold")
			require.Equal(t, writer.Token(), reader.Token())
			require.Equal(t, 1, lock.q.s.Stats().Holds)
			queue, err := lock.Queue(z.Ctx)
			require.NoError(t, err)
			require.True(t, queue[0].Reads && queue[0].Holds && queue[0].Label == "A", "first in the queue: %v", queue[0])

			require.NoError(t, reader.Unlock())
			for _, turn := range turns {
				turn.Release()
			}
		})
	}
}

// The writer's contexts end before a reader acquires the lock, even when the answer to the transaction has
// not reached A yet.
func TestTheWritersContextEndsBeforeAReaderIsLetIn(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	lock, writer, client := downgrading(z)
	reading := behind(z, "R")[0]
	held := writer.Context(z.Ctx)
	answer := client.Tap.HoldReply(wiretap.Multi, 1)
	result := make(chan *Hold, 1)
	go func() {
		reader, _ := lock.Downgrade(z.Ctx, writer)
		result <- reader
	}()
	zktest.AwaitChan(z, "the transaction's answer", answer.Sprung())
	reading.Acquired()
	require.ErrorIs(t, context.Cause(held), ErrNotHeld)
	answer.Let()
	require.NoError(t, zktest.AwaitChan(z, "Downgrade", result).Unlock())
}

// The transaction or its answer is lost. In the end A has one znode, a reader's.
func TestADowngradeWhoseAnswerIsLost(t *testing.T) {
	t.Parallel()
	for _, lose := range []func(*wiretap.Tap) *wiretap.Trap{
		func(tap *wiretap.Tap) *wiretap.Trap { return tap.LoseRequest(wiretap.Multi, 1) },
		func(tap *wiretap.Tap) *wiretap.Trap { return tap.LoseReply(wiretap.Multi, 1) },
	} {
		z := zktest.New(t)
		lock, writer, client := downgrading(z)
		lost := lose(client.Tap)
		reader, err := lock.Downgrade(z.Ctx, writer)
		require.NoError(t, err)
		zktest.AwaitChan(z, "the loss", lost.Sprung())
		require.NoError(t, context.Cause(reader.Context(z.Ctx)))
		queue, err := lock.Queue(z.Ctx)
		require.NoError(t, err)
		require.Len(t, queue, 1)
		require.True(t, queue[0].Reads)
		require.NoError(t, reader.Unlock())
		require.Empty(t, z.Names(z.Root+"/lock"))
	}
}

// The context ends before the answer arrives. Downgrade returns at once, and the lock is released.
func TestADowngradeThatIsGivenUpReleasesTheLock(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	lock, writer, client := downgrading(z)
	answer := client.Tap.HoldReply(wiretap.Multi, 1)
	ctx, cancel := context.WithCancel(z.Ctx)
	errs := make(chan error, 1)
	go func() {
		_, err := lock.Downgrade(ctx, writer)
		errs <- err
	}()
	zktest.AwaitChan(z, "the transaction's answer", answer.Sprung())
	cancel()
	err := zktest.AwaitChan(z, "Downgrade", errs)
	require.ErrorIs(t, err, context.Canceled)
	require.NotErrorIs(t, err, ErrNotDowngraded)
	answer.Let()
	z.Await("the lock to be released", func() bool { return len(z.Names(z.Root+"/lock")) == 0 })
	z.Await("no hold to be left", func() bool { return lock.q.s.Stats().Holds == 0 })
}

// The server refuses the create, so the lock is released.
func TestADowngradeThatIsRefusedReleasesTheLock(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	lock, writer, _ := downgrading(z)
	permit(t, z, z.Root+"/lock", zk.PermAll&^zk.PermCreate)
	_, err := lock.Downgrade(z.Ctx, writer)
	require.ErrorIs(t, err, zk.ErrNoAuth)
	require.ErrorContains(t, err, "leased: downgrade "+z.Root+"/lock: the server has refused it, and the lock is released")
	require.Empty(t, z.Names(z.Root+"/lock"))
	require.ErrorIs(t, writer.Unlock(), ErrNotHeld, "nothing is due")
}

// If the hold is not a writer's with one Unlock due, Downgrade changes nothing.
func TestWhatCannotBeDowngradedStaysAsItIs(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	lock, writer, client := downgrading(z)
	ended, cancel := context.WithCancel(z.Ctx)
	cancel()
	var none context.Context
	again := mustLock(t, lock, writer.Context(z.Ctx))
	other := mustLock(t, NewRWMutex(lock.q.s, z.Root+"/other"), z.Ctx)
	mutex := mustLock(t, NewMutex(lock.q.s, z.Root+"/lock"), z.Ctx)
	mark := client.Tap.Mark()
	refused := func(ctx context.Context, h *Hold, why string) {
		t.Helper()
		_, err := lock.Downgrade(ctx, h)
		require.ErrorIs(t, err, ErrNotDowngraded)
		require.ErrorContains(t, err, why)
	}
	refused(z.Ctx, writer, "2 calls of Unlock are due, want 1")
	const notOurs = "want a hold that Lock of this RWMutex has returned"
	refused(z.Ctx, other, notOurs)
	refused(z.Ctx, mutex, notOurs)
	refused(z.Ctx, nil, notOurs)
	refused(none, writer, "the context is nil")
	require.NoError(t, again.Unlock())
	refused(ended, writer, "the context had ended before the call")
	require.Zero(t, wiretap.Count(client.Tap.Since(mark)).Requests[wiretap.Multi])
	require.NoError(t, writer.Context(z.Ctx).Err())
	require.NoError(t, writer.Unlock())
	refused(z.Ctx, writer, "the lock was released")
	reader := mustLock(t, reading{lock}, z.Ctx)
	refused(z.Ctx, reader, notOurs)
	require.NoError(t, reader.Unlock())
}
