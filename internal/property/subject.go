package property

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"

	"zklock/internal/check/actor"
	"zklock/internal/check/explore"
	"zklock/internal/check/zktest"
)

// A Subject is a kind of lock under test.
type Subject struct {
	Name string

	// Open makes what a lock is made over.
	Open func(servers []string, timeout time.Duration, dial zk.Dialer) (zktest.Session, error)

	// Ways to take the lock at path: to write, and, if not nil, to read. A nil
	// session stands for what the lock takes for one.
	Ways func(s zktest.Session, path string) (write zktest.Way, read *zktest.Way)

	// What the properties of bad input have to know.
	Znode         bool  // the path is that of the lock's one znode, and not of a directory
	NotHeld, Lost error // what Unlock answers

	reads func(n int) bool // whether the n-th client of a story, from 0, is a reader; nil: none
}

// Over makes a Subject of a lock that is made from a connection and a path, as
// in steps 1 to 4.
func Over[L zktest.Locker](name string, newLock func(*zk.Conn, string) L) Subject {
	return Subject{
		Name: name,
		Open: connect,
		Lost: zk.ErrConnectionClosed,
		Ways: func(s zktest.Session, path string) (zktest.Way, *zktest.Way) {
			var conn *zk.Conn
			if s != nil {
				conn = s.Conn()
			}
			l := newLock(conn, path)
			return zktest.Way{
				Lock:   func(ctx context.Context) (context.Context, error) { return ctx, l.Lock(ctx) },
				Unlock: func(context.Context) error { return l.Unlock() },
			}, nil
		},
	}
}

// Acts makes a process that was started to be a client of this subject one: make play and
// make explore start the tests of the published mistakes so.
func (s Subject) Acts() {
	lock := actor.Lock{Open: s.Open, Ways: s.Ways}
	lock.Role(s.Name)
	explore.Role(s.Name, lock)
}

// alone stands for a session where there is only a connection.
type alone struct{ conn *zk.Conn }

func (a alone) Conn() *zk.Conn { return a.conn }
func (a alone) Close()         { a.conn.Close() }

func connect(servers []string, timeout time.Duration, dial zk.Dialer) (zktest.Session, error) {
	conn, err := zktest.Dial(servers, timeout, dial)
	return alone{conn}, err
}

// Holder is what steps 5 and 6 offer: the context that Lock returns is the
// hold.
type Holder interface {
	Lock(context.Context) (context.Context, error)
	Unlock(context.Context) error
}

// What some of them offer besides.
type (
	tries interface {
		TryLock(context.Context, time.Duration) (context.Context, error)
	}
	shares interface {
		RLock(context.Context) (context.Context, error)
		RUnlock(context.Context) error
	}
	triesToRead interface {
		TryRLock(context.Context, time.Duration) (context.Context, error)
	}
)

// OverSession makes a Subject of a lock that is made from a session of its own
// kind and a path.
func OverSession[S zktest.Session, L Holder](
	name string,
	open func(servers []string, timeout time.Duration, dial zk.Dialer) (S, error),
	newLock func(S, string) L,
	token func(context.Context) (int64, bool),
) Subject {
	return Subject{
		Name: name,
		Open: func(servers []string, timeout time.Duration, dial zk.Dialer) (zktest.Session, error) {
			s, err := open(servers, timeout, dial)
			if err != nil {
				return nil, err
			}
			return s, nil
		},
		Ways: func(s zktest.Session, path string) (zktest.Way, *zktest.Way) {
			session, _ := s.(S) // S's own nil, if s is nil
			l := newLock(session, path)
			return toWrite(l, token), toRead(l, token)
		},
	}
}

// toWrite is how to take a lock that only one can hold.
func toWrite(l Holder, token func(context.Context) (int64, bool)) zktest.Way {
	way := zktest.Way{Lock: l.Lock, Unlock: l.Unlock, Token: token}
	if l, ok := l.(tries); ok {
		way.TryLock = l.TryLock
	}
	return way
}

// toRead is how to take a lock that readers can share, or nil if it is none.
func toRead(l Holder, token func(context.Context) (int64, bool)) *zktest.Way {
	shared, ok := l.(shares)
	if !ok {
		return nil
	}
	way := zktest.Way{Lock: shared.RLock, Unlock: shared.RUnlock, Token: token}
	if l, ok := l.(triesToRead); ok {
		way.TryLock = l.TryRLock
	}
	return &way
}

// Trying is the subject, with TryLock in place of Lock.
func Trying(subject Subject, wait time.Duration) Subject {
	ways := subject.Ways
	subject.Name = fmt.Sprintf("%s, TryLock(%v)", subject.Name, wait)
	subject.Ways = func(s zktest.Session, path string) (zktest.Way, *zktest.Way) {
		write, read := ways(s, path)
		for _, way := range []*zktest.Way{&write, read} {
			if way != nil {
				try := way.TryLock
				way.Lock = func(ctx context.Context) (context.Context, error) { return try(ctx, wait) }
			}
		}
		return write, read
	}
	return subject
}

// Reading is the subject, whose clients read and write in turn: the first of a
// story, the third and so on are readers, or all the others.
func Reading(subject Subject, first bool) Subject {
	if first {
		subject.Name += ", readers and writers"
	} else {
		subject.Name += ", writers and readers"
	}
	subject.reads = func(n int) bool {
		isEven := n%2 == 0
		return isEven == first
	}
	return subject
}

// Readers is the subject, whose clients only read.
func Readers(subject Subject) Subject {
	subject.Name += ", readers"
	subject.reads = func(int) bool { return true }
	return subject
}

// A Seat says how a client comes to a lock. In place of zero values stand a
// session of zktest.SessionTimeout, the lock at <the test's root>/lock, and the
// client's tap.
type Seat struct {
	Timeout time.Duration
	Path    string
	Through func(tap zk.Dialer) zk.Dialer
}

// Join brings a client to the lock.
func (s Subject) Join(z *zktest.Zoo, name string) *zktest.Member { return s.JoinAs(z, name, Seat{}) }

// JoinMortal brings a client whose session expires soon after a crash.
func (s Subject) JoinMortal(z *zktest.Zoo, name string) *zktest.Member {
	return s.JoinAs(z, name, Seat{Timeout: zktest.MortalTimeout})
}

// JoinAs brings a client that comes to the lock in a way of its own.
func (s Subject) JoinAs(z *zktest.Zoo, name string, seat Seat) *zktest.Member {
	var session zktest.Session
	c := z.ConnectWith(name, func(dial zk.Dialer) (*zk.Conn, func(), error) {
		if seat.Through != nil {
			dial = seat.Through(dial)
		}
		var err error
		if session, err = s.Open(z.Servers(), cmp.Or(seat.Timeout, zktest.SessionTimeout), dial); err != nil {
			return nil, nil, err
		}
		return session.Conn(), session.Close, nil
	})
	return s.at(z, c, session, cmp.Or(seat.Path, z.Root+"/lock"))
}

// At gives a member another lock, of this kind, over the session that it has.
func (s Subject) At(z *zktest.Zoo, m *zktest.Member, path string) *zktest.Member {
	return s.at(z, m.Client, m.Session, path)
}

func (s Subject) at(z *zktest.Zoo, c *zktest.Client, session zktest.Session, path string) *zktest.Member {
	write, read := s.Ways(session, path)
	return zktest.NewMember(z, c, session, path, write, read)
}

// Line brings a holder and n waiters to the lock: see zktest.Zoo.Line.
func (s Subject) Line(z *zktest.Zoo, n int) []*zktest.Turn {
	return z.Line(n, func(name string) *zktest.Member { return s.Join(z, name) })
}
