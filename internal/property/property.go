// Package property is the one list of properties that every lock of this repository is checked for:
// the steps, the exercises, the published mistakes and the client's own zk.Lock.
//
// A property is checked by a story. The story arranges its faults and interleavings on the wire,
// and does not wait for them to happen by chance. Its verdict has evidence: a count, a path or an
// order, as the server or the wire saw it.
package property

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"zklock/internal/lang"
	"zklock/internal/wiretap"
	"zklock/internal/zkserver"
	"zklock/internal/zktest"
)

// A Property is something that a good lock has.
type Property struct {
	Name     lang.Text
	Why      lang.Text // what goes wrong without it, in one line, which a step's test may print
	Question lang.Text // that leads a learner to the answer
	tell     func(*Story)
	onThree  bool // it is checked on three servers, one of which lags
}

func (p *Property) String() string { return p.Name.EN }

// text makes a sentence in both languages.
var text = lang.Both

// New makes a property. The story tell shows whether a lock has it.
func New(name, why, question lang.Text, tell func(*Story)) *Property {
	return &Property{Name: name, Why: why, Question: question, tell: tell}
}

// A Verdict is the answer to whether a property holds.
type Verdict string

// The verdicts.
const (
	Yes   Verdict = "✓"
	No    Verdict = "✗"
	Void  Verdict = "–" // the question does not arise: the evidence says why
	Stuck Verdict = "?" // no verdict: the evidence says what did not happen
)

// A Result is the verdict on one property of one subject.
type Result struct {
	Subject  string
	Property *Property
	Verdict  Verdict
	About    *Property // whose question and hints fit what was seen: mostly Property itself
	Evidence string    // a count, a path or an order, as the server or the wire saw it
	Asked    string    // without a verdict: the last requests of each client
	Again    bool      // without a verdict: twice for the same reason, also when the story ran alone
	NoServer bool      // without a verdict: the lock was not checked, because there was no server
	Lines    []Line    // what passed on the wire until the verdict
}

// A Line is what passed between one client of a story and the server. Paths are relative to the
// story's own root.
type Line struct {
	Client string
	Frames []wiretap.Frame
	Died   time.Time // when it crashed, if it did
}

// String returns the result as a sentence.
func (r Result) String() string {
	return fmt.Sprintf("%s %s: %s", r.Verdict, r.Property, r.Evidence)
}

// Accepted reports whether a lock with this verdict is right:
// it has the property, or the question does not arise.
func (v Verdict) Accepted() bool { return v == Yes || v == Void }

// Check checks whether a subject has a property, on a real server.
func Check(server *zkserver.Server, subject Subject, property *Property) Result {
	return checkFor(zktest.Patience, server, subject, property)
}

// checkFor is Check with the given patience.
func checkFor(patience time.Duration, server *zkserver.Server, subject Subject, property *Property) Result {
	play := func(_ context.Context, tell func(zktest.T)) error { return zktest.Tell(tell) }
	return check(context.Background(), patience, server, subject, property, play)
}

// CheckUntil is Check for a lock that may hang. The story has no verdict if it needs longer than
// ctx, or if nothing moves for patience. CheckUntil does not wait for what the story leaves
// running.
func CheckUntil(
	ctx context.Context,
	patience time.Duration,
	server *zkserver.Server,
	subject Subject,
	property *Property,
) Result {
	return check(ctx, patience, server, subject, property, zktest.TellUntil)
}

// company is locked for reading by a story that may run
// beside others, and for writing by one that runs alone.
var company sync.RWMutex

// Beside returns the result of ask, and may run ask while other stories of this process run.
func Beside(ask func() Result) Result {
	company.RLock()
	defer company.RUnlock()
	return ask()
}

// OrAlone returns the result if it has a verdict. Otherwise it calls ask once more, while this
// process runs no other story, because a slow machine is never the lock's fault.
func (r Result) OrAlone(ask func() Result) Result {
	if r.Verdict != Stuck {
		return r
	}
	company.Lock()
	defer company.Unlock()
	again := ask()
	again.Again = again.Verdict == Stuck && withoutNumbers(again.Evidence) == withoutNumbers(r.Evidence)
	return again
}

// withoutNumbers removes what differs in each run of a story: the numbers of znodes, sessions and times.
func withoutNumbers(text string) string { return numbers.ReplaceAllString(text, "") }

var numbers = regexp.MustCompile(`(_c_|0x)[0-9a-f]+|[0-9]+(\.[0-9]+)?`)

func check(
	ctx context.Context,
	patience time.Duration,
	server *zkserver.Server,
	subject Subject,
	property *Property,
	play func(context.Context, func(zktest.T)) error,
) Result {
	ctx, end := context.WithCancel(ctx)
	defer end()
	begun, told := make(chan *zktest.Zoo, 1), make(chan Result, 1)
	err := play(ctx, func(t zktest.T) {
		s := &Story{T: t, subject: subject}
		if property.onThree {
			s.lag = zktest.NewLag(t)
			s.Zoo = s.lag.Zoo
		} else {
			s.Zoo = zktest.NewOn(t, server)
		}
		s.Bound(ctx, patience)
		context.AfterFunc(s.Ctx, end)
		begun <- s.Zoo
		s.dir = s.Root + "/lock"
		s.path = s.in(s.dir)
		defer func() {
			s.result.Lines = lines(s.Zoo)
			told <- s.result
		}()
		property.tell(s)
	})
	var r Result
	if err != nil { // a wait has timed out
		r.Verdict, r.Evidence = Stuck, err.Error()
	} else {
		r = <-told
	}
	select {
	case zoo := <-begun:
		r.Evidence = short(zoo, r.Evidence)
		if r.Verdict == Stuck {
			r.Asked = lastAsked(lines(zoo))
		}
	default:
		r.NoServer = true
	}
	r.Subject, r.Property, r.About = subject.Name, property, cmp.Or(r.About, property)
	return r
}

// patienceAlone is the patience with a story that had no verdict and runs once more.
const patienceAlone = 2 * zktest.Patience

// Holds tests that the subject has the properties. A property without a verdict is checked once more, but
// not if another one has failed by then.
func Holds(t *testing.T, subject Subject, properties ...*Property) {
	expect(t, subject, Yes, properties)
}

// Lacks tests that the subject lacks the properties, and that each is seen to fail. A story that
// merely got stuck is no evidence.
func Lacks(t *testing.T, subject Subject, properties ...*Property) {
	expect(t, subject, No, properties)
}

// DoesNotArise tests that the question of these properties does not arise.
func DoesNotArise(t *testing.T, subject Subject, properties ...*Property) {
	expect(t, subject, Void, properties)
}

func expect(all *testing.T, subject Subject, want Verdict, properties []*Property) {
	if slices.Contains(properties, Fenced) {
		subject = subject.Elsewhere(all.Name())
	}
	for _, p := range properties {
		all.Run(strings.ReplaceAll(subject.Name+": "+p.Name.EN, " ", "_"), func(t *testing.T) {
			t.Parallel()
			server, err := zktest.Shared()
			if err != nil {
				t.Fatal(err)
			}
			r := Beside(func() Result { return Check(server, subject, p) })
			alone := "even when the check ran alone"
			r = r.OrAlone(func() Result {
				if all.Failed() { // to check once more takes minutes, and changes nothing
					alone = "and the check did not run again alone, because another property has failed"
					return r
				}
				t.Logf("checked once more, alone, because there was no verdict: %v. The last requests: %s", r, r.Asked)
				return checkFor(patienceAlone, server, subject, p)
			})
			if r.Verdict == Stuck {
				t.Fatalf("%s: no verdict, %s: %s. The last requests: %s. "+
					"Is this machine too busy? Or does the lock wait for something that never happens?", subject.Name, alone, r, r.Asked)
			}
			if r.Verdict == No && want == No { // a ✗ would look as if the test had failed
				t.Logf("as expected, %s lacks %q: %s", subject.Name, p.Name.EN, r.Evidence)
			} else {
				t.Log(r)
			}
			if r.Verdict != want {
				t.Errorf("%s: want %s here, not %s. Why it matters: %s. Ask yourself: %s",
					subject.Name, want, r.Verdict, p.Why, r.About.Question)
			}
		})
	}
}

// A Story is one run of a property's check.
type Story struct {
	zktest.T
	*zktest.Zoo
	subject Subject
	path    string // of the lock
	dir     string // the directory of its znodes
	result  Result
	members []*zktest.Member // in the order in which they joined
	lag     *zktest.Lag      // of a property that is checked on three servers
}

// Holds ends the story with the verdict that the property holds.
func (s *Story) Holds(evidence string, args ...any) { s.verdict(Yes, evidence, args) }

// Fails ends the story with the verdict that the property does not hold.
func (s *Story) Fails(evidence string, args ...any) { s.verdict(No, evidence, args) }

// accident describes something that happened to a client and that the story did not cause, or
// returns "".
func (s *Story) accident() string {
	for _, m := range s.members {
		if accident := m.Accident(); accident != "" {
			return accident
		}
	}
	return ""
}

// FailsIf calls Fails if wrong.
func (s *Story) FailsIf(wrong bool, evidence string, args ...any) {
	if wrong {
		s.Fails(evidence, args...)
	}
}

// about tells a part of the story to which the question and the hints of another property fit better. One that has
// only a Question leaves the hints as they are.
func (s *Story) about(p *Property, tell func()) {
	before := s.result.About
	s.result.About = p
	tell()
	s.result.About = before
}

// void ends the story with the verdict that the question does not arise.
func (s *Story) void(why string, args ...any) { s.verdict(Void, why, args) }

// verdict ends the story. After an accident there is no verdict: a right lock may have failed, or the
// fault that a wrong lock does not survive has not happened.
func (s *Story) verdict(v Verdict, evidence string, args []any) {
	if accident := s.accident(); accident != "" {
		s.Fatalf("%s, which this check did not cause; then %s", accident, fmt.Sprintf(evidence, args...))
	}
	if wrong := s.deletesAnothers(); v == Yes && wrong != "" { // a story need not have noticed it
		v, evidence, args, s.result.About = No, "%s", []any{wrong}, whoseZnode
	}
	s.result.Verdict, s.result.Evidence = v, fmt.Sprintf(evidence, args...)
	s.FailNow()
}

// Questions for what several stories may see. The name of notWoken is that of a section of hints.
var (
	notWoken = &Property{Name: text("a waiter is not woken", "等待者没有被唤醒"), Question: text(
		"what notifies a waiter that it is its turn, and what does it do then?", "由谁通知等待者轮到它了？它接着做什么？",
	)}
	whoseZnode = &Property{Question: text(
		"how does your code know that the znode which it deletes is its own?", "你的代码怎样知道，要删除的 znode 是自己的？",
	)}
	whichPlace = &Property{Question: text(
		"your znode was deleted, and you have created another one: which code still has the path of the first?",
		"你的 znode 被删除，于是你又创建了一个：哪里的代码还在用第一个的路径？",
	)}
	whichConnection = &Property{Question: text(
		"a hold ends with a connection: with which one, and when do you take it?",
		"持锁随一条连接结束：随哪一条？你是什么时候取得它的？",
	)}
	whatEndsTheWork = &Property{Question: text(
		"which of these end the context of the work, when, and with which cause: the call's context, the parent, "+
			"the end of the hold?",
		"调用时传入的 context、工作的 parent、持锁的结束：其中哪些会结束工作的 context？什么时候？原因各是什么？",
	)}
	overHold = &Property{Question: text(
		"a hold was released or lost: how do a Lock and an Unlock with it notice that?",
		"持锁已经释放，或者已经丢失：再用它来 Lock、Unlock 时，怎样发现这一点？",
	)}
)

// deletesAnothers tells of a client that has deleted a znode of the lock that another client had made, or returns "".
// In step 1 a client may have made the same znode: it must not delete it more often than that.
func (s *Story) deletesAnothers() string {
	for _, m := range s.members {
		made, deleted := times(m.Tap.Done(wiretap.Create)), times(m.Tap.Done(wiretap.Delete))
		perhaps := m.Tap.Unanswered(wiretap.Create)
		for _, znode := range slices.Sorted(maps.Keys(deleted)) {
			isLock := s.subject.Znode && znode == m.Path
			isInQueue := strings.HasPrefix(znode, m.Path+"/")
			mayBeItsOwn := deleted[znode] <= made[znode]+perhaps
			if mayBeItsOwn || !isLock && !isInQueue {
				continue
			}
			if maker := s.makerOf(znode, m); maker != "" {
				return fmt.Sprintf("%s has deleted %s, which %s had made", m.Name, znode, maker)
			}
		}
	}
	return ""
}

// makerOf returns the name of a client that has made a znode, over another connection than m, or "".
func (s *Story) makerOf(znode string, m *zktest.Member) string {
	for _, other := range s.members {
		if other.Tap != m.Tap && slices.Contains(other.Tap.Done(wiretap.Create), znode) {
			return other.Name
		}
	}
	return ""
}

// times counts how often each path is in a list.
func times(paths []string) map[string]int {
	n := map[string]int{}
	for _, path := range paths {
		n[path]++
	}
	return n
}

// EndSession is that of the Zoo. It is no accident: the story causes it.
func (s *Story) EndSession(m *zktest.Member) {
	m.Tap.Touch()
	s.Zoo.EndSession(m.Client)
}

// in returns the path of a lock whose znodes are in dir.
func (s *Story) in(dir string) string {
	if s.subject.Znode {
		return dir + "/lock"
	}
	return dir
}

// apart runs a part of the story, and returns its evidence, or "". If the part fails, only the part
// ends, and not the story.
func (s *Story) apart(tell func(part *Story)) (wrong string) {
	part := *s
	err := zktest.Tell(func(t zktest.T) {
		part.T = t
		tell(&part)
	})
	if err != nil {
		return err.Error()
	}
	return part.result.Evidence
}

// lines returns what has passed on each client's connection so far.
func lines(zoo *zktest.Zoo) (all []Line) {
	for _, line := range zoo.Lines() {
		frames := line.Tap.Frames()
		for i := range frames {
			frames[i].Path = short(zoo, frames[i].Path)
		}
		all = append(all, Line{line.Name, frames, line.Tap.Silenced()})
	}
	return all
}

// lastAsked lists the last requests of each client.
func lastAsked(lines []Line) string {
	const most = 3
	var all []string
	for _, line := range lines {
		asked := slices.DeleteFunc(line.Frames, func(f wiretap.Frame) bool {
			return f.Kind != wiretap.Request || f.Class() != wiretap.OfLock
		})
		var last []string
		for _, f := range asked[max(0, len(asked)-most):] {
			last = append(last, f.Briefly(f.Path).EN)
		}
		if len(last) > 0 {
			all = append(all, fmt.Sprintf("%s: %s", line.Client, strings.Join(last, ", ")))
		}
	}
	return strings.Join(all, "; ")
}

// short removes the test's random root from paths, because it means nothing to a reader.
func short(zoo *zktest.Zoo, text string) string { return strings.ReplaceAll(text, zoo.Root, "") }

// Join brings a new client to the lock.
func (s *Story) Join(name string) *zktest.Member { return s.JoinAs(name, Seat{}) }

// JoinMortal brings a client whose session expires soon after a crash.
func (s *Story) JoinMortal(name string) *zktest.Member {
	return s.JoinAs(name, Seat{Timeout: zktest.MortalTimeout})
}

func (s *Story) JoinAs(name string, seat Seat) *zktest.Member {
	m := s.writerAs(name, seat)
	if s.reads(len(s.members) - 1) {
		return m.Reader
	}
	return m
}

// writerAs brings a client that writes, and so holds the lock alone.
func (s *Story) writerAs(name string, seat Seat) *zktest.Member {
	seat.Path = cmp.Or(seat.Path, s.path)
	m := s.subject.JoinAs(s.Zoo, name, seat)
	s.members = append(s.members, m)
	return m
}

// reads reports whether the n-th client of the story is a reader.
func (s *Story) reads(n int) bool { return s.subject.reads != nil && s.subject.reads(n) }

// queue brings clients to the lock one after the other: each waits before the next arrives. The
// story fails if one gets the lock.
func (s *Story) queue(members ...*zktest.Member) []*zktest.Turn {
	var turns []*zktest.Turn
	for _, m := range members {
		t := m.Start()
		s.mustWait(t, t.Waits(), "arrived")
		turns = append(turns, t)
	}
	return turns
}

// mustWait fails the story if the call of a client that must wait has returned. Then the client
// holds the lock together with another client, or it got an error.
func (s *Story) mustWait(t *zktest.Turn, how zktest.Wait, what string, args ...any) {
	if how != zktest.Returned {
		return
	}
	when := fmt.Sprintf(what, args...)
	if err := t.Err(); err != nil {
		s.Fails("%s %s and its Lock returned: %v", t.Name, when, err)
	}
	s.Fails("%s %s and got the lock while it was held%s", t.Name, when, s.queueNow())
}
