//lint:file-ignore U1000 given: your lock will use it

package exercise

import (
	"context"
	"errors"
	"fmt"
	pathpkg "path"
	"strings"

	"github.com/go-zookeeper/zk"

	sharedlock "zklock/step06_shared_lock"
)

// Session is the step's own.
type Session = sharedlock.Session

// The errors that callers ask for, with errors.Is: the step's own, too.
var (
	ErrLocked  = sharedlock.ErrLocked
	ErrNotHeld = sharedlock.ErrNotHeld
	ErrLost    = sharedlock.ErrLost
	ErrUpgrade = sharedlock.ErrUpgrade
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

// ended says why a wait is over: TryLock's time, or the caller's context.
func ended(waiting context.Context) error {
	cause := context.Cause(waiting)
	if cause == ErrLocked || cause == waiting.Err() {
		return cause
	}
	return fmt.Errorf("%w: %w", waiting.Err(), cause)
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
	case errors.Is(err, zk.ErrNoAuth):
		advice = " (the session lacks the permission: look at the ACL there, or log in with AddAuth)"
	}
	return fmt.Errorf("zklock: %s %s: %w%s", what, path, err, advice)
}
