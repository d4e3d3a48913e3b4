// Package leased has locks over ZooKeeper, for programs on several machines: a Mutex, an RWMutex
// for readers and writers, and a Cohort, a Mutex for the many goroutines of one process. An Election
// is a Mutex for a task that a leader does.
//
// A process opens one Session, and makes all its locks from it:
//
//	session, err := leased.Open(ctx, []string{"zk1:2181", "zk2:2181", "zk3:2181"}, 12*time.Second)
//	if err != nil {
//		return err
//	}
//	defer session.Close()
//	lock := leased.NewMutex(session, "/locks/orders")
//
// A client that locks gets a Hold, works with a context of it, and unlocks:
//
//	hold, err := lock.Lock(ctx)
//	if err != nil {
//		return err
//	}
//	defer hold.Unlock()
//	return store.Write(hold.Context(ctx), hold.Token(), data)
//
// RWMutex.Downgrade makes a reader of a writer. The method Queue of each lock tells who holds it and who
// waits, Session.Stats what this process does. Package leasedtest has the same in memory, for unit tests
// without a server.
//
// # What is promised
//
//   - One at a time holds a Mutex or a Cohort; many readers or one writer hold an RWMutex. First
//     come, first served, but for up to 16 hand-overs inside a Cohort.
//   - A holder is notified in time when its lock is lost: the hold's contexts end before another client
//     acquires the lock. The cause is a LostError, which says why.
//   - While the session lives, no other client acquires the lock before Unlock, even when the lock was lost.
//   - A lost request or answer, a connection that breaks for a moment, another leader of the
//     servers: none of these ends a hold or a wait, or leaves a znode behind.
//   - A call that gives up returns at once, and leaves no znode behind.
//
// # What is assumed
//
//   - The time-out of the session is five of the servers' ticks or more, 10 s at the usual tick.
//   - The process runs. A process that is stopped cannot be notified, and a suspended machine does not count
//     the time. Therefore the store has to check the token: see Hold.Token.
//   - No other client deletes the znodes. A holder learns of such a loss only at Unlock.
//   - The servers are those of one ensemble, keep what they have written, and ask one another in
//     time which sessions are alive. README.md says what that means, and what happens otherwise.
//
// # What to know
//
// The context that is given to Lock bounds the wait, and nothing else. For a deadline of the wait, give
// it one. Work under the lock with hold.Context(ctx): it ends with ctx, and when the lock is lost or
// released.
//
// Lock with such a context, or one made from it, is re-entry: it returns the same hold, and one
// more Unlock is due. So pass it on to whatever works under the lock.
//
// Unlock goes on until the lock is released. If no server answers for the session's time-out, it
// returns ErrNoAnswer, and the release goes on in the background.
package leased
