//lint:file-ignore U1000 given: your lock will use it

package exercise

import (
	"context"
	"errors"
	"fmt"
	pathpkg "path"
	"strings"

	"github.com/go-zookeeper/zk"
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

// unanswered tells an error that comes from the connection: nobody knows
// whether the server did what was asked. Any other is the server's own answer.
func unanswered(err error) bool {
	for _, lost := range []error{zk.ErrConnectionClosed, zk.ErrNoServer, zk.ErrSessionExpired, zk.ErrSessionMoved, zk.ErrClosing} {
		if errors.Is(err, lost) {
			return true
		}
	}
	return false
}

// ended says that ctx has ended, and why, if that was said: a lost hold is one.
func ended(ctx context.Context) error {
	if cause := context.Cause(ctx); cause != ctx.Err() {
		return fmt.Errorf("%w: %w", ctx.Err(), cause)
	}
	return ctx.Err()
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
