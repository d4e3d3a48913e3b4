package property

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"zklock/internal/lang"
	"zklock/internal/zktest"
	predecessorwatch "zklock/step04_predecessor_watch"
)

// On a busy machine the timeout of a long hold is longer than the check's patience. A hold in silence is right, so the
// check must not end the story.
func TestALongHoldMayBeLongerThanThePatience(t *testing.T) {
	t.Parallel()
	server, err := zktest.Shared()
	require.NoError(t, err)
	const timeout = 3 * time.Second
	hold := New(lang.Text{EN: "a long hold"}, lang.Text{}, lang.Text{}, func(s *Story) {
		l := longHold{Story: s, timeout: timeout}
		passed := l.goBy(2, func() bool { return false })
		s.Holds("%.1f timeouts have passed", passed)
	})
	r := checkFor(timeout/2, server, Over("step 4", predecessorwatch.New), hold)
	require.Equal(t, Yes, r.Verdict, r.Evidence)
}

// Two locks that are right for a second or two. Only LongHold finds their mistakes. A third one is
// among the tests of leased.

type step4 = predecessorwatch.Lock

// neverServed is step 4's lock, with a lease that is taken when the wait begins. A waiter whose
// turn comes later waits forever. A starter of step 6 had this mistake.
type neverServed struct{ *step4 }

func (l neverServed) Lock(ctx context.Context) error {
	begin := time.Now()
	if err := l.step4.Lock(ctx); err != nil || time.Since(begin) < zktest.MortalTimeout {
		return err
	}
	<-ctx.Done() // the mistake
	return errors.Join(ctx.Err(), l.Unlock())
}

func TestAWaiterThatIsNeverServedAfterALongWait(t *testing.T) {
	wrong := Over("never served", func(conn *zk.Conn, path string) neverServed {
		return neverServed{predecessorwatch.New(conn, path)}
	})
	Holds(t, wrong, OneHolder, SilentWait)
	Lacks(t, wrong, LongHold)
}

// spins is step 4's lock. After a while, its waiter polls all the time whether its session lives.
type spins struct {
	*step4
	conn *zk.Conn
}

func (l spins) Lock(ctx context.Context) error {
	answer := make(chan error, 1)
	go func() { answer <- l.step4.Lock(ctx) }()
	for enough := time.Now().Add(zktest.MortalTimeout); ; {
		select {
		case err := <-answer:
			return err
		case <-time.After(time.Until(enough)):
			_, _, _ = l.conn.Exists("/zklock-nobody") // the mistake
		}
	}
}

func TestAWaiterThatSpinsAfterAWhile(t *testing.T) {
	wrong := Over("spins after a while", func(conn *zk.Conn, path string) spins {
		return spins{predecessorwatch.New(conn, path), conn}
	})
	Holds(t, wrong, OneHolder)
	Lacks(t, wrong, LongHold)
}
