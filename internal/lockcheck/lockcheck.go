// Package lockcheck is the one list of properties that every lock of this
// repository is held against: the steps, the exercises, the published mistakes
// and the client's own zk.Lock.
//
// A property is checked by a story that is arranged, not hoped for: faults and
// orders are made on the wire. Its verdict comes with evidence, a count, a path
// or an order as the server or the wire saw it.
package lockcheck

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"zklock/internal/wiretap"
	"zklock/internal/zkserver"
	"zklock/internal/zktest"
)

// A Subject is a kind of lock under test.
type Subject struct {
	Name string
	// Join makes one client of the lock at path: a session with the given
	// time-out, and the lock's methods over it.
	Join func(z *zktest.Zoo, name string, timeout time.Duration, path string) (*zktest.Client, Contender)
}

// A Contender is the lock as one client has it. A method that the lock does
// not offer is nil.
type Contender struct {
	Lock   func(context.Context) error
	Unlock func() error
	Again  func(context.Context) error // the holder locks again
	Held   func() context.Context      // the hold, if it is a context
	Lost   func() <-chan struct{}      // closed when the lock can no longer be relied on
	Token  func() int64                // the fencing token of the hold

	RLock   func(context.Context) error // shared with other readers
	RAgain  func(context.Context) error // the holder reads inside
	RUnlock func() error
}

// Over makes a Subject of a lock that is made from a connection and a path.
func Over[L zktest.Locker](name string, newLock func(*zk.Conn, string) L) Subject {
	return Subject{name, func(z *zktest.Zoo, client string, timeout time.Duration, path string) (*zktest.Client, Contender) {
		c := z.Connect(client, timeout)
		l := newLock(c.Conn, path)
		return c, Contender{Lock: l.Lock, Unlock: l.Unlock}
	}}
}

// A Property is something that a good lock has.
type Property struct {
	Name string
	Why  string // one line: what goes wrong without it
	Hint string // a question that leads to the answer
	tell func(*story)
}

// A Verdict is the answer to whether a property holds.
type Verdict string

// The verdicts.
const (
	Yes   Verdict = "✓"
	No    Verdict = "✗"
	Void  Verdict = "–" // the question does not arise: the evidence says why
	Stuck Verdict = "?" // no answer: the evidence says what was waited for in vain
)

// A Result is the verdict on one property of one subject.
type Result struct {
	Subject  string
	Property *Property
	Verdict  Verdict
	Evidence string // a count, a path or an order, as the server or the wire saw it
	Lines    []Line // what passed on the wire until the verdict
}

// A Line is what passed between one client of a story and the server. Paths are
// told from the story's own root.
type Line struct {
	Client string
	Frames []wiretap.Frame
	Moods  []Mood
}

// A Mood is what a client believes of itself from a moment on, after a call to the
// lock.
type Mood struct {
	At time.Time
	Is string
}

// What a call to the lock makes a client believe.
const (
	MoodIdle   = "idle"
	MoodWaits  = "waits"
	MoodHolds  = "holds"
	MoodReads  = "reads"
	MoodFailed = "got an error"
)

func (r Result) String() string {
	return fmt.Sprintf("%s %s: %s", r.Verdict, r.Property.Name, r.Evidence)
}

// Check holds a subject against a property, on a real server.
func Check(server *zkserver.Server, subject Subject, property *Property) Result {
	return check(server, subject, property, zktest.Patience, zktest.Play)
}

// CheckWithin is Check of a lock that may hang: the story has to come to its
// verdict within limit, and what it leaves behind is not waited for.
func CheckWithin(server *zkserver.Server, subject Subject, property *Property, limit time.Duration) Result {
	return check(server, subject, property, limit, func(tell func(zktest.T)) error { return zktest.PlayWithin(limit, tell) })
}

func check(server *zkserver.Server, subject Subject, property *Property, limit time.Duration, play func(func(zktest.T)) error) Result {
	told := make(chan *story, 1)
	err := play(func(t zktest.T) {
		s := &story{T: t, Zoo: zktest.NewOn(t, server), subject: subject}
		s.path = s.Root + "/lock"
		ctx, cancel := context.WithTimeout(s.Ctx, limit)
		defer cancel()
		s.Ctx = ctx
		defer func() {
			s.result.Lines = s.lines()
			told <- s
		}()
		property.tell(s)
	})
	var r Result
	if err != nil { // a wait in vain
		r.Verdict, r.Evidence = Stuck, err.Error()
	}
	select {
	case s := <-told:
		r.Evidence = s.short(r.Evidence)
		if r.Lines = s.result.Lines; err == nil {
			r = s.result
		}
	default: // it has not begun, or it hangs
	}
	r.Subject, r.Property = subject.Name, property
	return r
}

// Holds tests that the subject has the properties.
func Holds(t *testing.T, subject Subject, properties ...*Property) {
	expect(t, subject, Yes, properties)
}

// Fails tests that the subject lacks the properties, and that each is seen to
// fail: a story that merely got stuck is not evidence.
func Fails(t *testing.T, subject Subject, properties ...*Property) {
	expect(t, subject, No, properties)
	if asked := os.Getenv("LOCKCHECK_ASK"); asked != "" { // the bug hunt: does the subject lack this one, too?
		for _, p := range Properties {
			if p.Name == asked && !slices.Contains(properties, p) {
				server, err := zktest.Shared()
				if err != nil {
					t.Fatal(err)
				}
				t.Log(CheckWithin(server, subject, p, 12*time.Second))
			}
		}
	}
}

// Empty tests that the question of these properties does not arise.
func Empty(t *testing.T, subject Subject, properties ...*Property) {
	expect(t, subject, Void, properties)
}

func expect(t *testing.T, subject Subject, want Verdict, properties []*Property) {
	for _, p := range properties {
		t.Run(strings.ReplaceAll(subject.Name+": "+p.Name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			server, err := zktest.Shared()
			if err != nil {
				t.Fatal(err)
			}
			r := Check(server, subject, p)
			t.Log(r)
			if r.Verdict != want {
				t.Errorf("%s: want %s here, not %s. Why it matters: %s. Ask yourself: %s", subject.Name, want, r.Verdict, p.Why, p.Hint)
			}
		})
	}
}

// A story is one run of a property's check.
type story struct {
	zktest.T
	*zktest.Zoo
	subject Subject
	path    string
	result  Result
	clients []*client // in the order of their coming
}

// holds ends the story with the verdict that the property holds.
func (s *story) holds(evidence string, args ...any) { s.verdict(Yes, evidence, args) }

// fails ends the story with the verdict that it does not.
func (s *story) fails(evidence string, args ...any) { s.verdict(No, evidence, args) }

// void ends the story with the verdict that the question does not arise.
func (s *story) void(why string, args ...any) { s.verdict(Void, why, args) }

func (s *story) verdict(v Verdict, evidence string, args []any) {
	s.result.Verdict, s.result.Evidence = v, s.short(fmt.Sprintf(evidence, args...))
	s.FailNow()
}

// lines tells what has passed until now.
func (s *story) lines() (lines []Line) {
	for _, c := range s.clients {
		frames := c.Tap.Frames()
		for i := range frames {
			frames[i].Path = s.short(frames[i].Path)
		}
		c.mu.Lock()
		lines = append(lines, Line{c.Name, frames, slices.Clone(c.moods)})
		c.mu.Unlock()
	}
	return lines
}

// short takes the test's own root out of paths: nobody can tell it from another.
func (s *story) short(text string) string { return strings.ReplaceAll(text, s.Root, "") }

// A client of the story.
type client struct {
	*zktest.Client
	Contender
	s *story

	mu    sync.Mutex
	moods []Mood
}

func (c *client) becomes(is string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.moods = append(c.moods, Mood{time.Now(), is})
}

// tell makes a call to lock also tell the client's mood.
func (c *client) tell(lock func(context.Context) error, then string) func(context.Context) error {
	if lock == nil {
		return nil
	}
	return func(ctx context.Context) error {
		c.becomes(MoodWaits)
		err := lock(ctx)
		if err != nil {
			c.becomes(MoodFailed)
		} else {
			c.becomes(then)
		}
		return err
	}
}

// join brings a new client to the lock.
func (s *story) join(name string) *client { return s.joinAt(name, zktest.SessionTimeout, s.path) }

// joinMortal brings a client whose session expires soon after a crash.
func (s *story) joinMortal(name string) *client { return s.joinAt(name, zktest.MortalTimeout, s.path) }

func (s *story) joinAt(name string, timeout time.Duration, path string) *client {
	c, contender := s.subject.Join(s.Zoo, name, timeout, path)
	joined := &client{Client: c, Contender: contender, s: s}
	joined.Lock, joined.RLock = joined.tell(contender.Lock, MoodHolds), joined.tell(contender.RLock, MoodReads)
	joined.Unlock = func() error {
		err := contender.Unlock()
		if err == nil {
			joined.becomes(MoodIdle)
		}
		return err
	}
	s.clients = append(s.clients, joined)
	return joined
}

// start calls Lock in the background.
func (c *client) start() *zktest.Attempt { return c.s.Go(c.Client, c.Lock) }

// acquire calls Lock, and the story is stuck if it does not succeed.
func (c *client) acquire() { c.start().Acquired() }

// release calls Unlock, and the story is stuck if it fails.
func (c *client) release() {
	if err := c.Unlock(); err != nil {
		c.s.Fatalf("%s: Unlock: %v", c.Name, err)
	}
}

// queue brings clients to the lock one after the other: each waits before the
// next comes. The story fails if one is let in.
func (s *story) queue(clients ...*client) []*zktest.Attempt {
	var attempts []*zktest.Attempt
	for _, c := range clients {
		a := c.start()
		s.mustWait(c, a.Waits(), a, "arrived")
		attempts = append(attempts, a)
	}
	return attempts
}

// mustWait fails the story if the client, whose wait is how, holds the lock
// beside somebody else.
func (s *story) mustWait(c *client, how zktest.Wait, a *zktest.Attempt, when string) {
	if how != zktest.Returned {
		return
	}
	if err := a.Err(); err != nil {
		s.Fatalf("%s %s and its Lock answered: %v", c.Name, when, err)
	}
	s.fails("%s %s and was let in beside the holder; the queue: %v", c.Name, when, s.Names(s.path))
}
