package page

import (
	"fmt"
	"time"

	"zklock/internal/wiretap"
	"zklock/internal/zktest"
)

// A story is something that happens to a lock, told with each of some steps.
type story struct {
	ID    string   `json:"id"`
	Title string   `json:"title"`
	Watch string   `json:"watch"` // what to look out for
	Steps []string `json:"steps"`
	Pair  []string `json:"pair"` // the two steps that are best seen side by side
	tell  func(*recorder)

	expires bool // it waits for a session to expire, most of the time
}

// stories are all stories, in the order of the page. In the last one so many
// clients wait.
func stories(crowd int) []story {
	all := []string{"1", "2", "3", "4", "5", "6"}
	list := []story{
		{"release", "A release, ten waiting", "How many clients does one release wake, and how many of them have something to do?",
			all, []string{"3", "4"}, releaseAmong(10), false},
		{"wait", "Ten wait", "What does it cost to wait while nothing happens?",
			all[:4], []string{"2", "3"}, tellWait, false},
		{"arrival", "One more comes", "Whom does it concern that somebody joins the end of the line?",
			[]string{"3", "4"}, []string{"3", "4"}, tellArrival, false},
		{"crash", "The holder crashes", "Who deletes the znode of a client that is no more?",
			[]string{"1", "2", "4"}, []string{"1", "2"}, tellCrash, true},
		{"stranger", "A stranger releases", "Client 2 does not hold the lock and calls Unlock. What happens to client 0, who holds it?",
			[]string{"1", "2"}, []string{"1", "2"}, tellStranger, false},
		{"death", "A waiter dies", "Client 2 is told that the znode before its own is gone. Is it client 2's turn?",
			[]string{"3", "4"}, []string{"4"}, tellDeath, true},
		{"lost", "A reply gets lost", "The server makes the znode, and client 0 never hears of it. Whom does client 0 wait for then?",
			[]string{"4", "5"}, []string{"4", "5"}, tellLostReply, false},
		{"cut", "The holder is cut off", "When does client 0 know that it no longer holds the lock, and when is client 1 let in?",
			[]string{"4", "5"}, []string{"4", "5"}, tellCutOff, true},
		{"shared", "A writer among readers", "Four want to read and one wants to write. Who has to wait for whom?",
			[]string{"5", "6"}, []string{"5", "6"}, tellShared, false},
		{"crowd", "A release, " + number(crowd) + " waiting", "The same as with ten, and a larger crowd. What has grown, and what has not?",
			[]string{"3", "4"}, []string{"3", "4"}, releaseAmong(crowd), false},
	}
	if crowd <= 10 { // then it is the first story
		list = list[:len(list)-1]
	}
	return list
}

// releaseAmong tells of a holder that releases while n clients wait.
func releaseAmong(n int) func(*recorder) {
	return func(r *recorder) {
		cast := r.cast(n + 1)
		holder, waiting := cast[0], cast[1:]
		if n <= 10 {
			r.begin()
			r.phase("%d clients come", n+1)
			holder.takes()
			r.lines(waiting...)
		} else {
			holder.takes()
			r.crowds(waiting...)
			r.begin()
		}
		r.release(holder, waiting)
	}
}

// release is the phase in which the holder releases and the next is let in.
func (r *recorder) release(holder *actor, waiting []*actor) {
	polls := waiting[0].attempt.Waits() == zktest.Polling
	r.settles()
	if len(r.phases) > 0 {
		r.sum("%s holds the lock, %d wait.", holder.Name, len(waiting))
	}
	r.phase("%s releases", holder.Name)
	begin := time.Now()
	holder.releases()
	next := r.served(waiting)
	took := next.since(begin)
	if polls {
		c := r.counts()
		asked := c.All() - 1
		r.sum("%s released: nobody was told; %d requests later %s found out by asking, after %s ms.",
			holder.Name, asked, next.Name, ms(took))
		return
	}
	r.settles()
	r.Barrier(next.Client)
	c := r.counts()
	r.sum("%s released: %s, %s, 1 of them useful.", holder.Name,
		plural(c.Notifications, "notification"), plural(c.Requests[wiretap.GetChildren], "list"))
}

// since is how long it took until the client held the lock.
func (a *actor) since(begin time.Time) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.moods[len(a.moods)-1].at.Sub(begin)
}

func plural(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprintf("%s %s", number(n), thing)
}

// number writes 1000 as 1,000.
func number(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", number(n/1000), n%1000)
}

func ms(d time.Duration) string { return fmt.Sprintf("%.1f", float64(d.Microseconds())/1000) }

// tellWait tells of ten clients that wait for a fifth of a second.
func tellWait(r *recorder) {
	cast := r.cast(11)
	r.begin()
	r.phase("11 clients come")
	cast[0].takes()
	r.lines(cast[1:]...)
	r.settles()
	r.sum("client 0 holds the lock, 10 wait.")
	r.phase("a fifth of a second goes by")
	time.Sleep(200 * time.Millisecond) // not a wait for a state: the time is what is told of
	c := r.counts()
	switch asked := c.All(); {
	case asked == 0:
		r.sum("10 clients waited: 0 requests, 0 bytes.")
	case writes(c) > 0:
		r.sum("10 clients waited: %s requests, every one a write that failed.", number(asked))
	default:
		r.sum("10 clients waited: %s requests, %s bytes of lists, and no news in them.", number(asked), number(c.Received))
	}
	r.window()
}

func writes(c wiretap.Counts) int { return c.Requests[wiretap.Create] + c.Requests[wiretap.Delete] }

// tellArrival tells of one more client that joins a line of ten.
func tellArrival(r *recorder) {
	cast := r.cast(12)
	r.begin()
	r.phase("11 clients come")
	cast[0].takes()
	r.lines(cast[1:11]...)
	r.settles()
	r.sum("client 0 holds the lock, 10 wait.")
	r.phase("client 11 comes, too")
	r.lines(cast[11])
	r.settles()
	r.Barrier(cast[0].Client)
	c := r.counts(cast[1:11]...)
	switch c.Notifications {
	case 0:
		r.sum("client 11 came: no waiter was woken.")
	default:
		r.sum("client 11 came: %s to those who wait, %s, none of them useful.",
			plural(c.Notifications, "notification"), plural(c.Requests[wiretap.GetChildren], "list"))
	}
}

// tellCrash tells of a holder that crashes while two wait.
func tellCrash(r *recorder) {
	holder := r.join("client 0", zktest.MortalTimeout)
	waiting := r.cast(2)
	r.begin()
	r.phase("3 clients come")
	holder.takes()
	r.lines(waiting...)
	r.sum("client 0 holds the lock, 2 wait.")
	r.phase("client 0 crashes")
	crash := holder.crashes(crashed)
	r.expires(holder, crash)
	if len(r.Names(r.dir)) == 0 { // there is no queue: this is the lock itself
		r.window()
		r.sum("The server has ended client 0's session, and the znode is still there: nobody will ever get the lock.")
		return
	}
	next := r.served(waiting)
	r.settles()
	r.sum("The server has ended client 0's session and deleted its znode: %s holds the lock.", next.Name)
}

// tellStranger tells of an Unlock by a client that does not hold the lock.
func tellStranger(r *recorder) {
	cast := r.cast(3)
	r.begin()
	r.phase("client 0 locks, client 1 waits")
	cast[0].takes()
	r.lines(cast[1])
	r.sum("client 0 holds the lock, client 1 waits.")
	r.phase("client 2 calls Unlock")
	if err := cast[2].Unlock(); err != nil {
		cast[1].attempt.StillWaits()
		r.sum("client 2 has no znode to delete, and was told so. Client 0 holds the lock.")
		return
	}
	cast[1].attempt.Acquired()
	r.sum("client 2 deleted the znode that client 0 had made: client 1 was let in beside client 0.")
}

// tellDeath tells of a waiter that dies in the line.
func tellDeath(r *recorder) {
	holder := r.cast(1)[0]
	dies := r.join("client 1", zktest.MortalTimeout)
	last := r.cast(1)[0]
	r.begin()
	r.phase("3 clients come")
	holder.takes()
	r.lines(dies, last)
	r.settles()
	r.sum("client 0 holds the lock, 2 wait.")
	r.phase("client 1 crashes")
	r.expires(dies, dies.crashes(crashed))
	if last.attempt.StillWaits() == zktest.Returned {
		r.fail("%s was let in when a waiter died", last.Name)
	}
	r.Barrier(holder.Client)
	r.sum("client 2 was woken by the death of client 1, looked again, and waits on.")
	r.phase("client 0 releases")
	holder.releases()
	last.attempt.Acquired()
	r.sum("client 0 released: now it is client 2's turn.")
}

// tellLostReply tells of a create whose reply never arrives.
func tellLostReply(r *recorder) {
	cast := r.cast(2)
	r.begin()
	r.phase("the reply to a create gets lost")
	lost := cast[0].Tap.LoseReply(wiretap.Create, 1)
	cast[0].asks()
	zktest.AwaitChan(r.Zoo, "the reply to be lost", lost.Sprung())
	gaveUp := cast[0].attempt.Waits() == zktest.Returned && cast[0].attempt.Err() != nil
	if gaveUp {
		r.sum("client 0 got an error, and does not know that it has a znode.")
		r.phase("client 0 asks again, and client 1 comes")
		r.lines(cast...)
		r.sum("client 0 waits for its own first znode, and client 1 for client 0: nobody holds the lock.")
		return
	}
	cast[0].attempt.Acquired()
	r.sum("client 0 looked for its znode, knew it by the mark in its name, and holds the lock.")
	r.phase("client 1 comes")
	r.lines(cast[1])
	r.sum("client 0 holds the lock with one znode, client 1 waits.")
}

// tellCutOff tells of a holder that can no longer reach the server.
func tellCutOff(r *recorder) {
	holder := r.join("client 0", zktest.MortalTimeout)
	next := r.cast(1)[0]
	r.begin()
	r.phase("client 0 locks, client 1 waits")
	holder.takes()
	r.lines(next)
	r.sum("client 0 holds the lock, client 1 waits.")
	r.phase("client 0 is cut off")
	cut := holder.crashes(cutOff)
	knows := make(chan time.Duration, 1)
	if holder.Lost != nil {
		r.t.Cleanup(func() { <-knows })
		lost := holder.Lost()
		go func() {
			defer close(knows)
			select {
			case <-lost:
				holder.becomes(told)
				knows <- time.Since(cut)
			case <-r.Ctx.Done():
			}
		}()
	}
	r.expires(holder, cut)
	next.attempt.Acquired()
	if holder.Lost == nil {
		r.sum("client 1 was let in after %.1f s, and client 0 has not been told: two are inside.", next.since(cut).Seconds())
		return
	}
	r.sum("client 0 knew after %.1f s that it could not rely on the lock; client 1 was let in after %.1f s.",
		(<-knows).Seconds(), next.since(cut).Seconds())
}

// tellShared tells of two readers, a writer, and two more readers. Where the
// lock cannot be shared, they are five clients.
func tellShared(r *recorder) {
	var cast []*actor
	for _, name := range []string{"reader 1", "reader 2", "writer", "reader 3", "reader 4"} {
		cast = append(cast, r.join(name, zktest.SessionTimeout))
	}
	r1, r2, writer, r3, r4 := cast[0], cast[1], cast[2], cast[3], cast[4]
	shares := r1.RLock != nil
	asks := func(a *actor) *actor {
		if shares && a != writer {
			return a.asksWith(a.RLock, reads)
		}
		return a.asks()
	}
	ends := func(a *actor) {
		if shares && a != writer {
			a.releasesWith(a.RUnlock)
			return
		}
		a.releases()
	}
	r.begin()
	r.phase("five come")
	for _, a := range cast {
		asks(a).attempt.Waits()
	}
	if shares {
		r.sum("readers 1 and 2 read together; the writer waits for both, readers 3 and 4 for the writer.")
	} else {
		r.sum("reader 1 holds the lock; each of the others waits for the one before.")
	}
	r.phase("readers 1 and 2 are done")
	r1.attempt.Acquired()
	ends(r1)
	r2.attempt.Acquired()
	ends(r2)
	writer.attempt.Acquired()
	r.settles()
	c := r.counts(writer)
	r.sum("the writer has the lock, alone; %s told it so.", plural(c.Notifications, "notification"))
	r.phase("the writer is done")
	ends(writer)
	r3.attempt.Acquired()
	if r4.attempt.Waits() == zktest.Returned {
		r4.attempt.Acquired()
		r.sum("readers 3 and 4 read together.")
		return
	}
	r.sum("reader 3 holds the lock, and reader 4 waits for it, though neither of them writes.")
}
