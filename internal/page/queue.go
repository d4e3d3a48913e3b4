package page

import (
	"slices"
	"time"

	"zklock/internal/lockcheck"
	"zklock/internal/wiretap"
	"zklock/internal/zktest"
)

// A Queue is what was measured of one lock: one client alone, and then a queue
// that grows.
type Queue struct {
	Step    Step
	Polls   bool           // those who wait ask again and again, and are never told
	Alone   wiretap.Counts // one client, one Lock and Unlock
	Arrival wiretap.Counts // the traffic of the first crowd because one more client comes
	Crowds  []Crowd        // the smallest first, those that the scoreboard leaves out among them

	*recorder
	holder  *actor
	waiting []*actor
	idle    []*actor // they held the lock last, and come again with the next crowd
}

// A Crowd is so many clients that wait behind a holder, each with a session of
// its own.
type Crowd struct {
	Waiters  int
	Waiting  wiretap.Counts // all their traffic in one Window of waiting
	Releases []Release      // with the same number waiting each time

	Bystander *Bystander // of the largest, if it was measured
	Deaths    *Deaths
}

// Window is how long a crowd is watched while it waits.
const Window = time.Second

// A Release is what one Unlock of the holder sets off, until all is quiet again;
// of clients that poll, until the next is in.
type Release struct {
	wiretap.Counts               // of all clients
	ToWaiters      int           // bytes that went to those who waited
	Took           time.Duration // from the call of Unlock to the return of the next one's Lock
}

// How often the holder releases: the times of the first crowd are drawn, one by one.
const (
	handOvers    = 20
	someReleases = 3
)

// A size of a crowd. Some are measured for the drawings of the growth alone.
type size struct {
	Waiters int
	Scored  bool
	story   string // the page's, of the first release
}

// sizes are those of the crowds, from ten to the largest.
func sizes(largest int) []size {
	all := []size{{10, true, "release"}, {30, false, ""}, {100, true, ""}, {300, false, ""}, {1000, false, ""}}
	all = slices.DeleteFunc(all, func(s size) bool { return s.Waiters > 10 && s.Waiters >= largest })
	if largest > 10 {
		all = append(all, size{largest, true, "crowd"})
	}
	return all
}

// patience is the deadline of queues that are measured together.
const patience = 5 * time.Minute

// together are the locks that are measured together, in the order of their largest
// crowds; "" is zk.Lock. Those who poll would disturb the others. And a holder of
// steps 5 and 6 must keep its session proved: it does not wait until a herd of a
// thousand has passed.
var together = [][]string{{"1", "2"}, {"5", "6", "", "1w", "4", "3"}}

// drawn are the steps whose growth the page draws.
const drawn = "3456"

// measure lets the queues grow until so many wait. They come and wait together; what
// is timed is done by one after the other.
func measure(t zktest.T, queues []*Queue, largest int, say func(string, ...any)) {
	about := func(q *Queue, s size, what string) {
		say("%s, %s: %s clients: %s", q.Step.Subject.Name, q.Step.Title, number(s.Waiters), what)
	}
	crowds := sizes(largest)
	large := slices.IndexFunc(append(crowds, size{Waiters: 101}), func(s size) bool { return s.Waiters > 100 })
	having := func(s size) []*Queue {
		return slices.DeleteFunc(slices.Clone(queues), func(q *Queue) bool { return !s.Scored && !q.Step.among(drawn) })
	}
	for i, s := range crowds[:large] {
		queues := having(s)
		each(t, queues, func(_ int, q *Queue) {
			if i > 0 {
				q.swell(s.Waiters)
				return
			}
			q.alone()
			q.come(s.Waiters)
		})
		if s.Scored {
			say("%d clients wait at each lock", s.Waiters)
			wait(queues)
		}
		for _, q := range queues {
			if i == 0 && !q.Polls {
				about(q, s, "one more comes")
				q.arrival()
			}
			about(q, s, "the holder releases")
			q.releases(s)
		}
	}
	for _, q := range queues { // so many are there one lock at a time
		for _, s := range crowds[large:] {
			if !q.Polls && slices.Contains(having(s), q) { // else the server would do nothing but answer them
				about(q, s, "they come, and the holder releases")
				q.swell(s.Waiters)
				q.releases(s)
			}
		}
		if s := crowds[len(crowds)-1]; s.Waiters > 100 && q.Step.among("34") {
			about(q, s, "a bystander reads and writes")
			q.bystander()
			about(q, s, "every tenth of them expires")
			q.deaths()
		}
		q.leave()
	}
}

// alone counts what one Lock and Unlock cost when nobody else is there.
func (q *Queue) alone() {
	a := &actor{Member: q.step.Subject.JoinAs(q.Zoo, "the only client", lockcheck.Seat{Path: q.Root + "/alone"}), r: q.recorder}
	for range 2 { // the first makes the directory
		counted := counting(a)
		a.takes()
		a.releases()
		q.Alone = counted(time.Now())
	}
	a.Close()
}

// come brings the first crowd, one after the other.
func (q *Queue) come(n int) {
	cast := q.cast(n + 1)
	q.holder, q.waiting = cast[0], cast[1:]
	q.begin()
	q.phase("%d clients come", n+1)
	q.holder.takes()
	q.lines(q.waiting...)
	q.settles()
	_, q.Polls = q.waiting[0].Tap.Waiting(0)
	q.sum("%s holds the lock, %d wait.", q.holder.Name, n)
	q.Crowds = append(q.Crowds, Crowd{Waiters: n})
}

// excerpt tells a story of the first crowd: it comes, and then something happens.
func (q *Queue) excerpt(id string) {
	q.tells(id)
	q.phases = q.phases[:1]
}

// wait watches the waiting of several queues for one Window.
func wait(queues []*Queue) {
	var counted []func(time.Time) wiretap.Counts
	for _, q := range queues {
		q.phase("a fifth of a second goes by")
		counted = append(counted, counting(q.waiting...))
	}
	begin := time.Now()
	time.Sleep(Window / 5) // not a wait for a state: the time is the measure, and what is told of
	for i, q := range queues {
		if len(q.Crowds) == 1 {
			q.waited(counted[i](time.Now()))
		}
	}
	time.Sleep(time.Until(begin.Add(Window)))
	for i, q := range queues {
		q.Crowds[len(q.Crowds)-1].Waiting = counted[i](begin.Add(Window))
	}
}

// waited sums up what the first crowd has asked while it waited.
func (q *Queue) waited(c wiretap.Counts) {
	switch asked, n := c.All(), len(q.waiting); {
	case asked == 0:
		q.sum("%d clients waited: 0 requests, 0 bytes.", n)
	case writes(c) > 0:
		q.sum("%d clients waited: %s requests, every one a write that failed.", n, number(asked))
	default:
		q.sum("%d clients waited: %s requests, %s bytes of lists, and no news in them.", n, number(asked), number(c.Received))
	}
	q.window()
	q.excerpt("wait")
}

// arrival lets one more client come, and go again.
func (q *Queue) arrival() {
	newcomer := q.cast(1)[0]
	q.phase("%s comes, too", newcomer.Name)
	counted := counting(q.waiting...)
	q.lines(newcomer)
	q.settles()
	q.Barrier(q.holder.Client)
	q.Arrival = counted(time.Now())
	if told := q.Arrival.Notifications; told == 0 {
		q.sum("%s came: no waiter was woken.", newcomer.Name)
	} else {
		q.sum("%s came: %s to those who wait, %s, none of them useful.",
			newcomer.Name, plural(told, "notification"), plural(q.Arrival.Requests[wiretap.GetChildren], "list"))
	}
	q.excerpt("arrival")
	after := time.Now()
	newcomer.left = true
	newcomer.Close() // zk.Lock does not know how to give up
	q.ended(after, newcomer)
	q.settles()
}

// swell makes a crowd of n of those who wait.
func (q *Queue) swell(n int) {
	q.fill(n)
	q.Crowds = append(q.Crowds, Crowd{Waiters: n})
}

// fill brings more clients, until n wait. All look around when all stand in line:
// else each arrival would wake the others, n×n/2 times in all.
func (q *Queue) fill(n int) {
	more := append(q.idle, q.cast(n-len(q.waiting)-len(q.idle))...)
	q.waiting, q.idle = append(q.waiting, more...), nil
	var looks []*wiretap.Trap
	for _, a := range q.waiting {
		looks = append(looks, a.Tap.HoldRequest(wiretap.GetChildren, 1))
	}
	for _, a := range more {
		a.asks()
	}
	for _, a := range more {
		a.turn.Queued()
	}
	for _, look := range looks {
		look.Let()
	}
	q.settles()
}

// releases lets the holder release several times. In between it goes to the end of
// the line, so that as many wait as before.
func (q *Queue) releases(s size) {
	crowd, rounds := &q.Crowds[len(q.Crowds)-1], someReleases
	if len(q.Crowds) == 1 {
		rounds = handOvers
	} else {
		q.begin()
	}
	for i := range rounds {
		old := q.holder
		crowd.Releases = append(crowd.Releases, q.release())
		if i == 0 {
			q.tells(s.story)
		}
		if i == rounds-1 {
			q.idle = append(q.idle, old)
			return
		}
		old.asks().turn.Queued()
		q.waiting = append(q.waiting, old)
		if !q.Polls {
			q.settles()
		}
	}
}

// release is a phase in which the holder releases and the next is let in.
func (q *Queue) release() Release {
	old := q.holder
	for _, a := range q.waiting {
		a.mustWait()
	}
	q.phase("%s releases", old.Name)
	all, waiters := counting(append(q.waiting, old)...), counting(q.waiting...)
	begin := time.Now()
	old.releases()
	next := q.served(q.waiting)
	quiet := next.last()
	took := quiet.Sub(begin)
	if !q.Polls {
		q.settles()
		q.Barrier(next.Client)
		quiet = time.Now()
	}
	r := Release{all(quiet), waiters(quiet).Received, took}
	if q.Polls {
		q.sum("%s released: nobody was told; %d requests later %s found out by asking, after %.1f ms.",
			old.Name, r.All()-1, next.Name, millis(took))
	} else {
		looks := plural(r.Requests[wiretap.GetChildren], "list")
		if n := r.Requests[wiretap.Create]; n > 0 {
			looks = plural(n, "create")
		}
		q.sum("%s released: %s, %s, 1 of them useful.", old.Name, plural(r.Notifications, "notification"), looks)
	}
	q.holder = next
	q.waiting = slices.DeleteFunc(q.waiting, func(a *actor) bool { return a == next })
	return r
}
