package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"zklock/internal/lockcheck"
	"zklock/internal/wiretap"
	"zklock/internal/zkserver"
	"zklock/internal/zktest"
)

// Numbers is what one run has measured of one lock.
type Numbers struct {
	Subject string
	Alone   wiretap.Counts // one client, one Lock and Unlock
	Crowds  []Crowd        // the smallest first
	Answers []lockcheck.Result
}

// A Crowd is one holder and many clients that wait, each with a session of its
// own.
type Crowd struct {
	Waiters  int
	Polls    bool           // they ask again and again, and are never told
	Waiting  wiretap.Counts // all their traffic in one Window of waiting
	Arrival  wiretap.Counts // their traffic because one more client comes
	Releases []Release      // with the same number waiting each time
}

// Window is how long a crowd is watched while it waits.
const Window = time.Second

// A Release is what one Unlock of the holder sets off.
type Release struct {
	Requests int            // until all is quiet again; of clients that poll: until the next is in
	Waiters  wiretap.Counts // the traffic of those who waited, for as long
	Delay    time.Duration  // from the call of Unlock to the return of the next one's Lock
}

// writes counts the requests that the servers must agree on, whether they
// succeed or not.
func writes(c wiretap.Counts) int {
	return c.Requests[wiretap.Create] + c.Requests[wiretap.Delete] + c.Requests[wiretap.SetData] + c.Requests[wiretap.Multi]
}

// measureAlone counts what one Lock and Unlock cost when nobody else is there.
func measureAlone(server *zkserver.Server, subject lockcheck.Subject) (counts wiretap.Counts, err error) {
	err = zktest.Play(func(t zktest.T) {
		z := zktest.NewOn(t, server)
		c, lock := subject.Join(z, "the only client", zktest.SessionTimeout, z.Root+"/lock")
		var mark int
		for range 2 { // the first makes the directory
			mark = c.Tap.Mark()
			z.Go(c, lock.Lock).Acquired()
			must(t, lock.Unlock())
		}
		counts = wiretap.Count(c.Tap.Since(mark))
	})
	return counts, err
}

// measureCrowd lets a crowd wait for a Window, then one more arrive, then the
// holder release, several times.
func measureCrowd(server *zkserver.Server, subject lockcheck.Subject, waiters int, say func(string)) (crowd Crowd, err error) {
	rounds := 11
	if waiters > 10 {
		rounds = 3
	}
	err = zktest.Play(func(t zktest.T) {
		say("they come")
		q := newQueue(t, server, subject, waiters)
		say("they wait")
		crowd.Waiters = waiters
		crowd.Polls = q.waiting[0].attempt.Waits() == zktest.Polling

		q.mark()
		end := time.Now().Add(Window)
		time.Sleep(Window) // not a wait for a state: the window is the measure
		crowd.Waiting = q.counts(end)

		say("one more comes")
		if !crowd.Polls {
			newcomer := q.join("the newcomer")
			q.mark()
			q.line(newcomer)
			q.settle()
			crowd.Arrival = q.counts(time.Now())
			newcomer.Close() // zk.Lock does not know how to give up
			q.settle()
		}
		for i := range rounds {
			say(fmt.Sprintf("release %d of %d", i+1, rounds))
			crowd.Releases = append(crowd.Releases, q.release(crowd.Polls))
		}
		say("they leave")
		q.leave()
	})
	return crowd, err
}

// A queue is a holder and the clients that wait behind it.
type queue struct {
	t       zktest.T
	zoo     *zktest.Zoo
	subject lockcheck.Subject
	ctx     context.Context // of all calls to Lock
	cancel  context.CancelFunc
	holder  *member
	waiting []*member
}

// A member of the queue.
type member struct {
	*zktest.Client
	lock    lockcheck.Contender
	mark    int
	attempt *zktest.Attempt
	got     chan time.Time // when its Lock has returned
}

// newQueue makes one client hold the lock and many wait for it.
func newQueue(t zktest.T, server *zkserver.Server, subject lockcheck.Subject, waiters int) *queue {
	z := zktest.NewOn(t, server)
	ctx, cancel := context.WithCancel(z.Ctx)
	q := &queue{t: t, zoo: z, subject: subject, ctx: ctx, cancel: cancel, waiting: make([]*member, waiters)}
	q.holder = q.join("the holder")
	q.lockBy(q.holder)
	q.holder.attempt.Acquired()
	each(t, q.waiting, func(i int, _ *member) {
		q.waiting[i] = q.join(fmt.Sprintf("waiter %d", i+1))
	})
	q.line(q.waiting...)
	return q
}

func (q *queue) join(name string) *member {
	c, lock := q.subject.Join(q.zoo, name, zktest.SessionTimeout, q.zoo.Root+"/lock")
	return &member{Client: c, lock: lock}
}

// lockBy makes a member call Lock.
func (q *queue) lockBy(m *member) {
	m.got = make(chan time.Time, 1)
	m.attempt = q.zoo.Go(m.Client, func(context.Context) error {
		err := m.lock.Lock(q.ctx)
		m.got <- time.Now()
		return err
	})
}

// line makes members stand in line, and returns when they have settled down to
// wait. They look around for the first time when all stand there: else each
// arrival would wake the others, n×n/2 times in all.
func (q *queue) line(members ...*member) {
	looks := make([]*wiretap.Trap, len(members))
	for i, m := range members {
		looks[i] = m.Tap.HoldRequest(wiretap.GetChildren, 1)
		q.lockBy(m)
	}
	for _, m := range members {
		m.attempt.Queued()
	}
	for _, look := range looks {
		look.Let()
	}
	each(q.t, members, func(_ int, m *member) {
		if m.attempt.Waits() == zktest.Returned {
			must(q.t, fmt.Errorf("%s was let in beside the holder; its Lock answered %v", m.Name, m.attempt.Err()))
		}
	})
}

// settle returns when all that has happened so far has had its effect on those
// who wait.
func (q *queue) settle() {
	each(q.t, q.waiting, func(_ int, m *member) { m.attempt.StillWaits() })
}

func (q *queue) mark() {
	for _, m := range q.waiting {
		m.mark = m.Tap.Mark()
	}
}

// counts sums up the traffic of those who wait, from the mark to a moment.
func (q *queue) counts(end time.Time) wiretap.Counts {
	var all [][]wiretap.Frame
	for _, m := range q.waiting {
		frames := m.Tap.Since(m.mark)
		late := slices.IndexFunc(frames, func(f wiretap.Frame) bool { return f.At.After(end) })
		if late >= 0 {
			frames = frames[:late]
		}
		all = append(all, frames)
	}
	return wiretap.Count(all...)
}

// release lets the holder release and measures until all is quiet again, or,
// of clients that poll, until the next one is in. Then the old holder goes to
// the end of the line, so that as many wait as before.
func (q *queue) release(polls bool) Release {
	old := q.holder
	old.mark = old.Tap.Mark()
	q.mark()
	begin := time.Now()
	must(q.t, old.lock.Unlock())
	next, at := q.next()
	counted := at
	if !polls {
		each(q.t, q.waiting, func(i int, m *member) {
			if i != next {
				m.attempt.StillWaits()
			}
		})
		q.zoo.Barrier(q.waiting[next].Client)
		counted = time.Now()
	}
	r := Release{Waiters: q.counts(counted), Delay: at.Sub(begin)}
	r.Requests = r.Waiters.All() + wiretap.Count(old.Tap.Since(old.mark)).All()

	q.holder = q.waiting[next]
	q.waiting[next] = old
	q.line(old)
	q.settle()
	return r
}

// next returns which of those who wait got the lock, and when.
func (q *queue) next() (i int, at time.Time) {
	q.zoo.Await("the next in line to be let in", func() bool {
		i = slices.IndexFunc(q.waiting, func(m *member) bool { return m.attempt.Returned() })
		return i >= 0
	})
	must(q.t, q.waiting[i].attempt.Err())
	return i, <-q.waiting[i].got
}

// leave ends all waiting and all sessions, everyone at once: one after the
// other, each would wake those behind it.
func (q *queue) leave() {
	q.cancel()
	everyone := append(q.waiting, q.holder)
	each(q.t, everyone, func(_ int, m *member) { m.Close() })
}

// must ends the measurement if there is an error.
func must(t zktest.T, err error) {
	if err != nil {
		t.Errorf("%w", err)
		t.FailNow()
	}
}

// each does something with all values at once, and ends the measurement if one
// of them fails.
func each[V any](t zktest.T, values []V, do func(int, V)) {
	var all sync.WaitGroup
	var done atomic.Int64
	for i, v := range values {
		all.Go(func() {
			do(i, v)
			done.Add(1) // not when FailNow has ended this goroutine
		})
	}
	all.Wait()
	if int(done.Load()) < len(values) {
		t.FailNow()
	}
}

// check holds all subjects against all properties, a few at a time. The
// answers of a subject stand in the order of the properties.
func check(server *zkserver.Server, subjects []lockcheck.Subject, properties []*lockcheck.Property, say sayer) [][]lockcheck.Result {
	const atATime = 12 // they wait for sessions to expire, most of the time
	places := make(chan struct{}, atATime)
	results := make([][]lockcheck.Result, len(subjects))
	var all sync.WaitGroup
	var mu sync.Mutex
	answered := 0
	for i, subject := range slices.Backward(subjects) { // zk.Lock has the longest story
		results[i] = make([]lockcheck.Result, len(properties))
		for j, property := range properties {
			all.Go(func() {
				places <- struct{}{}
				defer func() { <-places }()
				results[i][j] = lockcheck.Check(server, subject, property)
				mu.Lock()
				defer mu.Unlock()
				answered++
				say("%d of %d questions answered: %s, %s", answered, len(subjects)*len(properties), subject.Name, property.Name)
			})
		}
	}
	all.Wait()
	return results
}
