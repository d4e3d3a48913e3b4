// Package history asks porcupine whether histories are linearizable: who has written and read what, and
// when. Two of them are of three real servers, the others are drawn on docs/consensus.md.
package history

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"zklock/internal/chapter"
	"zklock/internal/wiretap"
	"zklock/internal/zktest"
)

func TestMain(m *testing.M) { zktest.Main(m) }

// A call is a write or a read of one znode, whose data is "old" at first.
type call struct {
	client       int
	isWrite      bool
	value        string // written or read
	begin, ended int64
}

// register is what one znode on one server would do: a read returns what was written last.
var register = porcupine.Model{
	Init: func() any { return "old" },
	Step: func(state, input, _ any) (bool, any) {
		c := input.(call)
		if c.isWrite {
			return true, c.value
		}
		return c.value == state, state
	},
}

// isLinearizable looks for one order of all calls in which each read returns what was written last. A
// call that ended before another one began must be the earlier one.
func isLinearizable(calls []call) bool {
	var history []porcupine.Operation
	for _, c := range calls {
		history = append(history, porcupine.Operation{ClientId: c.client, Input: c, Call: c.begin, Return: c.ended})
	}
	return porcupine.CheckOperations(register, history)
}

// isSequential is isLinearizable without a clock that the clients share: only the order of each
// client's own calls counts. So a client's only call may stand anywhere. At most one client may have
// several calls.
func isSequential(calls []call) bool {
	of, last := map[int]int{}, int64(0)
	for _, c := range calls {
		of[c.client]++
		last = max(last, c.ended)
	}
	var stretched []call
	for _, c := range calls {
		if of[c.client] == 1 {
			c.begin, c.ended = 0, last
		}
		stretched = append(stretched, c)
	}
	return isLinearizable(stretched)
}

const ada, ben = 0, 1

// Ada writes at the leader. Ben reads at a follower, which the leader's messages reach late. All calls are
// timed by one clock, that of this process.
func TestAReadAtAFollowerIsNotLinearizable(t *testing.T) {
	e, leader, followers := zktest.ThreeServers(t)
	z := zktest.NewOn(t, leader.Server)
	atLeader, atFollower := z.Client("Ada"), zktest.NewOn(t, followers[0].Server).Client("Ben")
	path, err := atLeader.Create(z.Root+"/a", []byte("old"), 0, zk.WorldACL(zk.PermAll))
	require.NoError(t, err)
	_, err = atFollower.Sync(path) // the follower has the znode
	require.NoError(t, err)

	begin := time.Now()
	now := func() int64 { return int64(time.Since(begin)) }
	read := func() (string, error) {
		data, _, err := atFollower.Get(path)
		return string(data), err
	}

	release := e.Hold(leader, followers[0])
	t.Cleanup(release)
	write := call{client: ada, isWrite: true, value: "new", begin: now()}
	_, err = atLeader.Set(path, []byte("new"), -1)
	require.NoError(t, err)
	write.ended = now()

	late := call{client: ben, begin: now()}
	late.value, err = read()
	require.NoError(t, err)
	late.ended = now()

	mark := atFollower.Tap.Mark()
	answer := make(chan call, 1)
	go func() {
		c := call{client: ben, begin: now()}
		_, err1 := atFollower.Sync(path)
		value, err2 := read()
		assert.NoError(t, errors.Join(err1, err2))
		c.value, c.ended = value, now()
		answer <- c
	}()
	z.Await("the sync to be sent", func() bool {
		return wiretap.Count(atFollower.Tap.Since(mark)).Requests[wiretap.Sync] == 1
	})
	release()
	synced := zktest.AwaitChan(z, "the read behind the sync", answer)

	says(t, "at a follower", []call{write, late}, "write new, read old", false, true)
	says(t, "at a follower, after a sync", []call{write, synced}, "write new, read new", true, true)
}

// The histories of the task.
func TestTheDrawnHistories(t *testing.T) {
	write := call{ada, true, "new", 0, 10}
	read := func(value string, begin, ended int64) call { return call{ben, false, value, begin, ended} }
	says(t, "history 1", []call{write, read("old", 5, 15)}, "write new, read old", true, true)
	says(t, "history 2", []call{write, read("old", 20, 30)}, "write new, read old", false, true)
	says(t, "history 3", []call{write, read("new", 5, 15), read("old", 20, 30)},
		"write new, read new, read old", false, false)
}

func says(t *testing.T, name string, calls []call, wanted string, linearizable, sequential bool) {
	t.Helper()
	var told []string
	for _, c := range calls {
		what := "read "
		if c.isWrite {
			what = "write "
		}
		told = append(told, what+c.value)
	}
	require.Equal(t, wanted, strings.Join(told, ", "), name)
	require.Equal(t, linearizable, isLinearizable(calls), "%s: linearizable", name)
	require.Equal(t, sequential, isSequential(calls), "%s: sequentially consistent", name)
	chapter.SaysIn(t, "../../../docs/consensus.md", "%s: %s: linearizable %v, sequentially consistent %v",
		name, strings.Join(told, ", "), linearizable, sequential)
}
