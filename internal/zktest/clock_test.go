package zktest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const shortPatience = time.Second

func TestPatienceCountsFromTheLastMovement(t *testing.T) {
	t.Parallel()
	z := New(t)
	a := z.Client("A")
	z.Bound(t.Context(), shortPatience)
	for begin, i := time.Now(), 0; time.Since(begin) < 3*shortPatience; i++ {
		_, _, err := a.Exists(fmt.Sprintf("/%d", i))
		require.NoError(t, err)
		time.Sleep(time.Millisecond)
	}
	require.NoError(t, z.Ctx.Err(), "three patiences after the begin, and A asks on")
	<-z.Ctx.Done()
	assert.EqualError(t, context.Cause(z.Ctx), "there was no progress for 1s", "A has asked no more")
}

// A client that polls never stops sending requests.
func TestThePollsOfAClientAreNoMovement(t *testing.T) {
	t.Parallel()
	z := New(t)
	a := z.Client("A")
	z.Bound(t.Context(), shortPatience)
	for z.Ctx.Err() == nil {
		_, _, err := a.Exists("/zookeeper")
		require.NoError(t, err)
		time.Sleep(time.Millisecond)
	}
	assert.EqualError(t, context.Cause(z.Ctx), "there was no progress for 1s")
}

// A sends requests for half a second, and then its call returns.
func TestSoonTellsNotYetFromNoMore(t *testing.T) {
	t.Parallel()
	z := New(t)
	a := z.Client("A")
	const few = 10 // answers of the server: a fifth of a second, on a quiet machine
	asked := z.Go(a, func(context.Context) error {
		for begin, i := time.Now(), 0; time.Since(begin) < time.Second/2; i++ {
			if _, _, err := a.Exists(fmt.Sprintf("/%d", i)); err != nil {
				return err
			}
			time.Sleep(10 * time.Millisecond)
		}
		return nil
	})
	assert.True(t, z.SoonAfter(few, asked.Returned), "not yet: A asks on")
	require.NoError(t, asked.Err())
	assert.False(t, z.SoonAfter(few, func() bool { return false }), "no more: nothing moves")
}

// A's session ends, and the test has not asked A's tap for that.
func TestAnAccidentIsNoticed(t *testing.T) {
	t.Parallel()
	z := New(t)
	a, b := z.Client("A"), z.Client("B")
	assert.Empty(t, a.Accident(), "nothing has befallen A")
	if conn, err := takeOver(z.Servers()[0], a.Tap.Session(), SessionTimeout); err == nil {
		conn.Close() // otherwise A has already taken it back
	}
	z.Await("A's accident", func() bool { return a.Accident() != "" })
	b.Tap.HangUp()
	assert.Empty(t, b.Accident(), "B's line broke because it was asked for")
}
