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

// ErrNotHeld is what Unlock answers when this client does not hold the lock.
var ErrNotHeld = errors.New("the lock is not held by this client: each Unlock needs a Lock before it")

// check refuses what can never become a lock.
func check(ctx context.Context, conn *zk.Conn, path string) error {
	switch {
	case ctx == nil:
		return errors.New("zklock: the context is nil: give context.Background(), or one with a deadline")
	case conn == nil:
		return errors.New("zklock: the connection is nil: give the one that zk.Connect returned")
	case !strings.HasPrefix(path, "/") || path == "/" || path != pathpkg.Clean(path):
		return fmt.Errorf("zklock: path %q: want an absolute path below the root, such as /locks/orders", path)
	}
	return nil
}

// failed says what was being done to which path, why it failed, and where it
// helps, what to do. It returns nil for nil.
func failed(what, path string, err error) error {
	advice := ""
	switch {
	case err == nil:
		return nil
	case errors.Is(err, zk.ErrNoNode):
		advice = " (it is not there: never created, deleted by somebody, or gone with its session)"
	case errors.Is(err, zk.ErrNoChildrenForEphemerals):
		advice = " (a znode on this path is ephemeral and can have no children: choose another path)"
	case errors.Is(err, zk.ErrNoAuth):
		advice = " (the session lacks the permission: look at the ACL there, or log in with AddAuth)"
	case errors.Is(err, zk.ErrNoServer):
		advice = " (no server answered: is the address right, does ZooKeeper run?)"
	case errors.Is(err, zk.ErrConnectionClosed):
		advice = " (nobody knows whether the server did it: look at the znodes there)"
	}
	return fmt.Errorf("zklock: %s %s: %w%s", what, path, err, advice)
}
