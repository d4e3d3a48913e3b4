package property

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"zklock/internal/process"
	"zklock/internal/zktest"
)

// A Subject is a kind of lock under test.
type Subject struct {
	Name string

	// Open makes the session that a lock is made from.
	Open func(servers []string, timeout time.Duration, dial zk.Dialer) (zktest.Session, error)

	// Ways returns the ways to take the lock at path: as a writer, and, if not nil, as a reader. If
	// the session is nil, the lock is made from a nil session of its own type.
	Ways func(s zktest.Session, path string) (write zktest.Way, read *zktest.Way)

	Znode   bool  // the path is that of the lock's one znode, and not of a directory
	NotHeld error // what an extra Unlock returns

	elsewhere func(z *zktest.Zoo, path string) (token int64) // a turn in another process; nil if there is none

	reads func(n int) bool // whether the n-th client of a story, from 0, is a reader; nil if none is
}

// Over makes a Subject of a lock that is made from a connection and a path, as
// in steps 1 to 4.
func Over[L zktest.Locker](name string, newLock func(*zk.Conn, string) L) Subject {
	return Subject{
		Name: name,
		Open: Connect,
		Ways: func(s zktest.Session, path string) (zktest.Way, *zktest.Way) {
			var conn *zk.Conn
			if s != nil {
				conn = s.Conn()
			}
			l := newLock(conn, path)
			lock := func(ctx context.Context) (zktest.Hold, error) {
				if err := l.Lock(ctx); err != nil {
					return nil, err
				}
				return zktest.HoldOf(l.Unlock), nil
			}
			return zktest.Way{Lock: lock, Unlock: l.Unlock}, nil
		},
	}
}

// alone is the session of a lock that is made from a connection.
type alone struct{ conn *zk.Conn }

func (a alone) Conn() *zk.Conn { return a.conn }
func (a alone) Close()         { a.conn.Close() }

// Connect is the Open of a lock that is made from a connection.
func Connect(servers []string, timeout time.Duration, dial zk.Dialer) (zktest.Session, error) {
	conn, err := zktest.Dial(servers, timeout, dial)
	return alone{conn}, err
}

// OverHolds makes a Subject of a lock that is made from a session of its own kind and a
// path, and whose Lock returns a hold of the kind H, as in steps 5 and 6.
func OverHolds[S zktest.Session, H zktest.Hold, L interface {
	Lock(context.Context) (H, error)
	TryLock(context.Context) (H, error)
}](
	name string,
	open func(servers []string, timeout time.Duration, dial zk.Dialer) (S, error),
	newLock func(S, string) L,
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
		Ways: func(s zktest.Session, path string) (write zktest.Way, read *zktest.Way) {
			session, _ := s.(S) // S's own nil, if s is nil
			l := newLock(session, path)
			shared, isShared := any(l).(interface {
				RLock(context.Context) (H, error)
				TryRLock(context.Context) (H, error)
			})
			if isShared {
				read = &zktest.Way{Lock: holding(shared.RLock), TryLock: holding(shared.TryRLock)}
			}
			return zktest.Way{Lock: holding(l.Lock), TryLock: holding(l.TryLock)}, read
		},
	}
}

// holding gives a call that returns a hold of some kind the form that stories use.
func holding[H zktest.Hold](lock func(context.Context) (H, error)) func(context.Context) (zktest.Hold, error) {
	return func(ctx context.Context) (zktest.Hold, error) {
		h, err := lock(ctx)
		if err != nil {
			return nil, err
		}
		return h, nil
	}
}

// Elsewhere returns a subject that can also take a turn in another process. That process is this
// program, started again to run only the named test. There the test reaches this call, which takes
// the turn and does not return.
func (s Subject) Elsewhere(test string) Subject {
	role := "one turn of " + s.Name
	if process.Plays(role) {
		if err := s.oneTurn(flag.Args()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	pattern := "^" + strings.ReplaceAll(regexp.QuoteMeta(test), "/", "$/^") + "$"
	s.elsewhere = func(z *zktest.Zoo, path string) (token int64) {
		args := append([]string{"-test.run", pattern, path}, z.Servers()...)
		cmd := process.InRole(role, exec.CommandContext(z.Ctx, os.Args[0], args...))
		_, err := cmd.StdinPipe() // the new process ends when this pipe is closed
		var said []byte
		if err == nil {
			said, err = cmd.Output()
		}
		if err == nil {
			_, err = fmt.Sscanf(string(said), "token %d", &token)
		}
		z.Require(err, "a turn in a process of its own")
		return token
	}
	return s
}

// oneTurn locks, prints the token, and unlocks.
func (s Subject) oneTurn(args []string) error {
	go process.EndWithParent()
	path, servers := args[0], args[1:]
	session, err := s.Open(servers, zktest.SessionTimeout, net.DialTimeout)
	if err != nil {
		return err
	}
	defer session.Close()
	write, _ := s.Ways(session, path)
	held, err := write.Lock(context.Background())
	if err != nil {
		return err
	}
	fmt.Println("token", held.Token())
	return held.Unlock()
}

// Reading returns the subject with clients that read and write in turn. If first is set, the first
// client of a story, the third and so on are readers. Otherwise the second, the fourth and so on
// are.
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

// A Seat says how a client gets to a lock. Zero values mean a session of zktest.SessionTimeout, the
// lock at <the test's root>/lock, and the client's tap.
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

// JoinAs brings a client with a Seat of its own.
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

// At gives a member another lock of this kind, over its session.
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
