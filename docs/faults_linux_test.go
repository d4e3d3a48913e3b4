package docs

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"zklock/internal/check/zktest"
	"zklock/internal/server/wiretap"
	"zklock/internal/server/zkserver"
	"zklock/internal/upkeep/chapter"
)

// The thread with which the leader asks its followers who is alive stands still,
// and all others go on. So A's writes are answered, and nobody reports A. Shortly
// before the leader ends A's session, A's server is cut off. On a busy machine that
// may come too late, or A's last write: it is tried again.
func leaderThatDoesNotAsk(t *testing.T, e *zkserver.Ensemble) {
	first := "A is told"
	for try := 0; first == "A is told" && try < 5; try++ {
		s := play(t, e, zktest.MortalTimeout, false, (*trio).itsFollower)
		goOn, err := s.leader.StopThread("QuorumPeer[myid")
		require.NoError(t, err)
		t.Cleanup(goOn)
		stopped, mark := time.Now(), s.a.Tap.Mark()
		s.Await("A's session to have little time left", func() bool {
			return time.Since(stopped) > zktest.MortalTimeout*8/10
		})
		answered := frames(s.a.Client, mark, wiretap.Reply, wiretap.Delete)
		s.itsFollower().CutOff()
		s.next.Acquired()
		if !s.told() && answered >= 3 {
			first = "B is let in"
		}
		zktest.AwaitChan(s.Zoo, "A to be told", s.held.Held().Done())
		require.Equal(t, "greater", greater(s.next, s.held), "B's token")
		goOn()
		s.itsFollower().Rejoin()
		s.ends()
	}
	chapter.SaysIn(
		t,
		"lease.md",
		"the leader's thread that asks for reports stands still, three writes are answered, and A's server is cut off: first %s; B's token is greater",
		first,
	)
}
