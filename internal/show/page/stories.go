package page

import (
	"fmt"
	"time"

	"zklock/internal/check/zktest"
	"zklock/internal/server/wiretap"
	"zklock/internal/upkeep/words"
)

// A story is something that happens to a lock, told with each of some steps.
type story struct {
	ID    string     `json:"id"`
	Title words.Text `json:"title"`
	Watch words.Text `json:"watch"` // what to look out for
	Steps []string   `json:"steps"`
	Pair  []string   `json:"pair"` // the two steps that are best seen side by side
	tell  func(*recorder)
}

// stories are all stories, in the order of the chapters, and of the page. Those without a teller are
// parts of what is told of a queue.
var stories = []story{
	{"crash", words.Of("The holder crashes"), words.Of("Who deletes the znode of a client that is no more?"),
		[]string{"1", "2", "4"}, []string{"1", "2"}, tellCrash},
	{
		"stranger",
		words.Of("A stranger releases"),
		words.Of("Client 2 does not hold the lock and calls Unlock. What happens to client 0, who holds it?"),
		[]string{"1", "2"},
		[]string{"1", "2"},
		tellStranger,
	},
	{"wait", words.Of("Ten wait"), words.Of("What does it cost to wait while nothing happens?"),
		[]string{"1", "1w", "2", "3", "4"}, []string{"2", "3"}, nil},
	{
		"release",
		words.Of("A release, ten waiting"),
		words.Of("How many clients does one release wake, and how many of them have something to do?"),
		[]string{"1", "1w", "2", "3", "4", "5", "6"},
		[]string{"3", "4"},
		nil,
	},
	{
		"few",
		words.Of("A release, three waiting"),
		words.Of("The same with fewer, so that each frame can bear its name: who says what to whom?"),
		[]string{"3", "4"},
		[]string{"3", "4"},
		tellFew,
	},
	{"arrival", words.Of("One more comes"), words.Of("Whom does it concern that somebody joins the end of the line?"),
		[]string{"3", "4"}, []string{"3", "4"}, nil},
	{
		"deaths",
		words.Of("Many die at once"),
		words.Of("Three of the ten who wait expire in one moment. Whom does it concern, and how often?"),
		[]string{"3", "4"},
		[]string{"3", "4"},
		tellDeaths,
	},
	{"crowd", words.Text{}, words.Of("The same as with ten, and a larger crowd. What has grown, and what has not?"),
		[]string{"3", "4"}, []string{"3", "4"}, nil},
	{
		"death",
		words.Of("A waiter dies"),
		words.Of("Client 2 is told that the znode before its own is gone. Is it client 2's turn?"),
		[]string{"3", "4"},
		[]string{"4"},
		tellDeath,
	},
	{
		"lost",
		words.Of("A reply gets lost"),
		words.Of("The server makes the znode, and client 0 never hears of it. Whom does client 0 wait for then?"),
		[]string{"4", "5"},
		[]string{"4", "5"},
		tellLostReply,
	},
	{
		"cut",
		words.Of("The holder is cut off"),
		words.Of("When does client 0 know that it no longer holds the lock, and when is client 1 let in?"),
		[]string{"4", "5"},
		[]string{"4", "5"},
		tellCutOff,
	},
	{
		"shared",
		words.Of("A writer among readers"),
		words.Of("Four want to read and one wants to write. Who has to wait for whom?"),
		[]string{"5", "6"},
		[]string{"5", "6"},
		tellShared,
	},
}

// tellFew tells of a release with three waiting.
func tellFew(r *recorder) {
	q := &Queue{recorder: r}
	q.come(3)
	q.release()
}

// Plural says how many there are, of which one is said otherwise.
func Plural(n int, one, several string) words.Text {
	if n == 1 {
		return words.Of(one, number(n))
	}
	return words.Of(several, number(n))
}

// number writes 1000 as 1,000.
func number(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", number(n/1000), n%1000)
}

// writes counts the requests that the servers must agree on, whether they
// succeed or not.
func writes(c wiretap.Counts) int {
	return c.Requests[wiretap.Create] +
		c.Requests[wiretap.Delete] +
		c.Requests[wiretap.SetData] +
		c.Requests[wiretap.Multi]
}

// tellCrash tells of a holder that crashes while two wait.
func tellCrash(r *recorder) {
	cast := r.cast(3)
	r.phase("3 clients come")
	r.takes(cast[0])
	waiting := r.lines(cast[1:]...)
	r.sum("client 0 holds the lock, 2 wait.")
	r.phase("client 0 crashes")
	r.expire(cast[0])
	if len(r.Names(r.dir)) == 0 { // there is no queue: this is the lock itself
		r.window()
		r.sum("The server has ended client 0's session, and the znode is still there: nobody will ever get the lock.")
		return
	}
	next, waiting := r.served(waiting)
	r.settles(waiting)
	r.sum("The server has ended client 0's session and deleted its znode: %s holds the lock.", next.Name)
}

// tellStranger tells of an Unlock by a client that does not hold the lock.
func tellStranger(r *recorder) {
	cast := r.cast(3)
	r.phase("client 0 locks, client 1 waits")
	r.takes(cast[0])
	next := r.lines(cast[1])[0]
	r.sum("client 0 holds the lock, client 1 waits.")
	r.phase("client 2 calls Unlock")
	if err := cast[2].Unlock(r.Ctx); err != nil {
		next.StillWaits()
		r.sum("client 2 has no znode to delete, and was told so. Client 0 holds the lock.")
		return
	}
	next.Acquired()
	r.sum("client 2 deleted the znode that client 0 had made: client 1 was let in beside client 0.")
}

// tellDeath tells of a waiter that dies in the line.
func tellDeath(r *recorder) {
	cast := r.cast(3)
	r.phase("3 clients come")
	holder := r.takes(cast[0])
	line := r.lines(cast[1:]...)
	r.settles(line)
	r.sum("client 0 holds the lock, 2 wait.")
	r.phase("client 1 crashes")
	r.expire(cast[1])
	line[1].MustWait("client 0")
	r.Barrier(cast[0].Client)
	r.sum("client 2 was woken by the death of client 1, looked again, and waits on.")
	r.phase("client 0 releases")
	holder.Release()
	line[1].Acquired()
	r.sum("client 0 released: now it is client 2's turn.")
}

// tellDeaths tells of several waiters that die in the line in one moment.
func tellDeaths(r *recorder) {
	q := &Queue{recorder: r}
	q.come(10)
	r.phase("clients 2, 5 and 8 crash")
	c := q.die(3)
	r.sum(
		"3 sessions expired: %s, %s, and it is nobody's turn.",
		Plural(c.Notifications, "%s notification", "%s notifications"),
		Plural(c.Requests[wiretap.GetChildren], "%s list", "%s lists"),
	)
}

// tellLostReply tells of a create whose reply never arrives.
func tellLostReply(r *recorder) {
	cast := r.cast(2)
	r.phase("the reply to a create gets lost")
	lost := cast[0].Tap.LoseReply(wiretap.Create, 1)
	unlucky := r.asks(cast[0])
	zktest.AwaitChan(r.Zoo, "the reply to be lost", lost.Sprung())
	if unlucky.Waits() == zktest.Returned && unlucky.Err() != nil {
		r.sum("client 0 got an error, and does not know that it has a znode.")
		r.phase("client 0 asks again, and client 1 comes")
		r.lines(cast...)
		r.sum("client 0 waits for its own first znode, and client 1 for client 0: nobody holds the lock.")
		return
	}
	unlucky.Acquired()
	r.sum("client 0 looked for its znode, knew it by the mark in its name, and holds the lock.")
	r.phase("client 1 comes")
	r.lines(cast[1])
	r.sum("client 0 holds the lock with one znode, client 1 waits.")
}

// tellCutOff tells of a holder that can no longer reach the server.
func tellCutOff(r *recorder) {
	cast := []*zktest.Member{r.join("client 0", zktest.MortalTimeout), r.join("client 1", zktest.SessionTimeout)}
	r.phase("client 0 locks, client 1 waits")
	holder := r.takes(cast[0])
	next := r.lines(cast[1])[0]
	r.sum("client 0 holds the lock, client 1 waits.")
	r.phase("client 0 is cut off")
	holder.Crash()
	holder.Becomes(cutOff)
	cut, knows := time.Now(), 0.0
	if holder.Token != nil {
		zktest.AwaitChan(r.Zoo, "client 0 to be told", holder.Held().Done())
		holder.Becomes(told)
		knows = time.Since(cut).Seconds()
	}
	r.AwaitExpiry(holder.Client)
	r.ended(cut, holder.Member)
	next.Acquired()
	in := since(next.Member).Sub(cut).Seconds()
	if holder.Token == nil {
		r.sum("client 1 was let in after %.1f s, and client 0 has not been told: two are inside.", in)
	} else {
		r.sum(
			"client 0 knew after %.1f s that it could not rely on the lock; client 1 was let in after %.1f s.",
			knows,
			in,
		)
	}
}

// tellShared tells of two readers, a writer, and two more readers. Where the
// lock cannot be shared, they are five clients.
func tellShared(r *recorder) {
	var turns []*zktest.Turn
	for _, name := range []string{"reader 1", "reader 2", "writer", "reader 3", "reader 4"} {
		r.join(name, zktest.SessionTimeout)
	}
	shares := r.members[0].Reader != nil
	r.phase("five come")
	for _, m := range r.members {
		if shares && m.Name != "writer" {
			m = m.Reader
		}
		turn := r.asks(m)
		turn.Waits()
		turns = append(turns, turn)
	}
	if shares {
		r.sum("readers 1 and 2 read together; the writer waits for both, readers 3 and 4 for the writer.")
	} else {
		r.sum("reader 1 holds the lock; each of the others waits for the one before.")
	}
	r.phase("readers 1 and 2 are done")
	writer := turns[2]
	counted := r.Count(writer)
	turns[0].Release()
	turns[1].Release()
	writer.Acquired()
	r.settles(turns[3:])
	notifications := Plural(counted().Notifications, "%s notification", "%s notifications")
	r.sum("the writer has the lock, alone; %s told it so.", notifications)
	r.phase("the writer is done")
	writer.Release()
	turns[3].Acquired()
	if turns[4].Waits() == zktest.Returned {
		turns[4].Acquired()
		r.sum("readers 3 and 4 read together.")
		return
	}
	r.sum("reader 3 holds the lock, and reader 4 waits for it, though neither of them writes.")
}
