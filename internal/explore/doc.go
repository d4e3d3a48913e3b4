// Package explore plays every interleaving of the requests of a few clients of a lock, with a fault
// at each point where one can happen, and checks each interleaving. The server is a real ZooKeeper,
// and the lock is its real code, not a model. Some names in the code, such as Orders, call an
// interleaving an order.
//
// The package plays an interleaving as follows. Each request of a client waits at a gate on the
// client's connection. When all clients wait, the explorer chooses what happens next: it lets one
// request pass, makes a client call Unlock, or causes a fault. Then it waits until all clients wait
// again, and makes the next choice. So an interleaving is a list of choices, and the same list
// gives the same run.
//
// Read the files in this order:
//
//   - settings.go: what is explored
//   - client.go: a client and its gate
//   - quiet.go: how the explorer knows that all clients wait
//   - choice.go: what can happen next
//   - player.go: one interleaving
//   - judge.go: what is wrong with it
//   - tree.go: all interleavings
//   - part.go: the processes that play them
//   - tell.go: an interleaving as a story
//   - point.go: what is true before each choice, for a page on which one plays
//   - mine.go: what is explored of a learner's lock
package explore
