package sharedlock

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"zklock/internal/lockcheck"
	"zklock/internal/zktest"
)

// open is Open as lockcheck calls it.
func open(servers []string, timeout time.Duration, dial zk.Dialer) (*Session, error) {
	return Open(servers, timeout, WithDialer(dial))
}

// subject is this step's lock.
var subject = lockcheck.OverSession("step 6", open, New, Token)

// as is the member as a reader or a writer.
func as(kind string, m *zktest.Member) *zktest.Member {
	if kind == read {
		return m.Reader
	}
	return m
}

// eachKind runs a test once for readers and once for writers.
func eachKind(t *testing.T, test func(t *testing.T, z *zktest.Zoo, kind string)) {
	t.Parallel()
	for _, kind := range []string{read, write} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			test(t, zktest.New(t), kind)
		})
	}
}

// queue brings clients to the lock one after the other, R to read and W to write.
// It returns when those in front hold the lock, and all others wait silently.
func queue(z *zktest.Zoo, lock lockcheck.Subject, letters string) (turns []*zktest.Turn) {
	var waiting []*zktest.Turn
	for i, letter := range letters {
		kind := map[rune]string{'R': read, 'W': write}[letter]
		turn := as(kind, lock.Join(z, fmt.Sprintf("client %d (%s)", i+1, kind))).Start()
		turn.Queued()
		if i == 0 || !strings.Contains(letters[:i+1], "W") {
			turn.Acquired()
		} else {
			waiting = append(waiting, turn)
		}
		turns = append(turns, turn)
	}
	z.Settle(waiting...)
	return turns
}

// againAndAgain lets a member take the lock, work inside, and release it, until it
// has had enough turns.
func againAndAgain(z *zktest.Zoo, m *zktest.Member, enough func(had int) bool, work func(context.Context) error) *zktest.Turn {
	return z.Go(m.Client, func(ctx context.Context) error {
		for had := 0; !enough(had); had++ {
			held, err := m.Lock(ctx)
			if err == nil {
				err = errors.Join(work(ctx), m.Unlock(held))
			}
			if err != nil {
				return fmt.Errorf("at turn %d: %w", had+1, err)
			}
		}
		return nil
	})
}

// tokenIn is the token of a hold, 0 if there is none.
func tokenIn(held context.Context) int64 {
	n, _ := Token(held)
	return n
}
