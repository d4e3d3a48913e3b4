package leased

import (
	"log/slog"
	pathpkg "path"
	"regexp"
	"slices"
	"time"
)

// LockState is a lock that this session holds, or for which one of its calls waits.
type LockState struct {
	Path  string
	Holds bool          // false: a call of Lock, RLock, TryLock or TryRLock waits
	For   time.Duration // how long it has been held, or the call has waited

	// Behind is what a call waits for, by a server's last answer. It is nil if the call waits for the servers.
	Behind *LockedError
}

// Locks returns what this session holds, and the calls that wait, the longest first. It sends no request. A hold that
// was lost is not in the list, although its znode stays until Unlock.
func (s *Session) Locks() []LockState {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []LockState
	for user := range s.leases.present.users {
		if user.hold != "" {
			all = append(all, LockState{Path: pathpkg.Dir(user.hold), Holds: true, For: time.Since(user.begun)})
		}
	}
	for t := range s.waiting.tries {
		all = append(all, LockState{Path: t.dir, For: time.Since(t.begun), Behind: t.behind.Load()})
	}
	slices.SortFunc(all, func(a, b LockState) int { return int(b.For - a.For) })
	return all
}

// foreignPlace is the form of a name in the queue of any lock. Names of leased's queues have it, and so have those of
// Curator's LeaderLatch and semaphores.
var foreignPlace = regexp.MustCompile(`^(?:_c_)?[0-9a-f-]{16,}-.*[0-9]{10,}$`)

// warnOfOthers warns, once for each directory, if another kind of lock uses it: an RWMutex and a Mutex on one path do
// not exclude one another.
func (q *queue) warnOfOthers(names []string) {
	at := slices.IndexFunc(names, func(name string) bool {
		_, _, ours := q.number(name)
		return !ours && foreignPlace.MatchString(name)
	})
	if at < 0 {
		return
	}
	if _, warned := q.s.warnedOf.LoadOrStore(q.dir, true); warned {
		return
	}
	znode := q.dir + "/" + names[at]
	q.s.run(func() {
		label, stat, err := q.s.Conn().Get(znode)
		if err == nil && stat.EphemeralOwner != 0 {
			q.s.log.say(slog.LevelWarn, "leased: another kind of lock uses the same path, and the two do not exclude one another",
				"znode", znode, "label", string(label))
		}
	})
}
