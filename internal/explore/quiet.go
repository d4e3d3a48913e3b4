package explore

// A client is at rest when none of its goroutines will do anything by itself. A lock may have any
// number of them, and the client library has its own, so they cannot be asked one by one. Go's
// runtime knows their states, and shows them only in the text of its stack traces. testing/synctest
// waits for the same condition. But synctest does not count a goroutine that waits for the network
// as waiting, and these servers are real. It would be simpler to wait until nothing has been sent
// for a while. But on a busy machine that is wrong: if a client were only slow, the explorer would
// report that it waits forever.

import (
	"bytes"
	"runtime"
	"slices"
)

// waits are the states of a goroutine that waits. In any other state it runs, is about to run, or
// sleeps, so it is going to do something by itself.
var waits = []string{
	"IO wait",
	"chan receive",
	"chan send",
	"select",
	"select (no cases)",
	"semacquire",
	"sync.Cond.Wait",
	"sync.Mutex.Lock",
	"sync.RWMutex.Lock",
	"sync.RWMutex.RLock",
	"sync.WaitGroup.Wait",
}

// stateOf returns the state in the first line of a goroutine's stack trace, such as "goroutine 12
// [select, 2 minutes]:".
func stateOf(trace []byte) string {
	_, after, _ := bytes.Cut(trace, []byte(" ["))
	state, _, _ := bytes.Cut(after, []byte("]"))
	state, _, _ = bytes.Cut(state, []byte(","))
	return string(state)
}

// parent marks the stacks of goroutines that belong to no client: they wait for the process that
// started this one.
var parent = []byte("net/rpc.")

// stacks is where othersWait keeps what it reads. A process has one player, which calls it.
var stacks = make([]byte, 64<<10)

// othersWait reports whether each goroutine except the caller's waits for another one, or for the
// network. It stops the world for a moment, so no goroutine is missed on its way from one state to
// the next. If nothing is on its way on the network, nothing will happen by itself. The one
// exception is a timer, as in time.After: othersWait does not see that it will fire.
func othersWait() bool {
	n := runtime.Stack(stacks, true)
	for n == len(stacks) {
		stacks = make([]byte, 2*len(stacks))
		n = runtime.Stack(stacks, true)
	}
	goroutines := bytes.Split(stacks[:n], []byte("\n\n"))
	for _, goroutine := range goroutines[1:] { // the first is the caller's
		if bytes.Contains(goroutine, parent) {
			continue
		}
		if !slices.Contains(waits, stateOf(goroutine)) {
			return false
		}
	}
	return true
}
