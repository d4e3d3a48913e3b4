package sharedlock

import (
	"fmt"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"zklock/internal/check/lockcheck"
	"zklock/internal/check/zktest"
)

// open is Open as lockcheck calls it.
func open(servers []string, timeout time.Duration, dial zk.Dialer) (*Session, error) {
	return Open(servers, timeout, WithDialer(dial))
}

// subject is this step's lock.
var subject = lockcheck.OverSession("step 6", open, New, Token)

func init() { subject.NotHeld, subject.Lost = ErrNotHeld, ErrLost }

// as is the member as a reader or a writer.
func as(k kind, m *zktest.Member) *zktest.Member {
	if k == read {
		return m.Reader
	}
	return m
}

// queue brings clients to the lock one after the other, R to read and W to write.
// It returns when those in front hold the lock, and all others wait silently.
func queue(z *zktest.Zoo, lock lockcheck.Subject, letters string) (turns []*zktest.Turn) {
	var waiting []*zktest.Turn
	for i, letter := range letters {
		k := map[rune]kind{'R': read, 'W': write}[letter]
		turn := as(k, lock.Join(z, fmt.Sprintf("client %d (%s)", i+1, k))).Start()
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
