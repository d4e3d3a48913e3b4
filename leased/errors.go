package leased

import (
	"context"
	"errors"
	"fmt"
	pathpkg "path"
	"strings"

	"github.com/go-zookeeper/zk"
)

// The errors that callers ask for, with errors.Is.
var (
	ErrLocked  = errors.New("somebody else holds the lock")
	ErrNotHeld = errors.New("the context does not hold the lock: give Unlock what Lock returned, once for each Lock")
	ErrLost    = errors.New("the lock was lost: its session ended or was cut off, or its znode was deleted")
)

// check refuses what can never become a lock.
func check(ctx context.Context, s *Session, path string) error {
	switch {
	case ctx == nil:
		return errors.New("zklock: the context is nil: give context.Background(), or what Lock returned")
	case s == nil:
		return errors.New("zklock: the session is nil: give the one that Open returned")
	case !strings.HasPrefix(path, "/") || path == "/" || path != pathpkg.Clean(path):
		return fmt.Errorf("zklock: path %q: want an absolute path below the root, such as /locks/orders", path)
	}
	return nil
}

// unanswered tells that a request got no answer to what was asked: the connection failed or
// is being closed, or the session has ended, or has moved to another connection. Whether the
// servers did what was asked is not known, unless nothingDone knows it.
func unanswered(err error) bool {
	noAnswers := []error{
		zk.ErrConnectionClosed,
		zk.ErrNoServer,
		zk.ErrSessionExpired,
		zk.ErrSessionMoved,
		zk.ErrClosing,
	}
	for _, noAnswer := range noAnswers {
		if errors.Is(err, noAnswer) {
			return true
		}
	}
	return false
}

// nothingDone tells that the servers have not done what was asked, and will not: no server
// could be reached, so nothing was sent, or the server was too busy.
func nothingDone(err error) bool {
	return errors.Is(err, zk.ErrNoServer) || isThrottled(err)
}

// errTimeIsUp is the cause of a context that ends with TryLock's time. It is not ErrLocked,
// since a caller may end a context of its own with that cause: then TryLock's time is not up.
var errTimeIsUp = errors.New("the time of TryLock is up")

// whyEnded says why a wait is over: TryLock's time, or the caller's context.
func whyEnded(waiting context.Context) error {
	cause := context.Cause(waiting)
	if cause == errTimeIsUp {
		return ErrLocked
	}
	// The texts are compared, and not the errors: a context need not be one of Go's own, and
	// an error of a type that cannot be compared would panic.
	err := waiting.Err()
	noCauseGiven := cause.Error() == err.Error()
	if noCauseGiven {
		return err
	}
	return fmt.Errorf("%w: %w", err, cause)
}

// failed says what was being done to which path, why it failed, and where it
// helps, what to do. It returns nil for nil.
func failed(what, path string, err error) error {
	advice := ""
	switch {
	case err == nil:
		return nil
	case errors.Is(err, zk.ErrNoChildrenForEphemerals):
		advice = " (a znode on this path is ephemeral and can have no children: choose another path)"
	case unanswered(err): // the lock repeats such a request, unless the session is closed
		advice = " (the session is closed: open another one)"
	case errors.Is(err, zk.ErrNoAuth):
		advice = " (the session lacks the permission: look at the ACL there, or log in with AddAuth)"
	}
	return fmt.Errorf("zklock: %s %s: %w%s", what, path, err, advice)
}

// usedUp is said of a directory whose znodes have had all numbers.
const usedUp = "the directory's numbers are used up: delete it when nobody stands in it"
