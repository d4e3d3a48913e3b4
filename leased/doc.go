// Package leased implements locks on ZooKeeper, for programs on several machines: a Mutex, an RWMutex
// for readers and writers, and a Cohort, which is a Mutex for the many goroutines of one process. An
// Election is a Mutex for a task that only one of several processes, the leader, may do at a time.
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
// Do runs a function under the lock. The function works with the context that it gets, and gives the store the token of
// the hold:
//
//	err = lock.Do(ctx, func(ctx context.Context, hold *leased.Hold) error {
//		return store.Write(ctx, hold.Token(), data)
//	})
//
// Lock and TryLock return the Hold itself. Then work with hold.Context(ctx), and defer hold.Unlock().
//
// The Queue method of each lock lists the clients that hold the lock, and those that wait for it. Session.Stats has
// the numbers of this process. Package leasedtest has the same locks in memory, for unit tests without a server.
//
// # What is promised
//
//   - One client at a time holds a Mutex or a Cohort; many readers or one writer hold an RWMutex.
//     Clients are served in order, except for up to 16 hand-overs inside a Cohort.
//   - A holder is notified in time when its lock is lost: the hold's contexts end before another client
//     acquires the lock. The cause is a LostError, which says why.
//   - While the session lives, no client that the hold excludes acquires the lock before Unlock. This is also true
//     after a loss:
//     "lost" means that the holder can no longer rely on the lock, not that another client has it.
//   - A lost request or answer, a broken connection, or a new leader of the servers ends no wait, and leaves no
//     znode behind. It ends no hold if the interruption is short enough: see "Which timeout" in README.md.
//   - A call that gives up returns at once, and leaves no znode behind, unless the servers refuse the delete.
//
// # What is assumed
//
//   - The timeout of the session is five of the servers' ticks or more, 10 s at the usual tick.
//   - The process runs. A process that is paused cannot be notified, and the clock of a suspended
//     machine stands still. So the store has to check the token: see Hold.Token.
//   - No other program deletes the znodes. A holder learns of such a loss only at Unlock.
//   - The servers form one ensemble, keep what they have written, and ask one another in time which
//     sessions are alive. README.md explains this, and what happens otherwise.
//
// # What to know
//
// The context that is given to Lock bounds the wait, and nothing else. To limit the wait, give it a
// deadline. Work under the lock with hold.Context(ctx): it ends with ctx, and when the lock is lost or
// released.
//
// Lock with such a context, or one made from it, is re-entry: it returns the same hold, and one
// more Unlock is due. So pass the context to all code that works under the lock.
//
// Unlock retries until the lock is released. It does not wait longer than the session's timeout, and returns at once if
// there is no connection. Then the error is ErrNoAnswer, and the release continues in the background.
package leased
