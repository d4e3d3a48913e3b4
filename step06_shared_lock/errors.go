package sharedlock

import (
	"context"
	"errors"
	"fmt"
	"net"
	pathpkg "path"
	"strconv"
	"strings"

	"github.com/go-zookeeper/zk"
)

// Callers check for these errors with errors.Is.
var (
	ErrLocked  = errors.New("another client is before us in the queue")
	ErrNotHeld = errors.New("the lock is not held: this hold was released, or is nil")
	ErrLost    = errors.New("the lock was lost: its connection broke or was closed, or its znode was deleted")
	ErrUpgrade = errors.New("the hold is a reader's: release it, and then lock to write")
)

// longestPath leaves room for the rest of a request. When a request is longer than 1 MB
// (jute.maxbuffer), the server closes the connection, and the lock would retry forever.
const longestPath = 500_000

// check refuses arguments with which Lock can never succeed.
func check(ctx context.Context, s *Session, path string) error {
	switch {
	case ctx == nil:
		return errors.New("zklock: the context is nil: pass context.Background() or a context with a deadline")
	case s == nil || s.conn == nil:
		return errors.New("zklock: the session is nil or empty: pass the one that Open returned")
	case len(path) > longestPath:
		return fmt.Errorf("zklock: path %.40q…: it has %d bytes, and the limit is %d", path, len(path), longestPath)
	case !strings.HasPrefix(path, "/") || path == "/" || path != pathpkg.Clean(path):
		return fmt.Errorf("zklock: path %.40q: want an absolute path below the root, such as /locks/orders", path)
	case s.isClosed():
		return fmt.Errorf("zklock: lock %.100s: the session is closed: open another one", path)
	case ctx.Err() != nil:
		return failed("lock", path, context.Cause(ctx))
	}
	return nil
}

// checkAddress refuses an address at which there can be no server, such as one with a path behind
// the port. The client library would try it, or an address that the library makes from it, forever.
func checkAddress(server string) error {
	host, port, _ := net.SplitHostPort(server) // both are empty if it fails
	hasHost := host != "" && host == strings.TrimSpace(host)
	number, err := strconv.ParseUint(port, 10, 16)
	hasPort := err == nil && number > 0
	if !hasHost || !hasPort {
		return fmt.Errorf("zklock: server %.100q: want host:port and nothing else, such as zk1:2181", server)
	}
	return nil
}

// noAnswers are the client library's errors for a request that got no answer, or that arrived over
// a connection which the session has left (zk.ErrSessionMoved).
var noAnswers = []error{
	zk.ErrConnectionClosed,
	zk.ErrNoServer,
	zk.ErrSessionExpired,
	zk.ErrSessionMoved,
	zk.ErrClosing,
}

// unanswered reports whether a request got no answer: then nobody knows whether the servers did it.
func unanswered(err error) bool {
	for _, noAnswer := range noAnswers {
		if errors.Is(err, noAnswer) {
			return true
		}
	}
	var broken net.Error // the connection broke while the request was being sent
	return errors.As(err, &broken)
}

// failed adds the operation and the path to err. For nil it returns nil.
func failed(what, path string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("zklock: %s %.100s: %w", what, path, err)
}
