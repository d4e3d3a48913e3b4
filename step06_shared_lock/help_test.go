package sharedlock

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"zklock/internal/wiretap"
	"zklock/internal/zktest"
)

// open is Open as lockcheck calls it.
func open(servers []string, timeout time.Duration, dial zk.Dialer) (*Session, error) {
	return Open(servers, timeout, WithDialer(dial))
}

// A locker is a lock for readers and writers: this step's, or a variant of it.
type locker interface {
	RLock(context.Context) (context.Context, error)
	Lock(context.Context) (context.Context, error)
	TryRLock(context.Context, time.Duration) (context.Context, error)
	TryLock(context.Context, time.Duration) (context.Context, error)
	RUnlock(context.Context) error
	Unlock(context.Context) error
}

// A scene is a test's share of ZooKeeper, and the lock in it.
type scene struct {
	*zktest.Zoo
	t       *testing.T
	dir     string               // the lock's
	variant func(*RWLock) locker // what its users use instead, if not nil
}

func newScene(t *testing.T) *scene { return newSceneOn(t, zktest.New(t)) }

func newSceneOn(t *testing.T, z *zktest.Zoo) *scene {
	return &scene{z, t, z.Root + "/lock", nil}
}

// A user of the lock has a session of its own.
type user struct {
	*zktest.Client
	*scene
	lock *RWLock
	uses locker // lock, or the scene's variant of it
}

func (s *scene) join(name string) *user { return s.joinFor(name, zktest.SessionTimeout, 0) }

// mortal brings a user whose session expires soon after a crash.
func (s *scene) mortal(name string) *user { return s.joinFor(name, zktest.MortalTimeout, 0) }

// hasty brings a user who believes that its session is mortal, while the server
// keeps it for much longer.
func (s *scene) hasty(name string) *user {
	return s.joinFor(name, zktest.SessionTimeout, zktest.MortalTimeout)
}

func (s *scene) joinFor(name string, timeout, told time.Duration) *user {
	s.t.Helper()
	return s.joinThrough(name, timeout, func(dial zk.Dialer) zk.Dialer {
		return func(network, address string, limit time.Duration) (net.Conn, error) {
			conn, err := dial(network, address, limit)
			if err != nil || told == 0 {
				return conn, err
			}
			return &altered{Conn: conn, tell: told}, nil
		}
	})
}

// joinThrough brings a user that connects through what a test makes of its
// tap's dialer.
func (s *scene) joinThrough(name string, timeout time.Duration, through func(zk.Dialer) zk.Dialer) *user {
	s.t.Helper()
	var session *Session
	c := s.ConnectWith(name, func(dial zk.Dialer) (*zk.Conn, func(), error) {
		var err error
		session, err = Open(s.Servers(), timeout, WithDialer(through(dial)))
		if err != nil {
			return nil, nil, err
		}
		return session.Conn(), session.Close, nil
	})
	lock := New(session, s.dir)
	if s.variant != nil {
		return &user{c, s, lock, s.variant(lock)}
	}
	return &user{c, s, lock, lock}
}

// altered is a line that changes the session time-out that the server grants:
// bytes 8 to 11 of what it says first.
type altered struct {
	net.Conn
	tell time.Duration
	read int
}

func (c *altered) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	timeout := binary.BigEndian.AppendUint32(nil, uint32(c.tell.Milliseconds()))
	for i := range b[:n] {
		if at := c.read + i - 8; at >= 0 && at < len(timeout) {
			b[i] = timeout[at]
		}
	}
	c.read += n
	return n, err
}

// acquire is RLock or Lock, by the kind of znode, and with a wait of 0 or more
// TryRLock or TryLock.
func acquire(ctx context.Context, l locker, kind string, wait time.Duration) (context.Context, error) {
	switch {
	case kind == read && wait < 0:
		return l.RLock(ctx)
	case kind == read:
		return l.TryRLock(ctx, wait)
	case wait < 0:
		return l.Lock(ctx)
	default:
		return l.TryLock(ctx, wait)
	}
}

// release is RUnlock or Unlock, with a deadline.
func release(held context.Context, l locker, kind string) error {
	answer := make(chan error, 1)
	go func() {
		if kind == read {
			answer <- l.RUnlock(held)
		} else {
			answer <- l.Unlock(held)
		}
	}()
	select {
	case err := <-answer:
		return err
	case <-time.After(zktest.Patience):
		return errors.New("waited in vain for " + unlock(kind) + " to return")
	}
}

// unlock names what release calls.
func unlock(kind string) string {
	return map[string]string{read: "RUnlock", write: "Unlock"}[kind]
}

// A turn is a user's call to RLock or Lock, and the hold that came of it.
type turn struct {
	*zktest.Attempt
	*user
	kind string
	mark int
	held context.Context
}

func (u *user) asks(kind string) *turn { return u.asksFor(kind, -1) }

func (u *user) asksFor(kind string, wait time.Duration) *turn {
	tn := &turn{user: u, kind: kind, mark: u.Tap.Mark()}
	tn.Attempt = u.Go(u.Client, func(ctx context.Context) (err error) {
		tn.held, err = acquire(ctx, u.uses, kind, wait)
		return err
	})
	return tn
}

// holds returns once the user holds the lock.
func (u *user) holds(kind string) *turn {
	u.t.Helper()
	tn := u.asks(kind)
	tn.Acquired()
	return tn
}

// waits returns once the user waits in the queue, with a watch and no request.
func (u *user) waits(kind string) *turn {
	u.t.Helper()
	tn := u.asks(kind)
	tn.mustWait("arrived")
	return tn
}

// mustWait fails the test unless the call waits silently, after all that has
// happened so far.
func (tn *turn) mustWait(when string) {
	tn.t.Helper()
	tn.Waits()
	switch how := tn.StillWaits(); how {
	case zktest.Silently:
	case zktest.Returned:
		tn.t.Fatalf("%s %s: its call has returned with error %v, and should wait; the queue: %v", tn.Name, when, tn.Err(), tn.queue())
	default:
		tn.t.Fatalf("%s %s: it %v, and should wait silently; the queue: %v", tn.Name, when, how, tn.queue())
	}
}

// releases ends the hold.
func (tn *turn) releases() {
	tn.t.Helper()
	if err := release(tn.held, tn.uses, tn.kind); err != nil {
		tn.t.Fatalf("%s: release: %v", tn.Name, err)
	}
}

// node is the path of the znode that the call has made.
func (tn *turn) node() (path string) {
	for _, f := range tn.Tap.Since(tn.mark) {
		if f.Kind == wiretap.Reply && f.Op == wiretap.Create && f.Err == wiretap.OK && strings.HasPrefix(f.Path, tn.dir+"/") {
			path = f.Path
		}
	}
	return path
}

// queue lists the lock's directory in the order of the numbers.
func (s *scene) queue() []string {
	names := s.Names(s.dir)
	slices.SortFunc(names, byNumber)
	return names
}

// byNumber compares two names by their numbers.
func byNumber(a, b string) int {
	n, _, _ := number(a)
	m, _, _ := number(b)
	return cmp.Compare(n, m)
}

// notified counts the notifications that the users get for what happens.
func (s *scene) notified(happens func(), turns ...*turn) int {
	s.t.Helper()
	marks := make([]int, len(turns))
	for i, tn := range turns {
		marks[i] = tn.Tap.Mark()
	}
	happens()
	n := 0
	for i, tn := range turns {
		s.Barrier(tn.Client)
		n += wiretap.Count(tn.Tap.Since(marks[i])).Notifications
	}
	return n
}

// stranger puts a znode of somebody else into the queue: what stands before the
// kind in its name is that client's affair.
func (s *scene) stranger(name string, flags int32) string {
	s.t.Helper()
	path, err := s.Observer().Create(s.dir+"/"+name, nil, flags, zk.WorldACL(zk.PermAll))
	if err != nil {
		s.t.Fatalf("a stranger's znode %s: %v", name, err)
	}
	return path
}

// makeDir makes the lock's directory.
func (s *scene) makeDir() {
	s.t.Helper()
	if _, err := s.Observer().Create(s.dir, nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
		s.t.Fatal(err)
	}
}

var kinds = []string{read, write}

// eachKind runs a test once for readers and once for writers.
func eachKind(t *testing.T, test func(s *scene, kind string)) {
	t.Parallel()
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			test(newScene(t), kind)
		})
	}
}
