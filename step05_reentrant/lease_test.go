package reentrant

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

// dummy is a session without a server: so a test has the time in its hands.
func dummy(t *testing.T, timeout time.Duration) *Session {
	s := &Session{lease: lease{timeout: timeout}}
	s.ctx, s.end = context.WithCancel(context.Background())
	s.over = time.AfterFunc(time.Hour, s.expire)
	s.life, s.lose = context.WithCancelCause(context.Background())
	s.lose(ErrLost)
	t.Cleanup(func() {
		s.over.Stop()
		s.end()
	})
	return s
}

// FuzzLease makes writes. Each byte is one: how long after the last answer it is
// sent, and how long its own answer takes, in twentieths of the time-out. Some
// fail, and some are made while a lock is held. The lease must never last longer
// than the words in lease.go allow, and must be lost as soon as it is over.
func FuzzLease(f *testing.F) {
	f.Add([]byte{0x20, 0x20, 0x20, 0x20, 0x20}, uint64(0), ^uint64(0))
	f.Add([]byte{0x11, 0x31, 0x20, 0x42, 0x10, 0x91, 0x00, 0x20, 0x20}, uint64(0x10), uint64(0x1ff))
	f.Add([]byte{0xf0, 0x20, 0x2f, 0x20, 0x20}, uint64(2), uint64(0))
	f.Fuzz(func(t *testing.T, writes []byte, failed, held uint64) {
		synctest.Test(t, func(t *testing.T) {
			const timeout = 20 * time.Second
			s := dummy(t, timeout)
			var answers []proof
			var allowed time.Time
			for i, b := range writes[:min(len(writes), 64)] {
				time.Sleep(time.Duration(b>>4) * time.Second)
				w := proof{sent: time.Now()}
				s.holds.Store(int32(held >> i & 1))
				err := s.Prove(func() error {
					time.Sleep(time.Duration(b&15) * time.Second)
					return []error{nil, zk.ErrNoNode, zk.ErrConnectionClosed, zk.ErrNoAuth}[failed>>i&1*2+failed>>(i+1)&1]
				})
				w.answered = time.Now()
				if err == nil || errors.Is(err, zk.ErrNoNode) {
					if s.holds.Load() == 0 && w.sent.Add(timeout*2/5).After(allowed) {
						allowed = w.sent.Add(timeout * 2 / 5)
					}
					for j, second := range answers { // w is the third
						for _, first := range answers[:j] {
							halfTick := second.sent.Sub(first.answered) >= timeout/10
							if until := first.sent.Add(timeout * 9 / 10); halfTick && w.sent.After(second.answered) && until.After(allowed) {
								allowed = until
							}
						}
					}
					answers = append(answers, w)
				}
				require.False(t, s.until.After(allowed), "after write %d the lease lasts until %v, and may last until %v: %v", i, s.until, allowed, answers)
				synctest.Wait()
				require.Equal(t, time.Now().Before(s.until), s.life.Err() == nil, "whether there is a lease")
			}
		})
	})
}

// Three writes, a tenth after one another, make a lease that counts from the first.
// As long as a lock is held, so does the next with the second.
func TestALeaseCountsFromTheFirstOfThreeWrites(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const timeout = 20 * time.Second
		s := dummy(t, timeout)
		s.holds.Store(1)
		begun := time.Now()
		for i := range 5 {
			require.NoError(t, s.Prove(func() error { return nil }))
			if want := begun.Add(time.Duration(i-2)*timeout/10 + timeout*9/10); i >= 2 {
				require.Equal(t, want, s.until, "the lease after %d writes", i+1)
			} else {
				require.Error(t, s.life.Err(), "a lease after %d writes", i+1)
			}
			time.Sleep(timeout / 10)
		}
		s.granted(time.Now(), s.id, timeout)
		require.Equal(t, begun.Add(timeout*11/10), s.until, "the lease after the handshake of an old session")
		before := s.life
		s.granted(time.Now(), 7, timeout/2)
		require.ErrorIs(t, context.Cause(before), ErrLost, "the old session's lease")
		require.Equal(t, time.Now().Add(timeout*9/20), s.until, "a new session's lease")
		s.granted(time.Now(), 0, 0)
		require.ErrorIs(t, context.Cause(s.life), ErrLost, "an expired session's lease")
	})
}

// FuzzHandshake reads what a server sends, in pieces of any size. What is let
// through is what was sent, from a handshake that is ZooKeeper's on.
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
	f.Fuzz(func(t *testing.T, stream, cuts []byte) {
		s, sent := dummy(t, time.Second), stream
		line, server := net.Pipe()
		defer line.Close()
		go func() {
			defer server.Close()
			for _, c := range cuts {
				n := min(1+int(c), len(sent))
				_, _ = server.Write(sent[:n])
				sent = sent[n:]
			}
			_, _ = server.Write(sent)
		}()
		h := &handshake{Conn: line, in: bufio.NewReader(line), s: s, begun: time.Now()}
		through, err := io.ReadAll(h)
		if !h.answered {
			require.Empty(t, through)
			require.ErrorContains(t, err, "the handshake")
			return
		}
		require.NoError(t, err)
		require.Equal(t, string(stream), string(through), "what is let through")
		require.LessOrEqual(t, binary.BigEndian.Uint32(stream), uint32(1<<10), "a handshake's length")
		require.Equal(t, int64(binary.BigEndian.Uint64(stream[12:])), s.id)
		if s.id != 0 {
			require.Equal(t, time.Duration(int32(binary.BigEndian.Uint32(stream[8:])))*time.Millisecond, s.Timeout())
			require.Positive(t, s.Timeout(), "the client would panic")
		}
	})
}
