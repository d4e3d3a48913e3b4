package plainnode

import (
	"context"
	"errors"
	"fmt"
	pathpkg "path"
	"strings"

	"github.com/go-zookeeper/zk"
)

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
	if err == nil {
		return nil
	}
	return fmt.Errorf("zklock: %s %s: %w%s", what, path, err, advice(err))
}

// advice is what to do about an error that does not say so itself.
func advice(err error) string {
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return " (it is not there: never created, deleted by somebody, or gone with its session)"
	case errors.Is(err, zk.ErrNodeExists): // a number was given twice: see step 2
		return " (" + usedUp + ")"
	case errors.Is(err, zk.ErrNotEmpty):
		return " (somebody has put a znode below it: delete that first)"
	case errors.Is(err, zk.ErrNoChildrenForEphemerals):
		return " (a znode on this path is ephemeral and can have no children: choose another path)"
	case errors.Is(err, zk.ErrNoAuth):
		return " (the session lacks the permission: look at the ACL there, or log in with AddAuth)"
	case errors.Is(err, zk.ErrNoServer):
		return " (no server answered: is the address right, does ZooKeeper run?)"
	case errors.Is(err, zk.ErrConnectionClosed):
		return " (nobody knows whether the server did it: look at the znodes there)"
	}
	return ""
}

// usedUp is said of a directory whose znodes have had all numbers.
const usedUp = "the directory's numbers are used up: delete it when nobody stands in it"
