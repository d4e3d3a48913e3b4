package exercise

import (
	"errors"
	"strings"

	"github.com/go-zookeeper/zk"

	"zklock/internal/lang"
	"zklock/internal/property"
	"zklock/internal/wiretap"
	"zklock/internal/zktest"
)

// OverMultiLock makes a Subject of several locks taken as one. Its path is a list of paths, with
// commas between them. For a single path it is the single lock.
func OverMultiLock[M, L zktest.Locker](
	newMultiLock func(conn *zk.Conn, paths ...string) M,
	newLock func(*zk.Conn, string) L,
) property.Subject {
	return property.Over("New", func(conn *zk.Conn, path string) zktest.Locker {
		if paths := strings.Split(path, ","); len(paths) > 1 {
			return newMultiLock(conn, paths...)
		}
		return newLock(conn, path)
	})
}

// owner brings a client with a lock of all the paths, such as /x and /y, and creates their
// directories.
func (s story) owner(name string, paths ...string) *zktest.Member {
	var all []string
	for _, path := range paths {
		path = s.Root + path
		_, err := s.Observer().Create(path, nil, 0, zk.WorldACL(zk.PermAll))
		if err != nil && !errors.Is(err, zk.ErrNodeExists) {
			s.Fatalf("create %s: %v", path, err)
		}
		all = append(all, path)
	}
	return s.JoinAs(name, property.Seat{Path: strings.Join(all, ",")})
}

// isFree fails the story if a client is in the queue of one of the locks.
func (s story) isFree(why string, paths ...string) {
	for _, path := range paths {
		names := s.Names(s.Root + path)
		s.FailsIf(len(names) > 0, "%s, and %s still has %v", why, path, names)
	}
}

// multiLockProperties lists the properties of several locks taken as one.
var multiLockProperties = []*property.Property{
	asked(lang.Of("it holds all of its locks", "要的锁全都拿到"),
		lang.Of("which znodes exist when Lock returns?", "Lock 返回时，有哪些 znode？"),
		func(s story) {
			a := s.enters(s.owner("A", "/x", "/y"), "nobody holds a lock")
			x, y := s.owner("B", "/x").Start(), s.owner("C", "/y").Start()
			for _, t := range []*zktest.Turn{x, y} {
				t.Waits()
				s.stillStands(t, "A holds /x and /y")
			}
			s.leaves(a)
			s.succeeds(x)
			s.succeeds(y)
			s.Holds("B waited for /x and C for /y, and one Unlock released both")
		}),
	asked(lang.Of("all or none", "要么全有，要么全无"),
		lang.Of("the second lock is held by somebody: what about the first?", "第二把锁被别人持有：第一把怎么办？"),
		func(s story) {
			a, b := s.owner("A", "/x", "/y", "/z"), s.enters(s.owner("B", "/y"), "nobody holds a lock")
			trying := a.Start()
			trying.Waits()
			trying.GiveUp()
			s.FailsIf(!s.Soon(trying.Returned), "B holds /y, A's context has ended, and its Lock does not return")
			err := trying.Err()
			s.FailsIf(err == nil, "B holds /y, and A's Lock of /x, /y and /z returned nil")
			s.isFree("B holds /y, A has given up", "/x", "/z")
			names := b.Queue()
			s.FailsIf(len(names) != 1, "B holds /y, A has given up, and /y has %v", names)
			s.leaves(b)
			s.succeeds(a.Start())
			s.Holds("A did not get /y, and released the rest; when /y was free it got all")
		}),
	asked(lang.Of("two clients with the same locks do not wait for each other", "要同样几把锁的两个客户端不会互相等待"),
		lang.Of("in which order does each of them acquire the locks?", "它们各按什么顺序加锁？"),
		func(s story) {
			a, b := s.owner("A", "/x", "/y"), s.owner("B", "/y", "/x")
			slow := a.Tap.HoldRequest(wiretap.Create, 2) // A has one lock, and asks for the other
			first := a.Start()
			s.Await("A to ask for its second lock", func() bool { return slow.IsSprung() || first.Returned() })
			s.FailsIf(first.Returned(), "A's Lock has returned without asking for the second of two locks")
			second := s.stands(b, "A has one of two locks")
			slow.Let()
			s.FailsIf(
				!s.Soon(first.Returned),
				"A, which wants /x and /y, waits for B; B, which wants /y and /x, waits for A: /x has %v, /y has %v",
				s.Names(s.Root+"/x"),
				s.Names(s.Root+"/y"),
			)
			s.succeeds(first)
			s.leaves(first)
			s.succeeds(second)
			s.Holds("A asked for /x and /y, B for /y and /x; A was served, then B")
		}),
	asked(lang.Of("a lock named twice is one", "写了两遍的锁只算一把"),
		lang.Of("the same path is given twice: who holds it when you ask for it the second time?",
			"同一个路径写了两遍：第二次加锁时，谁持有它？"),
		func(s story) {
			a := s.owner("A", "/x", "/y", "/x").Start()
			s.FailsIf(
				!s.Soon(a.Returned),
				"A, which wants /x, /y and /x, waits for itself: /x has %v",
				s.Names(s.Root+"/x"),
			)
			s.succeeds(a)
			s.leaves(a)
			s.isFree("A has released all", "/x", "/y")
			s.Holds("A named /x twice, held it once, and released it")
		}),
	asked(lang.Of("if one lock is lost, the others are still released", "丢了一把锁，不妨碍释放其余的"),
		lang.Of("one Unlock has failed: do you continue?", "一次 Unlock 失败了：继续吗？"),
		func(s story) {
			a := s.enters(s.owner("A", "/x", "/y", "/z"), "nobody holds a lock")
			for _, name := range s.Names(s.Root + "/y") {
				_ = s.Observer().Delete(s.Root+"/y/"+name, -1)
			}
			err := a.Unlock()
			s.FailsIf(err == nil, "somebody had deleted A's znode in /y, and A's Unlock returned nil")
			s.isFree("A has released all", "/x", "/y", "/z")
			s.Holds("A's znode in /y was deleted; Unlock returned an error, and released /x and /z")
		}),
}
