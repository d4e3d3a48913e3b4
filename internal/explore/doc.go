// Package explore plays every interleaving of the requests of a few clients of a lock, with a
// fault at every place where one can happen, and judges each. The server is a real one, and
// the lock is the lock itself. The code calls an interleaving an order.
//
// How one is played: each request of a client waits at a gate on its connection. When all
// clients wait, the explorer chooses what comes next: it lets one request pass, or lets a
// client call Unlock, or makes a fault. Then it waits until all clients wait again, and
// chooses once more. So an interleaving is a list of choices, and the same list gives the
// same run.
//
// Read the files one after the other: settings.go (what is tried), client.go (a client, and its
// gate), quiet.go (how the explorer knows that all clients wait), choice.go (what can come next),
// player.go (one interleaving), judge.go (what is wrong with it), tree.go (all of them), part.go
// (the processes that play them), tell.go (one as a story), recording.go (one as it passed on
// the wire, to be drawn), mine.go (what is asked of a learner's lock).
package explore
