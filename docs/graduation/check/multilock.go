package check

import (
	"context"
	"errors"
	"time"

	"github.com/go-zookeeper/zk"

	"zklock/internal/wiretap"
	"zklock/internal/zktest"
	predecessorwatch "zklock/step04_predecessor_watch"
)

// MultiLockProperties are those of several locks taken as one.
func MultiLockProperties[L zktest.Locker](newLock func(conn *zk.Conn, paths ...string) L) []Property {
	type owner struct {
		*zktest.Client
		zktest.Locker
	}
	// owns brings a client with a multi-lock of /x, /y, …, whose directories are there.
	owns := func(s *story, name string, paths ...string) owner {
		c := s.Client(name)
		var all []string
		for _, path := range paths {
			_, err := s.Observer().Create(s.Root+path, nil, 0, zk.WorldACL(zk.PermAll))
			if err != nil && !errors.Is(err, zk.ErrNodeExists) {
				s.Fatalf("create %s: %v", path, err)
			}
			all = append(all, s.Root+path)
		}
		return owner{c, newLock(c.Conn, all...)}
	}
	// one brings a client with a single lock of step 4.
	one := func(s *story, name, path string) owner {
		c := s.Client(name)
		return owner{c, predecessorwatch.New(c.Conn, s.Root+path)}
	}
	locks := func(s *story, o owner) { s.start(o.Client, o.Lock).succeeds() }
	unlocks := func(s *story, o owner) {
		if err := o.Unlock(); err != nil {
			s.fails("%s's Unlock answered: %v", o.Name, err)
		}
	}
	isFree := func(s *story, why string, paths ...string) {
		for _, path := range paths {
			if names := s.Names(s.Root + path); len(names) > 0 {
				s.fails("%s, and in %s there is %v", why, path, names)
			}
		}
	}
	return []Property{
		{"it holds all its locks", "which znodes are there when Lock returns?", func(s *story) {
			a := owns(s, "A", "/x", "/y")
			locks(s, a)
			x, y := one(s, "B", "/x"), one(s, "C", "/y")
			waits := []*call{s.start(x.Client, x.Lock), s.start(y.Client, y.Lock)}
			for _, w := range waits {
				w.mustWait("A holds /x and /y")
			}
			unlocks(s, a)
			for _, w := range waits {
				w.succeeds()
			}
			s.holds("B waited for /x and C for /y, and both were let in by one Unlock")
		}},
		{"all or none", "the second lock is held by somebody: what about the first?", func(s *story) {
			b := one(s, "B", "/y")
			a := owns(s, "A", "/x", "/y", "/z")
			locks(s, b)
			trying := s.start(a.Client, func(ctx context.Context) error {
				ctx, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
				defer cancel()
				return a.Lock(ctx)
			})
			if err := trying.Err(); err == nil {
				s.fails("B holds /y, and A's Lock of /x, /y and /z said that it has all")
			}
			isFree(s, "B holds /y, A has given up", "/x", "/z")
			if names := s.Names(s.Root + "/y"); len(names) != 1 {
				s.fails("B holds /y, A has given up, and in /y there is %v", names)
			}
			unlocks(s, b)
			locks(s, a)
			s.holds("A did not get /y, and let go of the rest; when /y was free it got all")
		}},
		{"two with the same locks do not wait for each other", "in which order does each of them take the locks?", func(s *story) {
			a, b := owns(s, "A", "/x", "/y"), owns(s, "B", "/y", "/x")
			slow := a.Tap.HoldRequest(wiretap.Create, 2) // A has one lock, and is on its way to the other
			first := s.start(a.Client, a.Lock)
			s.Await("A to ask for its second lock", func() bool {
				select {
				case <-slow.Sprung():
					return true
				default:
					return first.Returned()
				}
			})
			if first.Returned() {
				s.fails("A's Lock has come back without asking for the second of two locks")
			}
			second := s.start(b.Client, b.Lock)
			second.mustWait("A has one of two locks")
			slow.Let()
			if how := first.Waits(); how != zktest.Returned {
				s.fails("A, for /x and /y, waits for B; B, for /y and /x, waits for A: /x has %v, /y has %v", s.Names(s.Root+"/x"), s.Names(s.Root+"/y"))
			}
			first.succeeds()
			unlocks(s, a)
			second.succeeds()
			s.holds("A asked for /x and /y, B for /y and /x; A was served, then B")
		}},
		{"a lock named twice is one", "the same path comes twice: who holds it when it is asked for the second time?", func(s *story) {
			a := owns(s, "A", "/x", "/y", "/x")
			locking := s.start(a.Client, a.Lock)
			if locking.Waits() != zktest.Returned {
				s.fails("A, for /x, /y and /x, waits for itself: /x has %v", s.Names(s.Root+"/x"))
			}
			locking.succeeds()
			unlocks(s, a)
			isFree(s, "A has released all", "/x", "/y")
			s.holds("A named /x twice, held it once, and released it")
		}},
		{"one lost lock does not keep the others", "one Unlock has failed: do you go on?", func(s *story) {
			a := owns(s, "A", "/x", "/y", "/z")
			locks(s, a)
			for _, name := range s.Names(s.Root + "/y") {
				_ = s.Observer().Delete(s.Root+"/y/"+name, -1)
			}
			if err := a.Unlock(); err == nil {
				s.fails("somebody had deleted A's znode in /y, and A's Unlock said that all was well")
			}
			isFree(s, "A has released all", "/x", "/y", "/z")
			s.holds("A's znode in /y was gone; Unlock said so, and released /x and /z")
		}},
	}
}
