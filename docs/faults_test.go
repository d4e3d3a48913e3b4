package docs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"zklock/internal/check/lockcheck"
	"zklock/internal/check/zktest"
	"zklock/internal/server/wiretap"
	"zklock/internal/server/zkserver"
	"zklock/internal/upkeep/chapter"
	reentrant "zklock/step05_reentrant"
)

// What rarer faults of real servers do to a holder. Each part has servers of its
// own. Tests that measure time are to run without them, so this one runs alone.
func TestRarerFaults(t *testing.T) {
	for name, part := range map[string]func(*testing.T){
		"an observer, and a leader that is stopped": observerAndStoppedLeader,
		"read-only servers, and a deposed leader":   readOnlyAndDeposed,
		"servers are removed":                       serversAreRemoved,
		"a restore, and disks that stall":           restoredThenStalled,
		"a restore, directories and a quota":        restoredThenFull,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			part(t)
		})
	}
}

// starting lets one part start its servers at a time: two cores have no time for all.
var starting sync.Mutex

// servers starts servers that end with the test.
func servers(t *testing.T, n int, config zkserver.Config) *zkserver.Ensemble {
	t.Helper()
	starting.Lock()
	defer starting.Unlock()
	e, err := zkserver.StartEnsembleWith(t.Context(), n, config)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, e.Stop()) })
	return e
}

// A scene has two clients of step 5. A holds the lock, over a line to a server of
// its own choice; B waits behind A's znode, at a follower.
type scene struct {
	*trio
	e          *zkserver.Ensemble
	a, b       *zktest.Member
	held, next *zktest.Turn
}

// play brings A and B to the servers. A goes to the one that choose names, and with
// strays to any other when it loses that one. On a machine that has no time for
// them, A may have lost the lock by then: then they come again.
func play(
	t *testing.T,
	e *zkserver.Ensemble,
	timeout time.Duration,
	strays bool,
	choose func(*trio) *zkserver.Peer,
) *scene {
	t.Helper()
	for range 5 {
		s := begin(t, e, timeout, strays, choose)
		if s.held.Held().Err() == nil {
			return s
		}
		_ = s.a.Unlock(s.held.Held())
		s.next.Acquired()
		s.ends()
	}
	t.Fatalf("five times A has lost the lock before anything was done to it")
	return nil
}

func begin(
	t *testing.T,
	e *zkserver.Ensemble,
	timeout time.Duration,
	strays bool,
	choose func(*trio) *zkserver.Peer,
) *scene {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), zktest.Patience)
	defer cancel()
	leader, followers := (*zkserver.Peer)(nil), []*zkserver.Peer(nil)
	for len(followers) < 2 {
		require.NoError(t, e.Serving(ctx))
		var err error
		leader, followers, err = e.Roles(ctx)
		require.NoError(t, err)
	}
	s := &scene{trio: &trio{t, zktest.NewOn(t, followers[1].Server), e, leader, followers}, e: e}
	at, through := choose(s.trio), func(dial zk.Dialer) zk.Dialer { return dial }
	if !strays {
		through = func(dial zk.Dialer) zk.Dialer {
			return func(network, _ string, limit time.Duration) (net.Conn, error) {
				return dial(network, at.Addr, limit)
			}
		}
	}
	s.a = step5.JoinAs(
		zktest.NewOn(t, e.Server),
		"A",
		lockcheck.Seat{Path: s.Root + "/lock", Timeout: timeout, Through: through},
	)
	if strays {
		s.goesTo(s.a, at)
	}
	s.b = step5.Join(s.Zoo, "B")
	s.held = s.a.Acquire()
	s.next = s.b.Start()
	s.Await("B to wait, or to be let in", func() bool { return s.next.Waits() != zktest.Polling })
	return s
}

func (s *trio) itsLeader() *zkserver.Peer   { return s.leader }
func (s *trio) itsFollower() *zkserver.Peer { return s.followers[0] }

// told tells whether A knows that the lock is lost.
func (s *scene) told() bool { return errors.Is(context.Cause(s.held.Held()), reentrant.ErrLost) }

// lost says in words what becomes of A and B when A's session is ended.
func (s *scene) lost() string {
	s.Helper()
	s.next.Acquired()
	require.True(s, s.told(), "B has the lock, and A has not been told")
	return fmt.Sprintf("the holder is told before the next one is let in; the next token is %s", greater(s.next, s.held))
}

// kept says in words that A has been told nothing, and that all goes on well.
func (s *scene) kept() string {
	s.Helper()
	require.NoError(s, s.held.Held().Err())
	require.Equal(s, zktest.Silently, s.next.StillWaits())
	s.held.Release()
	s.next.Acquired()
	s.next.Release()
	return "the holder keeps the lock"
}

// waits says in words whether somebody was let in before the servers went on.
func waits(letIn bool) string {
	return map[bool]string{true: "is let in at once", false: "waits until the servers go on"}[letIn]
}

// ends closes both, for the next scene.
func (s *scene) ends() {
	s.a.Close()
	s.b.Close()
}

// inVain is a write in vain, by the client's own connection.
func inVain(c *zktest.Client) error {
	err := c.Delete("/nobody/has/made/this", -1)
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	return err
}

// reports notes when the leader has asked a follower who is alive.
type reports struct {
	sync.Mutex
	asked map[int][]time.Time // by the follower
}

func overhear(e *zkserver.Ensemble, leader *zkserver.Peer, followers []*zkserver.Peer) *reports {
	w := &reports{asked: map[int][]time.Time{}}
	for _, f := range followers {
		e.Overhear(leader, f, func(b []byte) {
			w.Lock()
			defer w.Unlock()
			// Leader.PING is type, zxid, no data, no authentication.
			for ; len(b) >= 20; b = b[1:] {
				if bytes.HasPrefix(b, []byte{0, 0, 0, 5}) && bytes.Count(b[12:20], []byte{0xff}) == 8 {
					w.asked[f.ID] = append(w.asked[f.ID], time.Now())
				}
			}
		})
	}
	return w
}

// gaps are the times between two questions, in ticks.
func (w *reports) gaps(tick time.Duration) (all []float64) {
	w.Lock()
	defer w.Unlock()
	for _, times := range w.asked {
		for i := 1; i < len(times); i++ {
			all = append(all, times[i].Sub(times[i-1]).Seconds()/tick.Seconds())
		}
	}
	slices.Sort(all)
	return all
}

func observerAndStoppedLeader(t *testing.T) {
	const tick = 100 * time.Millisecond
	e := servers(t, 4, zkserver.Config{Observers: 1, Lines: []string{"syncLimit=100"}})
	s := play(t, e, zktest.MortalTimeout, false, func(*trio) *zkserver.Peer { return e.Members[3] })
	listening := overhear(e, s.leader, s.followers)
	e.Members[3].CutOff()
	chapter.SaysIn(t, "operations.md", "the holder's server is an observer, and is cut off: %s", s.lost())
	e.Members[3].Rejoin()
	s.Await("the leader to ask", func() bool { return len(listening.gaps(tick)) >= 60 })
	gaps := listening.gaps(tick)
	long, _ := slices.BinarySearch(gaps, 0.5) // those before are not longer
	t.Logf(
		"%d gaps between two questions of the leader: %d longer than half a tick, the longest %.3f of a tick",
		len(gaps),
		len(gaps)-long,
		gaps[len(gaps)-1],
	)
	require.Greater(t, 4*(len(gaps)-long), len(gaps), "gaps longer than half a tick, times four")
	chapter.SaysIn(
		t,
		"lease.md",
		"the leader asks each follower every %v ticks; more than a quarter of the gaps are longer than half a tick",
		chapter.About(gaps[len(gaps)/2], 1.5),
	)
	s.ends()

	// A stop that is shorter than the lease: what was asked meanwhile is answered.
	s = play(t, e, 0, false, (*trio).itsFollower)
	require.NoError(t, s.leader.Pause())
	mark, answer := s.a.Tap.Mark(), make(chan error, 1)
	go func() { answer <- inVain(s.a.Client) }()
	s.Await("A to ask", func() bool { return frames(s.a.Client, mark, wiretap.Request, wiretap.Delete) > 0 })
	require.NoError(t, s.leader.Resume())
	require.NoError(t, zktest.AwaitChan(s.Zoo, "an answer to A", answer))
	chapter.SaysIn(t, "operations.md", "the leader is stopped for a moment, and goes on: %s", s.kept())
	s.ends()

	// A longer one. Nobody elects another leader, for they wait ten seconds.
	for _, server := range []func(*trio) *zkserver.Peer{(*trio).itsFollower, (*trio).itsLeader} {
		s = play(t, e, zktest.MortalTimeout, false, server)
		where := map[bool]string{true: "the leader", false: "a follower"}[server(s.trio) == s.leader]
		require.NoError(t, s.leader.Pause())
		zktest.AwaitChan(s.Zoo, "A to be told", s.held.Held().Done())
		require.True(t, s.told())
		letIn := s.next.Returned()
		require.NoError(t, s.leader.Resume())
		require.ErrorIs(t, s.a.Unlock(s.held.Held()), reentrant.ErrLost)
		s.next.Acquired()
		chapter.SaysIn(
			t,
			"operations.md",
			"the leader is stopped until the lease of a holder at %s is over: the holder is told; the next one %s, then gets the lock, with a token that is %s",
			where,
			waits(letIn),
			greater(s.next, s.held),
		)
		s.ends()
	}
	leaderThatDoesNotAsk(t, e)
}

func readOnlyAndDeposed(t *testing.T) {
	e := servers(t, 3, zkserver.Config{Java: []string{"-Dreadonlymode.enabled=true"}})
	s := play(t, e, zktest.MortalTimeout, false, (*trio).itsFollower)
	s.itsFollower().CutOff()
	lost := s.lost()
	s.Await("the server to be read-only", func() bool {
		text, err := s.itsFollower().Word("isro")
		return err == nil && text == "ro"
	})
	mark := s.a.Tap.Mark()
	s.Await("A to try", func() bool { return frames(s.a.Client, mark, wiretap.Request, wiretap.Connect) >= 3 })
	chapter.SaysIn(t, "operations.md", "the holder's server is cut off, and becomes read-only: %s", lost)
	chapter.SaysIn(
		t,
		"operations.md",
		"the holder's client comes to the read-only server three times: answers: %d",
		frames(s.a.Client, mark, wiretap.Reply, wiretap.Connect),
	)
	s.itsFollower().Rejoin()
	s.ends()

	// The others elect another leader while this one stands still.
	s = play(t, e, zktest.MortalTimeout, false, (*trio).itsLeader)
	require.NoError(t, s.leader.Pause())
	lost = s.lost()
	require.NoError(t, s.leader.Resume())
	require.NoError(t, e.Serving(s.Ctx))
	require.NoError(t, s.next.Held().Err())
	s.next.Release()
	require.ErrorIs(t, s.a.Unlock(s.held.Held()), reentrant.ErrLost)
	chapter.SaysIn(
		t,
		"operations.md",
		"the holder's server is the leader, and is stopped until the others have another one: %s",
		lost,
	)
	s.ends()
}

// slowDisk is a library that java is started with: while a file is there, what is
// written does not reach the disk.
const slowDisk = `#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>
static int later(const char *name, int fd) {
	while (access(getenv("ZKLOCK_STALL"), F_OK) == 0) usleep(5000);
	return ((int (*)(int))dlsym(RTLD_NEXT, name))(fd);
}
int fsync(int fd) { return later("fsync", fd); }
int fdatasync(int fd) { return later("fdatasync", fd); }
`

func restoredThenStalled(t *testing.T) {
	source := filepath.Join(t.TempDir(), "slow.c")
	require.NoError(t, os.WriteFile(source, []byte(slowDisk), 0o600))
	said, err := exec.Command("gcc", "-shared", "-fPIC", "-o", source+".so", source, "-ldl").CombinedOutput()
	stalls := zkserver.Config{Env: []string{"LD_PRELOAD=" + source + ".so", "ZKLOCK_STALL={dir}/stall"}}
	without := errors.Is(err, exec.ErrNotFound) && os.Getenv("CI") == ""
	if without {
		stalls.Env = nil
	} else {
		require.NoError(t, err, "gcc: %s", said)
	}
	e := servers(t, 3, stalls)
	restoredServers(t, e)
	if without {
		t.Skip("left out: a disk that stalls, for there is no gcc to build what makes it stall")
	}
	stall := func(server *zkserver.Peer) (end func()) {
		file := filepath.Join(server.Dir(), "stall")
		require.NoError(t, os.WriteFile(file, nil, 0o600))
		return sync.OnceFunc(func() { assert.NoError(t, os.Remove(file)) })
	}

	// The two followers are a majority.
	s := play(t, e, 0, false, (*trio).itsLeader)
	end := stall(s.leader)
	answered, follows := map[*zktest.Client]int{}, s.Observer()
	for range 5 {
		for _, c := range []*zktest.Client{s.a.Client, follows} {
			if inVain(c) == nil {
				answered[c]++
			}
		}
	}
	chapter.SaysIn(
		t,
		"operations.md",
		"the leader's disk stalls: of 5 writes at the leader %d are answered, and %d of 5 at a follower; %s",
		answered[s.a.Client],
		answered[follows],
		s.kept(),
	)
	end()
	s.ends()

	// The leader drops a follower that does not keep up.
	s = play(t, e, 0, true, (*trio).itsFollower)
	end = stall(s.itsFollower())
	s.Await("the follower to be dropped", func() bool {
		_ = inVain(s.Observer())
		text, err := s.itsFollower().Word("srvr")
		return err == nil && strings.Contains(text, "not currently serving")
	})
	s.Await("A to be elsewhere", func() bool {
		return inVain(s.a.Client) == nil && s.a.Server() != s.itsFollower().Addr
	})
	chapter.SaysIn(
		t,
		"operations.md",
		"a follower's disk stalls: the leader drops it, and the holder's client goes to another server with %s; %s",
		sameSession(s.a.Client),
		s.kept(),
	)
	end()
	s.ends()

	s = play(t, e, zktest.MortalTimeout, false, (*trio).itsLeader)
	ends := []func(){stall(s.leader), stall(s.followers[0])}
	zktest.AwaitChan(s.Zoo, "A to be told", s.held.Held().Done())
	require.True(t, s.told())
	letIn := s.next.Returned()
	for _, end := range ends {
		end()
	}
	require.ErrorIs(t, s.a.Unlock(s.held.Held()), reentrant.ErrLost)
	s.next.Acquired()
	chapter.SaysIn(
		t,
		"operations.md",
		"two of three disks stall: the holder is told; the next one %s, then gets the lock, with a token that is %s",
		waits(letIn),
		greater(s.next, s.held),
	)
}

func serversAreRemoved(t *testing.T) {
	e := servers(
		t,
		3,
		zkserver.Config{
			Direct: true,
			Lines:  []string{"reconfigEnabled=true", "standaloneEnabled=false", "skipACL=yes"},
		},
	)
	s := play(t, e, 0, true, (*trio).itsFollower)
	gone := s.itsFollower()
	_, err := s.Observer().IncrementalReconfig(nil, []string{fmt.Sprint(gone.ID)}, -1)
	require.NoError(t, err)
	answered := 0
	for range 3 {
		if inVain(s.a.Client) == nil {
			answered++
		}
	}
	require.Equal(t, gone.Addr, s.a.Server())
	chapter.SaysIn(
		t,
		"operations.md",
		"the holder's server, a follower, is removed from the ensemble: of 3 writes there %d are answered; %s",
		answered,
		s.kept(),
	)
	s.Await("it to be a member again", func() bool {
		_, err := s.Observer().IncrementalReconfig([]string{gone.Line}, nil, -1)
		return err == nil
	})
	s.Await("all to serve", func() bool {
		return inVain(s.Observer()) == nil && s.b.State() == zk.StateHasSession && inVain(s.a.Client) == nil
	})
	s.ends()

	s = play(t, e, 0, true, (*trio).itsLeader)
	mark := s.a.Tap.Mark()
	_, err = s.Observer().IncrementalReconfig(nil, []string{fmt.Sprint(s.leader.ID)}, -1)
	if !errors.Is(err, zk.ErrConnectionClosed) { // there is an election
		require.NoError(t, err)
	}
	s.Await("another leader", func() bool {
		next, _, err := e.Roles(s.Ctx)
		return err == nil && next != s.leader
	})
	s.Await("A to be back", func() bool {
		return frames(s.a.Client, mark, wiretap.Reply, wiretap.Connect) > 0 && inVain(s.a.Client) == nil
	})
	s.Await("B to be back", func() bool { return inVain(s.Observer()) == nil && s.b.State() == zk.StateHasSession })
	chapter.SaysIn(
		t,
		"operations.md",
		"the holder's server, the leader, is removed from the ensemble: the client is back with %s; %s",
		sameSession(s.a.Client),
		s.kept(),
	)
}
