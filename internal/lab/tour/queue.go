package tour

import (
	"slices"
	"strings"
	"time"

	"zklock/internal/lab/herd"
	"zklock/internal/lab/stage"
	"zklock/internal/property"
	"zklock/internal/wiretap"
	"zklock/internal/zktest"
)

// A Queue is what was measured for one lock: first with a single client, and then with a queue that
// grows.
type Queue struct {
	*scene
	Polls   bool           // its waiters poll, and are never notified
	Alone   wiretap.Counts // of a single client: one Lock and Unlock
	Arrival wiretap.Counts // of the first crowd, when one more client arrives
	Crowds  []Crowd        // the smallest first, also those that the scoreboard leaves out

	largest int             // size of the tour's largest crowd
	part    *zktest.Section // ends when all clients have left
	holder  *zktest.Turn
	waiting []*zktest.Turn
	idle    []*zktest.Member // have held the lock, and will call Lock again
}

// A Crowd is a number of clients that wait behind a holder. Each has a session of its own.
type Crowd struct {
	Waiters  int
	Waiting  wiretap.Counts // all their traffic in one Window of waiting
	Releases []Release      // each while the same number of clients waits

	// Bystander and Deaths are measured only for the largest crowd of some locks, and are nil otherwise.
	Bystander *Bystander
	Deaths    *wiretap.Counts // the traffic of the other waiters when every tenth one expires
}

// Window is how long the tour counts the traffic of a crowd that waits.
const Window = time.Second

// A Release is what one call of Unlock causes. It is counted until all clients wait silently again
// or, if they poll, until the next client holds the lock.
type Release struct {
	wiretap.Counts               // of all clients
	ToWaiters      int           // bytes that the server sent to the waiters
	Took           time.Duration // from the call of Unlock to the return of the next client's Lock
	Herd           herd.Release  // of the waiters
}

// How often the holder releases. The first crowd has more releases, because the page shows how long
// they take.
const (
	handOvers    = 20
	someReleases = 3
)

// sizes returns the sizes of the crowds, from ten to the largest.
func sizes(largest int) []int {
	all := slices.DeleteFunc([]int{10, 30, 100, 300, 1000}, func(n int) bool { return n >= largest })
	return append(all, largest)
}

// scored returns the sizes that the scoreboard shows. The others are measured only for the growth
// that the page shows.
func scored(largest int) []int {
	shown := []int{10, 100, largest}
	return slices.DeleteFunc(sizes(largest), func(n int) bool { return !slices.Contains(shown, n) })
}

// patience is how long the queues that are measured together may take.
const patience = 5 * time.Minute

// grown lists the locks whose growth the page shows.
var grown = []string{"3", "4", "5", "6", "leased"}

// measure lets the queues grow to the tour's largest crowd. Up to 100 waiters, the clients of all
// queues arrive and wait at the same time. Everything else is measured in one queue after the other.
func (t *Tour) measure(z zktest.T, queues []*Queue) {
	about := func(q *Queue, n int, what string) {
		t.say("%s, %s: %s clients: %s", q.Lock.Subject.Name, q.Lock.Title, stage.Number(n), what)
	}
	for _, n := range sizes(min(t.Largest, 100)) {
		each(z, queues, func(_ int, q *Queue) { q.grow(n) })
		if slices.Contains(scored(t.Largest), n) {
			t.say("%d clients wait at each lock", n)
			each(z, queues, func(_ int, q *Queue) { q.wait() })
		}
		for _, q := range queues {
			if n == 10 && !q.Polls {
				about(q, n, "one more arrives")
				q.arrival()
			}
			about(q, n, "the holder releases")
			q.releases()
		}
	}
	for _, q := range queues { // a larger crowd waits at one lock at a time
		for _, n := range sizes(t.Largest) {
			if n > 100 && q.mayBeLarge() {
				about(q, n, "they arrive, and the holder releases")
				q.grow(n)
				q.releases()
			}
		}
		if t.Largest > 100 && q.Lock.among("3", "4") {
			about(q, t.Largest, "a bystander reads and writes")
			q.bystander()
			about(q, t.Largest, "every tenth of them expires")
			q.fill(t.Largest)
			deaths := q.die(10)
			q.crowd().Deaths = &deaths
		}
		q.end()
		t.done.Add(queueJobs)
	}
}

// largestOfLeased is how many clients wait at leased at most: a thousand of its sessions would take 3 GB.
const largestOfLeased = 100

// mayBeLarge reports whether more than 100 clients wait at this lock. The polls of a large crowd would keep the server
// busy.
func (q *Queue) mayBeLarge() bool { return !q.Polls && !q.Lock.among("leased") }

// end lets all clients leave, and keeps only the measurements, because a thousand clients take more
// memory than everything else.
func (q *Queue) end() {
	q.leave()
	q.part.End()
	q.scene, q.part = &scene{Lock: q.Lock}, nil
	q.holder, q.waiting, q.idle = nil, nil, nil
}

// crowd returns the present crowd.
func (q *Queue) crowd() *Crowd { return &q.Crowds[len(q.Crowds)-1] }

// grow makes a crowd of n clients that wait.
func (q *Queue) grow(n int) {
	if len(q.Crowds) == 0 {
		q.alone()
		q.come(n)
		return
	}
	q.fill(n)
	q.Crowds = append(q.Crowds, Crowd{Waiters: n})
}

// alone counts what one Lock and Unlock cost when there is no other client.
func (q *Queue) alone() {
	m := q.Lock.Subject.JoinAs(q.Zoo, "the only client", property.Seat{Path: q.Root + "/alone"})
	for range 2 { // the first turn creates the directory; the second counts
		counted := q.CountClients(m.Client)
		m.Acquire().Release()
		q.Alone = counted()
	}
	m.Close()
}

// come brings the first crowd: a holder, and n clients that join the queue one after the other.
func (q *Queue) come(n int) {
	cast := q.cast(n + 1)
	q.phase("%d clients arrive", "来了 %d 个客户端", n+1)
	q.holder = q.takes(cast[0])
	q.waiting = q.lines(cast[1:]...)
	q.settles(q.waiting)
	_, q.Polls = q.waiting[0].Tap.Waiting(0)
	q.sum("%s holds the lock, %d wait.", "%s 持有锁，%d 个在等。", names(q.holder.Member), n)
	q.Crowds = append(q.Crowds, Crowd{Waiters: n})
}

// wait counts the traffic of the waiters for one Window, or for a fifth of it if a camera records.
func (q *Queue) wait() {
	window := Window
	if q.camera != nil {
		window /= 5
	}
	q.phase("a fifth of a second passes", "过了五分之一秒")
	counted, begin := counting(q.waiting...), time.Now()
	time.Sleep(window) // this does not wait for a state: the time itself is measured
	q.crowd().Waiting = counted(begin.Add(window))
	q.waited(q.crowd().Waiting)
}

// waited sums up the requests that the crowd has sent while it waited.
func (q *Queue) waited(c wiretap.Counts) {
	switch asked, n := c.All(), len(q.waiting); {
	case asked == 0:
		q.sumOfWindow("%d clients waited: 0 requests.", "%d 个客户端在等：它们发了 0 个请求。", n)
	case c.Writes() > 0:
		q.sumOfWindow(
			"%d clients waited: %s requests, every one a write that failed.",
			"%d 个客户端在等：它们发了 %s 个请求，全都是失败的写操作。",
			n, stage.Number(asked),
		)
	default:
		q.sumOfWindow(
			"%d clients waited: %s requests for the list, and nothing new in it.",
			"%d 个客户端在等：它们列了 %s 次目录，内容毫无变化。",
			n, stage.Number(asked),
		)
	}
}

// arrival lets one more client arrive. If no camera records, that client leaves again.
func (q *Queue) arrival() {
	newcomer := q.cast(1)[0]
	q.phase("%s also arrives", "%s 也来了", names(newcomer))
	counted := q.Count(q.waiting...)
	q.settles(append(q.lines(newcomer), q.waiting...))
	q.Barrier(q.holder.Client)
	q.Arrival = counted()
	if told := q.Arrival.Notifications; told == 0 {
		q.sum("%s arrived: no waiter was woken.", "%s 来了：没有等待者被唤醒。", names(newcomer))
	} else {
		q.sum(
			"%s arrived: %s to the waiting clients, %s, and it is nobody's turn.",
			"%s 来了：等待者一共收到 %s，%s，却没有轮到任何一个。",
			names(newcomer),
			plural(told, "%s notification", "%s notifications", "%s 条通知"),
			plural(q.Arrival.Requests[wiretap.GetChildren], "%s list", "%s lists", "列目录 %s 次"),
		)
	}
	if q.camera != nil {
		return
	}
	newcomer.Close() // it closes its session, because zk.Lock cannot give up
	q.members = q.members[:len(q.members)-1]
	q.settles(q.waiting)
}

// fill adds the clients that have held the lock, and new clients, until n wait. No client lists the
// queue before all have joined it: otherwise each arrival would wake the others, n×n/2 times in all.
func (q *Queue) fill(n int) {
	more := append(q.idle, q.cast(n-len(q.waiting)-len(q.idle))...)
	q.idle = nil
	var looks []*wiretap.Trap
	look := func(m *zktest.Member) {
		if !q.Polls {
			looks = append(looks, m.Tap.HoldRequest(wiretap.GetChildren, 1))
		}
	}
	for _, turn := range q.waiting {
		look(turn.Member)
	}
	for _, m := range more {
		look(m)
		q.waiting = append(q.waiting, q.asks(m))
	}
	for _, turn := range q.waiting[n-len(more):] {
		turn.Queued()
	}
	for _, look := range looks {
		look.Let()
	}
	slices.SortStableFunc(q.waiting, func(a, b *zktest.Turn) int { return strings.Compare(place(a), place(b)) })
	if !q.Polls {
		q.settles(q.waiting)
	}
}

// place returns the digits at the end of the name of a client's znode: they order the queue.
func place(t *zktest.Turn) string {
	znode := t.Znode()
	return znode[strings.LastIndex(znode, "-")+1:]
}

// die lets the session of every nth waiter expire, all at the same moment, and counts the traffic
// that this causes for the others.
func (q *Queue) die(nth int) wiretap.Counts {
	var dead []*zktest.Member
	var alive []*zktest.Turn
	for i, turn := range q.waiting {
		if i%nth == nth/2 {
			dead = append(dead, turn.Member)
		} else {
			alive = append(alive, turn)
		}
	}
	counted := q.Count(alive...)
	q.expire(dead...)
	q.settles(alive)
	return counted()
}

// releases lets the holder release several times. Each time the same number of clients waits.
func (q *Queue) releases() {
	rounds := handOvers
	if len(q.Crowds) > 1 {
		rounds = someReleases
	}
	for range rounds {
		q.fill(q.crowd().Waiters)
		q.crowd().Releases = append(q.crowd().Releases, q.release())
	}
}

// release runs a phase in which the holder releases and the next client acquires the lock.
func (q *Queue) release() Release {
	old := names(q.holder.Member)
	q.phase("%s releases", "%s 释放锁", old)
	all, waiters := counting(append(q.waiting, q.holder)...), counting(q.waiting...)
	caused := herd.Watch(q.waiting)
	begin := time.Now()
	q.handOver()
	quiet := q.holder.Came()
	took := quiet.Sub(begin)
	if !q.Polls {
		q.settles(q.waiting)
		q.Barrier(q.holder.Client)
		quiet = time.Now()
	}
	r := Release{all(quiet), waiters(quiet).Received, took, caused()}
	next := names(q.holder.Member)
	if q.Polls {
		q.sum("%s released: no client was notified; %d requests later %s found out by polling.",
			"%s 释放了锁：没有客户端收到通知；又发了 %d 个轮询请求以后，%s 才得知。",
			old, r.All()-1, next)
		return r
	}
	looks := plural(r.Requests[wiretap.GetChildren], "%s list", "%s lists", "列目录 %s 次")
	if n := r.Requests[wiretap.Create]; n > 0 {
		looks = plural(n, "%s create", "%s creates", "create %s 次")
	}
	notifications := plural(r.Notifications, "%s notification", "%s notifications", "%s 条通知")
	q.sum("%s released: %s, %s. Only %s got the lock.", "%s 释放了锁：%s，%s。只有%s 拿到了锁。", old, notifications, looks, next)
	return r
}

// handOver lets the holder release, and waits only until the next client holds the lock.
func (q *Queue) handOver() {
	q.holder.Release()
	q.idle = append(q.idle, q.holder.Member)
	q.holder, q.waiting = q.served(q.waiting)
}
