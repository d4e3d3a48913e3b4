// Package explore plays every order in which the requests of a few clients of a lock can
// reach the server, and every place where a fault can happen, and judges each. The server
// is a real one, and the lock is the lock itself.
//
// How an order is played: each request of a client waits at a gate on its line. When all
// clients wait, the explorer chooses what comes next: it lets one request go, or lets a
// client call Unlock, or makes a fault. Then it waits until all clients wait again, and
// chooses once more. So an order is a list of choices, and the same list gives the same
// run.
//
// Read in this order: settings.go (what is tried), client.go (a client, and its gate),
// quiet.go (how it is known that all clients wait), choice.go (what can come next),
// player.go (one order), judge.go (what is wrong with it), tree.go (all orders), part.go
// (the processes that play them), tell.go (an order as a story), recording.go (an order as it
// passed on the wire, to be drawn), mine.go (what is asked of a learner's lock).
package explore
