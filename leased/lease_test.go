package leased

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"
)

// dummy returns a session without a server. So a test controls the time.
func dummy(t *testing.T, timeout time.Duration) *Session {
	s := newSession(timeout)
	t.Cleanup(func() { s.markClosed(byClose) })
	return s
}

// lasts returns when the lease ends, and whether a hold depends on it.
func (s *Session) lasts() (until time.Time, holds bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.leases.present.until, len(s.leases.present.users) > 0
}

// held makes something depend on the session's lease, or nothing, without any renewal by the session.
func (s *Session) held(is bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.leases.present.users)
	if is && !s.leases.present.isOver() {
		s.leases.present.users[&leaseUser{lose: func(*LostError) {}}] = true
	}
}

// FuzzLease makes writes. Each byte is one write: how long after the last answer it is sent, and how long its
// own answer takes, in twentieths of the timeout. Some writes fail, some are made while a lock is held, and
// before some a ping is answered. The lease must never last longer than the comment in lease.go allows. Holds
// must be lost as soon as the lease is over.
func FuzzLease(f *testing.F) {
	f.Add([]byte{0x20, 0x20, 0x20, 0x20, 0x20}, uint64(0), ^uint64(0), uint64(0))
	f.Add([]byte{0x11, 0x31, 0x20, 0x42, 0x10, 0x91, 0x00, 0x20, 0x20}, uint64(0x10), uint64(0x1ff), uint64(0x55))
	f.Add([]byte{0xf0, 0x20, 0x2f, 0x20, 0x20}, uint64(2), uint64(0), ^uint64(0))
	f.Fuzz(func(t *testing.T, writes []byte, failed, held, pinged uint64) {
		synctest.Test(t, func(t *testing.T) {
			const timeout = 20 * time.Second
			s := dummy(t, timeout)
			var answers, pings []proof
			var allowed time.Time
			for i, b := range writes[:min(len(writes), 64)] {
				pause := time.Duration(b>>4) * time.Second
				ping := proof{sent: time.Now()}
				time.Sleep(pause / 2)
				if pinged>>i&1 == 1 {
					ping.answered = time.Now()
					s.pingAnswered(ping)
					pings = append(pings, ping)
				}
				time.Sleep(pause / 2)
				w := proof{sent: time.Now()}
				s.held(held>>i&1 == 1)
				holds := false
				err := s.write(func() error {
					time.Sleep(time.Duration(b&15) * time.Second)
					synctest.Wait() // the lease may end at this moment, and its holds are lost
					_, holds = s.lasts()
					answers := []error{nil, zk.ErrNoNode, zk.ErrConnectionClosed, zk.ErrNoAuth}
					return answers[failed>>i&1*2+failed>>(i+1)&1]
				})
				w.answered = time.Now()
				if err == nil || errors.Is(err, zk.ErrNoNode) {
					for _, ping := range pings {
						aTick := w.sent.Sub(ping.answered) >= timeout/5
						if until := ping.sent.Add(timeout * 9 / 10); !holds && aTick && until.After(allowed) {
							allowed = until
						}
					}
					for j, second := range answers { // w is write 3
						for _, first := range answers[:j] {
							aTick := second.sent.Sub(first.answered) >= timeout/5
							until := first.sent.Add(timeout * 9 / 10)
							if aTick && w.sent.After(second.answered) && until.After(allowed) {
								allowed = until
							}
						}
					}
					answers = append(answers, w)
				}
				synctest.Wait()
				until, _ := s.lasts()
				require.False(
					t,
					until.After(allowed),
					"after write %d the lease lasts until %v, and may last until %v: %v",
					i,
					until,
					allowed,
					answers,
				)
				require.True(
					t,
					until.IsZero() || time.Now().Before(until),
					"a lease until %v is over, and was not ended",
					until,
				)
			}
		})
	})
}

// While nothing is held, one write is enough, a tick after the answer to a ping.
func TestOneWriteCountsFromAPingThatWasAnsweredATickBefore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const timeout = 20 * time.Second
		const tick = timeout / 5
		s := dummy(t, timeout)
		write := func() (until time.Time) {
			require.NoError(t, s.write(func() error { return nil }))
			until, _ = s.lasts()
			return until
		}
		first := time.Now()
		time.Sleep(time.Second)
		s.pingAnswered(proof{sent: first, answered: time.Now()})
		time.Sleep(tick - time.Nanosecond)
		require.Zero(t, write(), "the lease after a write that was sent too soon")
		time.Sleep(time.Nanosecond)
		s.pingAnswered(proof{sent: time.Now(), answered: time.Now()})
		want := first.Add(timeout * 9 / 10)
		require.Equal(t, want, write(), "the lease counts from the ping before the last")
		s.held(true)
		time.Sleep(tick)
		require.Equal(t, want, write(), "the lease of a session that holds something: one write is not enough")
	})
}

// Three writes, a tick apart, make a lease that counts from the first one.
func TestALeaseCountsFromTheSendingOfTheFirstOfThreeWrites(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const timeout = 20 * time.Second
		s := dummy(t, timeout)
		answered := func() error { return nil }
		begun := time.Now()
		for i := range 5 {
			require.NoError(t, s.write(answered))
			s.held(true)
			want := time.Time{}
			if i >= 2 {
				want = begun.Add(time.Duration(i-2)*timeout/5 + timeout*9/10)
			}
			until, _ := s.lasts()
			require.Equal(t, want, until, "the lease after %d writes", i+1)
			time.Sleep(timeout/5 - time.Nanosecond)
			s.held(true)
			time.Sleep(time.Nanosecond)
		}
		s.granted(nil, time.Now(), s.leases.id, timeout)
		until, _ := s.lasts()
		require.Equal(t, begun.Add(timeout*13/10), until, "the lease after the handshake of an old session")
		s.granted(nil, time.Now(), 7, timeout/2)
		until, holds := s.lasts()
		require.False(t, holds, "what hung on the old session's lease")
		require.Equal(t, time.Now().Add(timeout*9/20), until, "a new session's lease")
		s.granted(nil, time.Now(), 7, timeout)
		require.Equal(t, timeout, s.Timeout(), "when the session resumes, a server may grant another timeout")
		s.granted(nil, time.Now(), 0, 0)
		until, _ = s.lasts()
		require.Zero(t, until, "an expired session's lease")
	})
}

// Write 3 has to be sent after the answer to write 2. Otherwise it may reach the leader before the report.
func TestAWriteSentBeforeTheAnswerToWrite2IsNoWrite3(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const timeout = 20 * time.Second
		s, begun := dummy(t, timeout), time.Now()
		after := func(seconds int) time.Time { return begun.Add(time.Duration(seconds) * time.Second) }
		s.count(0, proof{sent: after(0), answered: after(0)})
		s.count(0, proof{sent: after(4), answered: after(6)})
		for _, sent := range []int{5, 6} {
			s.count(0, proof{sent: after(sent), answered: after(8)})
			until, _ := s.lasts()
			require.Zero(t, until, "the lease, if the third write was sent after %d s", sent)
		}
		s.count(0, proof{sent: after(7), answered: after(8)})
		until, _ := s.lasts()
		require.Equal(t, begun.Add(timeout*9/10), until)
	})
}

// A session that is closed gets no lease any more, whatever is answered.
func TestNoLeaseBeginsInAClosedSession(t *testing.T) {
	t.Parallel()
	s := dummy(t, time.Hour)
	s.markClosed(byClose)
	s.granted(nil, time.Now(), 7, time.Hour)
	until, _ := s.lasts()
	require.Zero(t, until)
}

// The lease ends just before the hold begins. The hold is lost, and counted.
func TestAHoldThatIsLostWhenItBeginsIsCounted(t *testing.T) {
	t.Parallel()
	s := dummy(t, time.Hour)
	hold := newHold(NewMutex(s, "/a").q, place{node: "/a/lock-0", lease: &lease{}})
	hold.begin()
	require.ErrorIs(t, context.Cause(hold.Context(t.Context())), ErrLost)
	require.Equal(t, map[Reason]uint64{ReasonLeaseOver: 1}, s.Stats().Lost)
}

// deadlines is a connection on which nothing arrives. It keeps the deadline for that.
type deadlines struct {
	net.Conn
	read time.Time
}

func (c *deadlines) Read([]byte) (int, error) { return 0, io.EOF }

func (c *deadlines) RemoteAddr() net.Addr { return &net.TCPAddr{} }

func (c *deadlines) SetReadDeadline(at time.Time) error {
	c.read = at
	return nil
}

// A handshake has as long as any other request, and at least a second.
func TestHowLongAHandshakeMayTake(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for timeout, want := range map[time.Duration]time.Duration{
			6 * time.Second:      4 * time.Second,
			3 * time.Millisecond: time.Second,
		} {
			c := &deadlines{}
			w := &wire{Conn: c, in: bufio.NewReader(c), s: dummy(t, timeout)}
			require.ErrorIs(t, w.readHandshake(), io.EOF)
			require.Equal(t, time.Now().Add(want), c.read, "with a timeout of %v", timeout)
		}
	})
}

// model/README.md says how much of the lease is left, at least, when a pause begins at any moment of a hold, if
// answers arrive at once. This test measures it.
func TestHowMuchIsLeftOfTheLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const timeout = 60 * time.Second
		const tick, betweenPings = timeout / 5, timeout / 3
		inFirstTick, inSecondTick, later := timeout, timeout, timeout
		for afterPing := time.Duration(0); afterPing < betweenPings; afterPing += time.Second / 2 {
			s := dummy(t, timeout)
			s.work.Go(func() {
				for !s.isClosed() {
					s.pingAnswered(proof{sent: time.Now(), answered: time.Now()})
					select {
					case <-time.After(betweenPings):
					case <-s.done:
					}
				}
			})
			write := func() { // answered at once
				require.NoError(t, s.write(func() error { return nil }))
				time.Sleep(time.Nanosecond)
			}
			time.Sleep(2*betweenPings + afterPing - time.Millisecond)
			write() // the create
			s.held(true)
			begun, l := time.Now(), s.presentLease()
			for time.Since(begun) < 3*timeout && s.isUsedWhenAWriteIsDue(l) {
				until, _ := s.lasts()
				left := time.Until(until)
				switch age := time.Since(begun); {
				case age <= tick:
					inFirstTick = min(inFirstTick, left)
				case age <= 2*tick+time.Millisecond:
					inSecondTick = min(inSecondTick, left)
				default:
					later = min(later, left)
				}
				write()
				if s.runsShort(l) {
					write()
				}
			}
			require.False(t, s.isOver(l), "the lease of a hold that no pause has met")
			s.markClosed(byClose)
			s.work.Wait()
		}
		require.Equal(t, timeout/6, inFirstTick.Round(10*time.Millisecond), "in the first tick of a hold")
		require.Equal(t, timeout/5, inSecondTick.Round(10*time.Millisecond), "in the second one")
		require.Equal(t, timeout*3/10, later.Round(10*time.Millisecond), "later")
	})
}

// presentLease returns the lease of a hold that begins now.
func (s *Session) presentLease() *lease {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.leases.present
}

// A waiter without a lease checks twice a tick whether there is one. That is seldom, but often enough that it
// does not wait much longer than it has to.
func TestAWaiterLooksTwiceATick(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const timeout = 20 * time.Second
		s, begun := dummy(t, timeout), time.Now()
		s.waitHalfATick(context.Background())
		require.Equal(t, timeout/10, time.Since(begun))

		s.waiting.asking = make(chan struct{}) // a write that is not answered
		for name, wait := range map[string]func(context.Context){
			"until it looks again":     s.waitHalfATick,
			"for another call's write": s.askTogether,
		} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			begun = time.Now()
			wait(ctx)
			require.Equal(t, time.Second, time.Since(begun), "a call whose context ends waits %s", name)
			cancel()
		}

		go func() {
			time.Sleep(time.Second)
			s.markClosed(byClose)
		}()
		begun = time.Now()
		s.waitHalfATick(context.Background())
		require.Equal(t, time.Second, time.Since(begun), "the session is closed")
	})
}

// FuzzHandshake sends a stream in pieces of any size, as a server might. If it begins with a valid handshake
// of ZooKeeper, the wire passes it on unchanged, up to a frame that is too short for a reply.
func FuzzHandshake(f *testing.F) {
	frame := func(words ...uint32) (b []byte) {
		for _, w := range words {
			b = binary.BigEndian.AppendUint32(b, w)
		}
		return b
	}
	f.Add(frame(36, 0, 10_000, 0, 7, 16, 0, 0, 0, 0, 16, 1, 0, 9, 0), []byte{4, 36, 1})
	f.Add(frame(36, 0, 0, 0, 7), []byte{7, 5})
	f.Add(frame(36, 0, 1<<31, 0, 7), []byte{})
	f.Add(frame(36, 0, 0, 0, 0, 16, 0, 0, 0, 0), []byte{})
	f.Add(frame(4, 1<<31, 0, 0, 7), []byte{43})
	f.Add(frame(1<<31-1, 0, 1000, 0, 7), []byte{})
	f.Add(frame(1<<32-1, 0, 1000, 0, 7), []byte{})
	f.Add([]byte("HTTP/1.1 400 Bad Request"), []byte{})
	f.Add(frame(16, 0, 0, 0, 0, 16), []byte{4, 36, 1}) // it ends after a length
	f.Fuzz(func(t *testing.T, stream, cuts []byte) {
		s, sent := dummy(t, time.Second), stream
		near, server := net.Pipe()
		defer near.Close()
		go func() {
			defer server.Close()
			for _, c := range cuts {
				n := min(1+int(c), len(sent))
				_, _ = server.Write(sent[:n])
				sent = sent[n:]
			}
			_, _ = server.Write(sent)
		}()
		h := &wire{Conn: near, in: bufio.NewReader(near), s: s, begun: time.Now()}
		through, err := io.ReadAll(h)
		if !h.answered {
			require.Empty(t, through)
			require.ErrorContains(t, err, "the handshake")
			return
		}
		require.Equal(t, string(stream[:passes(stream)]), string(through), "what is let through")
		require.LessOrEqual(t, binary.BigEndian.Uint32(stream), uint32(1<<10), "a handshake's length")
		require.Equal(t, int64(binary.BigEndian.Uint64(stream[12:])), s.leases.id)
		if s.leases.id != 0 {
			require.Equal(t, time.Duration(int32(binary.BigEndian.Uint32(stream[8:])))*time.Millisecond, s.Timeout())
			require.Positive(t, s.Timeout(), "the client would panic")
		}
	})
}

// passes returns how many bytes of a stream the wire passes on when the handshake is valid: all frames, the
// last one as far as it has arrived, up to a reply that is too short to be one. The length and the xid of a
// reply are passed on together, because the wire looks at both.
func passes(stream []byte) (n int) {
	const length, xid, shortest = 4, 4, 16
	for {
		rest := stream[n:]
		if len(rest) < length || n > 0 && len(rest) < length+xid {
			return n
		}
		size := int32(binary.BigEndian.Uint32(rest))
		if size < shortest && n > 0 {
			return n
		}
		n += min(length+int(size), len(rest))
	}
}
