package leased

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"zklock/internal/property"
	"zklock/internal/wiretap"
	"zklock/internal/zkserver"
	"zklock/internal/zktest"
)

// transactions returns how many transactions the servers of the ensemble have agreed to since their last
// election: the lower half of the last zxid.
func transactions(t *testing.T, leader *zkserver.Peer) int {
	t.Helper()
	said, err := leader.Word("srvr")
	require.NoError(t, err)
	require.Contains(t, said, "Mode: leader", "it leads no more")
	_, said, _ = strings.Cut(said, "Zxid: 0x")
	said, _, _ = strings.Cut(said, "\n")
	zxid, err := strconv.ParseUint(said, 16, 64)
	require.NoError(t, err)
	return int(uint32(zxid))
}

// logged returns how many bytes the server has in its transaction log. Before the server writes to a file, it
// lengthens the file with zeros.
func logged(t *testing.T, server *zkserver.Peer) (size int) {
	t.Helper()
	conf, err := server.Word("conf")
	require.NoError(t, err)
	_, dir, _ := strings.Cut(conf, "dataLogDir=")
	dir, _, _ = strings.Cut(dir, "\n")
	logs, err := filepath.Glob(filepath.Join(dir, "log.*"))
	require.NoError(t, err)
	require.NotEmpty(t, logs, dir)
	for _, log := range logs {
		text, err := os.ReadFile(log)
		require.NoError(t, err)
		size += len(bytes.TrimRight(text, "\x00"))
	}
	return size
}

// costs.md says what a session costs the servers: the create and the delete of each hold; while it holds
// a lock, one write in each fifth of its timeout, as long as answers arrive soon; and one write after a wait
// that was longer than that fifth. A session that waits, or holds nothing, makes none. Each write is a transaction, and there are no others, so the servers' counts show it.
func TestOnlyHoldersWriteOnceInEachFifthOfTheTimeOut(t *testing.T) {
	t.Parallel()
	_, leader, _ := zktest.ThreeServers(t)
	require.NoError(t, inThreeTries(steadyTimeout, func(timeout time.Duration) (wrong error) {
		return onlyHoldersWrite(t, leader, timeout)
	}))
}

// onlyHoldersWrite lets some clients hold a lock, wait, and do nothing. It returns what was wrong: a hold was lost, or
// a client made too many or too few writes, or the servers counted another number of transactions.
func onlyHoldersWrite(t *testing.T, leader *zkserver.Peer, timeout time.Duration) (wrong error) {
	t.Helper()
	z := zktest.NewOn(t, leader.Server)
	seat := func(path string) property.Seat { return property.Seat{Timeout: timeout, Path: z.Root + "/" + path} }
	var holders, waiters, idle []*zktest.Member
	for i := range ofAKind {
		path := fmt.Sprintf("leased-%d", i)
		holders = append(holders, byMutex.joinAs(z, "a holder", seat(path)))
		waiters = append(waiters, byMutex.joinAs(z, "a waiter", seat(path)))
		idle = append(idle, byMutex.joinAs(z, "an idle client", seat(path)))
	}
	defer func() {
		for _, m := range slices.Concat(holders, waiters, idle) { // they must not write during the next try
			m.Close()
		}
	}()
	before, begun := transactions(t, leader), time.Now()
	var turns, waiting []*zktest.Turn
	for _, m := range holders {
		turns = append(turns, m.Acquire())
	}
	for _, m := range waiters {
		turn := m.Start()
		turn.Queued()
		waiting = append(waiting, turn)
	}
	z.Await("a timeout to pass", func() bool { return time.Since(begun) > timeout })
	for _, turn := range turns {
		if lost := context.Cause(turn.Context()); lost != nil {
			return lost
		}
	}
	for i, turn := range turns {
		if err := turn.Unlock(); err != nil {
			return err
		}
		if err := waiting[i].Unlock(); err != nil { // it holds the lock only for a moment
			return err
		}
	}
	fifths := int(time.Since(begun) / (timeout / 5)) // five, and more on a busy machine
	counted := transactions(t, leader) - before

	const withDirectory = 3        // creates of the first hold: one that finds no directory, the directory, and the znode
	const unlockAndThreeFifths = 4 // deletes of a hold that lasts for nearly all of a timeout
	const unlockAndTwoMore = 3     // deletes besides the fifths': where an answer is late, one write follows another
	made := 0
	for _, of := range []kindOfClient{
		{"hold", holders, withDirectory, unlockAndThreeFifths, unlockAndTwoMore + fifths},
		{"wait", waiters, 1, 1, 2},
		{"do nothing", idle, 0, 0, 0},
	} {
		writes, err := of.writes(t)
		if err != nil {
			return fmt.Errorf("%w, in %d fifths of the timeout", err, fifths)
		}
		made += writes
	}
	if made != counted { // a session of another test may have expired meanwhile, which is a transaction as well
		return fmt.Errorf("all clients have made %d writes, and the servers have counted %d transactions", made, counted)
	}
	return nil
}

// ofAKind is how many clients of each kind onlyHoldersWrite has.
const ofAKind = 10

// A kindOfClient has clients that do the same, and says how many writes each of them makes.
type kindOfClient struct {
	what          string
	members       []*zktest.Member
	creates       int
	fewestDeletes int
	mostDeletes   int
}

// writes returns how many writes these clients have made, or an error if that is too many or too few.
func (k kindOfClient) writes(t *testing.T) (made int, wrong error) {
	asked := map[wiretap.Op]int{}
	for _, m := range k.members {
		for op, n := range m.Requests(0) {
			asked[op] += n
		}
	}
	creates, deletes := asked[wiretap.Create], asked[wiretap.Delete]
	t.Logf("» %d sessions that %s: %d creates, %d deletes", ofAKind, k.what, creates, deletes)
	if want := ofAKind * k.creates; creates != want {
		return 0, fmt.Errorf("%d sessions that %s: %d creates, and not %d", ofAKind, k.what, creates, want)
	}
	if fewest := ofAKind * k.fewestDeletes; deletes < fewest {
		return 0, fmt.Errorf("%d sessions that %s: %d deletes, fewer than %d", ofAKind, k.what, deletes, fewest)
	}
	if most := ofAKind * k.mostDeletes; deletes > most {
		return 0, fmt.Errorf("%d sessions that %s: %d deletes, more than %d", ofAKind, k.what, deletes, most)
	}
	return creates + deletes, nil
}

// This measures the table in costs.md, "Writes during a hold". Each write that changes nothing is a transaction.
// This many sessions each hold a lock for two of their timeouts, and the servers count.
func TestTheTableOfWrites(t *testing.T) {
	const variable = "ZKLOCK_COSTS"
	if os.Getenv(variable) == "" {
		t.Skip(variable + "=1 measures for ten minutes what sessions that hold cost three servers")
	}
	e, err := zkserver.StartEnsemble(t.Context(), 3, "tickTime=2000", "maxSessionTimeout=40000")
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, e.Stop()) })
	leader, followers := zktest.Roles(t, e)
	measure := func(sessions int, timeout time.Duration) {
		held := holdOneEach(t, e, sessions, timeout)
		before, sizeBefore, begun := transactions(t, leader), logged(t, followers[0]), time.Now()
		time.Sleep(2 * timeout) // this is a measurement
		writes, size, took := transactions(t, leader)-before, logged(t, followers[0])-sizeBefore, time.Since(begun)
		for _, hold := range held {
			require.NoError(t, hold.Context(t.Context()).Err(), "a lock was lost: the servers are too slow for so many")
			hold.q.s.Close()
		}
		fifths := int(took/(timeout/5)) + 1
		require.LessOrEqual(t, writes, sessions*fifths)
		const numbers = 1 << 32
		perSecond := float64(writes) / took.Seconds()
		t.Logf("» %d sessions hold, timeout %v: %.2f transactions a second, %.0f bytes a second in each server's log, "+
			"the numbers last %.0f days",
			sessions, timeout, perSecond, float64(size)/took.Seconds(), numbers/perSecond/(24*60*60))
	}
	for _, sessions := range []int{10, 100, 1000} {
		for _, timeout := range []time.Duration{10 * time.Second, 20 * time.Second, 40 * time.Second} {
			measure(sessions, timeout)
		}
	}
}

// holdOneEach opens sessions, spread over the servers. Each of them holds a lock of its own.
func holdOneEach(t *testing.T, e *zkserver.Ensemble, sessions int, timeout time.Duration) []*Hold {
	t.Helper()
	held := make([]*Hold, sessions)
	errs := make([]error, sessions)
	const atATime = 20
	for from := 0; from < sessions; from += atATime {
		var all sync.WaitGroup
		for i := from; i < min(from+atATime, sessions); i++ {
			all.Go(func() {
				s, err := Open(t.Context(), e.Servers(), timeout)
				if err == nil {
					t.Cleanup(s.Close)
					held[i], err = NewMutex(s, fmt.Sprintf("/locks/%d", i)).Lock(t.Context())
				}
				errs[i] = err
			})
		}
		all.Wait()
	}
	for _, err := range errs {
		require.NoError(t, err)
	}
	return held
}
