package property

import (
	"context"
	"fmt"
	"time"

	"zklock/internal/wiretap"
	"zklock/internal/zktest"
)

// A holds the lock for two session timeouts, while B waits. Then A releases, and B holds the lock
// for one more. If this goes wrong, and the machine paused or a connection broke meanwhile, it says
// nothing about the lock. Then the story runs again, with new clients whose timeout is twice as
// long.
var LongHold = New(
	text("a long hold and a long wait both succeed", "长时间持锁或等待都能正常结束"),
	text("during long work the hold is lost, or the next in the queue is never served",
		"工作时间一长，锁就丢了，或者下一个客户端永远等不到锁"),
	text("two session timeouts have passed: what has kept the two sessions alive, and what has your lock sent meanwhile?",
		"过去的时间已经是会话超时的两倍：两个会话靠什么维持？这段时间里，你的锁又发了什么请求？"),
	func(s *Story) {
		var l longHold
		var wrong string
		var longest time.Duration // in which nothing happened
		timeout := zktest.MortalTimeout
		for try := range 3 {
			seat := Seat{Timeout: timeout, Path: fmt.Sprintf("%s-%d", s.path, try)}
			a, b := s.JoinAs("A", seat), s.JoinAs("B", seat)
			beat := s.beat()
			held, waiting := a.Acquire(), s.queue(b)[0]
			wrong = s.apart(func(part *Story) {
				l = longHold{Story: part, timeout: timeout}
				l.tell(held, waiting)
			})
			if s.Ctx.Err() != nil { // the part was cut short
				s.Fatalf("there was no time left for the long hold: %v", context.Cause(s.Ctx))
			}
			still := beat.end()
			accident := s.accident()
			a.Close()
			b.Close()
			s.members = nil // a next try has new ones
			if wrong == "" {
				s.Holds(
					"A held for two session timeouts and sent %d requests; B sent %d while it waited, "+
						"and %d while it held the lock for one more",
					l.sent[0],
					l.sent[1],
					l.sent[2],
				)
			}
			survived := timeout / 8 // a right lock keeps its hold if nothing happens for this long
			isBusy := still >= survived || accident != ""
			s.FailsIf(!isBusy, "the connection was healthy, and %s", wrong)
			longest = max(longest, still)
			timeout *= 2
		}
		s.Fatalf(
			"a connection broke, or this machine paused (for %v at the longest), so this says nothing about the lock: "+
				"%s",
			longest,
			wrong,
		)
	})

// longHold is one run of the story of LongHold.
type longHold struct {
	*Story
	timeout time.Duration // of each session
	sent    []int         // requests: by A, by B as a waiter, by B as a holder
}

// A beat measures for how long this process or the server has paused since before the hold began.
// It sends a write from time to time, as a holder that renews a lease does.
type beat struct {
	stop  context.CancelFunc
	still chan time.Duration // the longest time in which nothing happened
}

func (s *Story) beat() beat {
	ctx, stop := context.WithCancel(s.Ctx)
	s.Cleanup(stop)
	b := beat{stop, make(chan time.Duration, 1)}
	observer, nobody := s.Observer(), s.Root+"/nobody"
	go func() {
		var still time.Duration
		for ctx.Err() == nil {
			begun := time.Now()
			select {
			case <-ctx.Done():
			case <-time.After(20 * time.Millisecond):
				_ = observer.Delete(nobody, -1)
			}
			still = max(still, time.Since(begun))
		}
		b.still <- still
	}()
	return b
}

// end returns the longest time in which nothing happened.
func (b beat) end() time.Duration {
	b.stop()
	return <-b.still
}

func (l *longHold) tell(held, waiting *zktest.Turn) {
	polls := waiting.Waits() == zktest.Polling // as some locks do by design
	mark := waiting.Tap.Mark()
	l.keeps(held, 2, waiting.Returned)
	l.mayHaveSent(waiting, mark, 2, polls)

	mark = waiting.Tap.Mark()
	l.goBy(1, waiting.Returned)
	l.FailsIf(!waiting.Returned(),
		"%s's turn came after two session timeouts; one session timeout later it still waited, "+
			"and had sent %d requests",
		waiting.Name, wiretap.Count(waiting.Tap.Since(mark)).All())
	l.FailsIf(
		waiting.Err() != nil,
		"%s's turn came after two session timeouts, and its Lock returned: %v",
		waiting.Name,
		waiting.Err(),
	)
	l.keeps(waiting, 1, func() bool { return false })
}

// keeps checks a holder that releases after some session timeouts.
func (l *longHold) keeps(holder *zktest.Turn, timeouts int, otherIsIn func() bool) {
	mark, lost := holder.Tap.Mark(), holder.Context().Err
	passed := l.goBy(timeouts, func() bool { return lost() != nil || otherIsIn() })
	l.FailsIf(
		lost() != nil,
		"%s lost the lock after %.1f session timeouts",
		holder.Name,
		passed,
	)
	l.FailsIf(
		otherIsIn(),
		"after %.1f session timeouts another client got the lock while %s held it",
		passed,
		holder.Name,
	)
	l.mayHaveSent(holder, mark, timeouts, false)
	if err := holder.Unlock(); err != nil {
		l.Fails(
			"after %d session timeouts %s's Unlock returned: %v",
			timeouts,
			holder.Name,
			err,
		)
	}
}

// goBy waits for some session timeouts, or until something has happened.
func (l *longHold) goBy(timeouts int, happened func() bool) (passed float64) {
	begin := time.Now()
	l.Await("session timeouts to go by", func() bool { // a wait for time to pass, not for a state
		l.Moved() // here it is right that a client sends nothing
		passed = time.Since(begin).Seconds() / l.timeout.Seconds()
		return happened() || passed > float64(timeouts)
	})
	return passed
}

// mayHaveSent counts the requests of a client in some session timeouts, and fails the story
// if the client spins.
func (l *longHold) mayHaveSent(c *zktest.Turn, mark, timeouts int, polls bool) {
	most := int(l.timeout / (40 * time.Millisecond)) // requests in a session timeout
	// In a session timeout a client with a ticker sends the same request no more often than this. On a
	// slow machine it sends them without a pause.
	often := int(l.timeout / (20 * time.Millisecond))
	n := wiretap.Count(c.Tap.Since(mark)).All()
	l.sent = append(l.sent, n)
	l.FailsIf(n > timeouts*most && !polls, "%s sent %d requests in %d session timeouts", c.Name, n, timeouts)
	if again, times := wiretap.Unpaused(c.Tap.Since(mark)); polls {
		l.FailsIf(
			again > times/4 && times > timeouts*often,
			"%s sent the same request %d times in %d session timeouts, %d of them without a pause since the time before: "+
				"it does not pause between requests",
			c.Name,
			times,
			timeouts,
			again,
		)
	}
}
