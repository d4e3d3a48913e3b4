package sharedlock

import (
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"zklock/internal/lockcheck"
	"zklock/internal/zktest"
)

func TestMain(m *testing.M) { zktest.Main(m) }

var subject = lockcheck.OverSession("step 6", func(servers []string, timeout time.Duration, dial zk.Dialer) (*Session, error) {
	return Open(servers, timeout, WithDialer(dial))
}, New, Token)

func TestProperties(t *testing.T) {
	lockcheck.Holds(t, subject, lockcheck.Properties...)
}
