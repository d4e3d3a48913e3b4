package property

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"zklock/internal/wiretap"
	"zklock/internal/zktest"
)

// A directory has three numbers left. A gets the first of them and holds, and B, C and D
// come one by one. Each leaves once it is inside. In another such directory C, D and E
// come at one moment: while the server makes a znode with the last number, it counts on
// for the next ones, beyond what the count can hold.
var LastNumber = property(
	text("the last number does no harm", "最后一个序号无害"),
	text("two are let in at one time, by the same number or by one below 0, and with the same token",
		"两个客户端凭同一个序号，或凭小于 0 的序号，同时拿到锁，令牌也相同"),
	text("the server counts a directory's znodes with 32 bits: what do they get when the count has come to its end?",
		"服务器用 32 位数给目录的 znode 计数：数到头以后，它们得到什么？"),
	func(s *story) {
		scout := s.subject.Join(s.Zoo, "the scout")
		scout.Acquire().Release()
		if _, numbered := numberOf(scout); !numbered {
			s.void("its znodes have no numbers")
		}
		dirs := s.goesToTheEnd()
		one := s.numbersEnd(dirs[0], (*lastOnes).comeOneByOne)
		for _, dir := range dirs[1:] {
			three := s.numbersEnd(dir, (*lastOnes).comeAtOnce)
			if three.below0() { // as nearly always
				s.holds("one by one, let in: %s; told: %s. Three at one moment, told: %s. They were told %q",
					withNumbers(one.in), withNumbers(one.told), withNumbers(three.told), three.words())
			}
		}
		s.Fatalf("three came at one moment, and got no number below 0, in %d directories: the machine is too busy",
			len(dirs)-1)
	})

// goesToTheEnd takes the story to a server with directories that have three numbers left.
func (s *story) goesToTheEnd() (dirs []string) {
	ctx := s.Ctx // has the property's limit
	s.Zoo, dirs = zktest.NewAtTheEnd(s.T)
	s.Ctx = ctx
	return dirs
}

// lastOnes are those who get the last numbers of a directory.
type lastOnes struct {
	*story
	inside  *zktest.Turn   // nil: nobody
	waiting []*zktest.Turn // who is neither inside nor told
	in      []*zktest.Turn // who was let in, in order
	told    []*zktest.Turn // who was told that it cannot be
}

// numbersEnd tells of a directory from its third-last number on, until nobody is there.
// Then comes one more, and the directory is deleted, as is the only way out.
func (s *story) numbersEnd(dir string, come func(*lastOnes)) *lastOnes {
	l := &lastOnes{story: s}
	s.dir, s.path = dir, s.in(dir)
	a := s.writerAs("A", Seat{}).Start()
	s.failsIf(a.Waits() != zktest.Returned, "nobody holds the lock, and A waits; beside it: %v", s.Names(s.Root))
	a.Acquired()
	l.enters(a)
	l.comes("B")
	come(l)
	l.leave()
	l.comes("F")
	l.leave()
	for _, t := range l.told {
		s.gaveUp(t.Member, t.Err(), t.Err())
	}
	s.deletes(dir)
	s.writerAs("G", Seat{}).Acquire().Release()
	return l
}

// leave lets each one leave who is inside, until nobody is there.
func (l *lastOnes) leave() {
	for l.next(); l.inside != nil; l.next() {
		l.inside.Release()
		l.inside = nil
	}
}

func (l *lastOnes) comeOneByOne() {
	l.comes("C")
	l.comes("D")
}

// comes brings one client, who waits or is told.
func (l *lastOnes) comes(name string) {
	t := l.writerAs(name, Seat{}).Start()
	t.Waits()
	l.waiting = append(l.waiting, t)
	l.look()
}

func (l *lastOnes) comeAtOnce() {
	var creates []*wiretap.Trap
	for _, name := range []string{"C", "D", "E"} {
		m := l.writerAs(name, Seat{})
		create := m.Tap.HoldRequest(wiretap.Create, 1)
		creates = append(creates, create)
		t := m.Start()
		l.Await(
			fmt.Sprintf("%v to be about to make its znode", name),
			func() bool { return comesToAStop(t, create, 0) },
		)
		l.waiting = append(l.waiting, t)
	}
	for _, create := range creates {
		create.Let()
	}
	for _, t := range l.waiting {
		t.Waits()
	}
	l.look()
}

// next finds out whose turn it is, until somebody is inside or nobody waits.
func (l *lastOnes) next() {
	for l.inside == nil && len(l.waiting) > 0 {
		before := len(l.waiting)
		l.look()
		l.failsIf(len(l.waiting) == before, "nobody holds the lock, and these wait for it: %s; the queue: %v",
			withNumbers(l.waiting), l.Names(l.path))
	}
}

// look finds out what became of those who wait, once all that has happened has had its
// effect on each of them.
func (l *lastOnes) look() {
	for _, t := range l.waiting {
		t.StillWaits()
	}
	l.waiting = slices.DeleteFunc(l.waiting, func(t *zktest.Turn) bool {
		switch {
		case !t.Returned():
			return false
		case t.Err() != nil:
			l.told = append(l.told, t)
		default:
			l.enters(t)
		}
		return true
	})
}

// enters is told of one that was let in.
func (l *lastOnes) enters(t *zktest.Turn) {
	if l.inside != nil {
		l.fails("%s was let in beside %s", withNumber(t), withNumber(l.inside))
	}
	if n := len(l.in); n > 0 && t.HasHolds() {
		l.fenced(l.in[n-1], t)
	}
	l.inside, l.in = t, append(l.in, t)
}

// fenced compares the tokens of two that were let in one after the other. A lock that
// hands out none lacks another property, and not this one.
func (l *lastOnes) fenced(before, after *zktest.Turn) {
	last, now := before.Held().Token(), after.Held().Token()
	l.failsIf(now <= last, "%s got the token %d, and %s before it the token %d",
		withNumber(after), now, withNumber(before), last)
}

// below0 tells whether somebody has got such a number.
func (l *lastOnes) below0() bool {
	return slices.ContainsFunc(slices.Concat(l.in, l.told), func(t *zktest.Turn) bool {
		number, _ := numberOf(t.Member)
		return number < 0
	})
}

// words are what the last one was told.
func (l *lastOnes) words() string {
	if len(l.told) == 0 {
		return "nothing"
	}
	return l.told[len(l.told)-1].Err().Error()
}

func withNumbers(turns []*zktest.Turn) string {
	if len(turns) == 0 {
		return "nobody"
	}
	var all []string
	for _, t := range turns {
		all = append(all, withNumber(t))
	}
	return strings.Join(all, ", ")
}

// withNumber is a client's name, and the last number that it has got, if any.
func withNumber(t *zktest.Turn) string {
	number, numbered := numberOf(t.Member)
	if !numbered {
		return t.Name
	}
	return fmt.Sprintf("%s (%d)", t.Name, number)
}

// numberOf is the last number that the server has put behind a name for the member.
func numberOf(m *zktest.Member) (number int, numbered bool) {
	asked := map[int32]string{} // the names, by the requests
	for _, f := range m.Tap.Frames() {
		switch {
		case f.Op != wiretap.Create:
		case f.Kind == wiretap.Request:
			asked[f.Xid] = f.Path
		case f.Err == wiretap.OK && f.Path != asked[f.Xid]:
			number, _ = strconv.Atoi(strings.TrimPrefix(f.Path, asked[f.Xid]))
			numbered = true
		}
	}
	return number, numbered
}
