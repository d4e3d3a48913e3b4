package docs

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"zklock/internal/check/lockcheck"
	"zklock/internal/check/zktest"
	"zklock/internal/server/wiretap"
	"zklock/internal/server/zkserver"
	"zklock/internal/upkeep/chapter"
	reentrant "zklock/step05_reentrant"
)

// backUp copies what the servers have on disk. restore kills them, and puts that
// back; change, which may be nil, gets each server's folder before the start.
func backUp(t *testing.T, e *zkserver.Ensemble) (restore func(z *zktest.Zoo, change func(data string))) {
	kept := t.TempDir()
	data := func(m *zkserver.Peer) (there, copied string) {
		return filepath.Join(m.Dir(), "data"), filepath.Join(kept, fmt.Sprint(m.ID))
	}
	for _, m := range e.Members {
		there, copied := data(m)
		require.NoError(t, os.CopyFS(copied, os.DirFS(there)))
	}
	return func(z *zktest.Zoo, change func(data string)) {
		z.Observer().Close() // it has seen more than the restored servers, and would ask for ever
		for _, m := range e.Members {
			there, copied := data(m)
			require.NoError(t, m.Kill())
			require.NoError(t, os.RemoveAll(there))
			require.NoError(t, os.CopyFS(there, os.DirFS(copied)))
			if change != nil {
				change(there)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*zktest.Patience)
		defer cancel()
		starting.Lock()
		defer starting.Unlock()
		require.NoError(t, zkserver.StartAgain(ctx, e.Members))
	}
}

// store is one that looks at tokens.
type store struct{ greatest int64 }

func (s *store) takes(token int64) string {
	if token < s.greatest {
		return "turned down"
	}
	s.greatest = token
	return "accepted"
}

// One server is restored from a backup. Nobody has waited for anything.
func restoredServer(t *testing.T, e *zkserver.Ensemble) {
	z := zktest.NewOn(t, e.Server)
	early := step5.Join(z, "who was there at the backup")
	atBackup := early.Acquire()
	restore := backUp(t, e)
	atBackup.Release()
	late := step5.JoinAs(z, "who came after it", lockcheck.Seat{Timeout: time.Minute}) // it must not be told meanwhile
	for range 50 {
		late.Acquire().Release()
	}
	before := late.Acquire()
	store, old := &store{}, before.Held()
	token, _ := before.Token(old)
	require.Equal(t, "accepted", store.takes(token))
	mark := late.Tap.Mark()
	// A server that begins may take a connection and never answer it (seen once in 85
	// restores), and the client waits for it for most of its time-out. So nobody comes early.
	early.Tap.Cut()
	late.Tap.Cut()
	restore(z, nil)
	early.Tap.Restore()
	late.Tap.Restore()

	z = zktest.NewOn(t, e.Server)
	newcomer := step5.JoinAs(z, "a new client", lockcheck.Seat{Path: late.Path})
	for range 15 { // now the server has come as far as the early client had seen
		require.NoError(t, inVain(z.Observer()))
	}
	z.Await("the early client to be back", func() bool { return early.State() == zk.StateHasSession })
	turn := newcomer.Start()
	turn.MustWait("the znode that was there at the backup is there again")
	chapter.SaysIn(
		t,
		"operations.md",
		"restored: a client that was there at the backup is back with %s, and so is the znode that it had deleted: a new client waits behind it",
		sameSession(early.Client),
	)
	early.Close()
	next, _ := turn.Token(turn.Held())
	require.NotErrorIs(
		t,
		context.Cause(old),
		reentrant.ErrLost,
		"the holder was told in time: the page could promise more",
	)
	chapter.SaysIn(
		t,
		"fencing.md",
		"restored: a new client has the lock, beside the holder of before, who has not been told",
	)
	chapter.SaysIn(
		t,
		"fencing.md",
		"a store that looks at tokens: the new holder's write is %s, the old one's is %s",
		store.takes(next),
		store.takes(token),
	)
	chapter.SaysIn(
		t,
		"fencing.md",
		"the numbers in the names: %d before, %d after",
		suffix(t, before.Znode()),
		suffix(t, turn.Znode()),
	)
	z.Await("the late client to try", func() bool {
		return frames(late.Client, mark, wiretap.Request, wiretap.Connect) >= 3
	})
	chapter.SaysIn(
		t,
		"operations.md",
		"a client that has seen more than the restored server comes to it three times: answers: %d",
		frames(late.Client, mark, wiretap.Reply, wiretap.Connect),
	)
}

// Three servers are restored as the page says: when every session of before is
// over, and with an epoch that was never there.
func restoredServers(t *testing.T, e *zkserver.Ensemble) {
	z := zktest.NewOn(t, e.Server)
	restore := backUp(t, e)
	path := z.Root + "/lock"
	old := step5.JoinAs(z, "who came after the backup", lockcheck.Seat{Path: path, Timeout: zktest.MortalTimeout})
	before := old.Acquire()
	for _, m := range e.Members {
		require.NoError(t, m.Kill())
	}
	zktest.AwaitChan(z, "the holder to be told", before.Held().Done())
	restore(z, func(data string) {
		require.NoError(t, os.WriteFile(filepath.Join(data, "version-2", "acceptedEpoch"), []byte("1000"), 0o600))
	})
	z = zktest.NewOn(t, e.Server)
	after := step5.JoinAs(z, "a new client", lockcheck.Seat{Path: path}).Acquire()
	token, _ := after.Token(after.Held())
	chapter.SaysIn(
		t,
		"fencing.md",
		"restored after the last session was over, with 1000 in acceptedEpoch: the next token is %s, its epoch is %d",
		greater(after, before),
		token>>32,
	)
}
