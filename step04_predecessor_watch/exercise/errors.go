package predecessorwatch

import (
	"context"
	"errors"
	"fmt"
	pathpkg "path"
	"strings"

	"github.com/go-zookeeper/zk"
)

// longestPath leaves room for the rest of a request. The server reads at most 1 MB of one
// (jute.maxbuffer). At more it hangs up, and the caller would hear of a closed connection.
const longestPath = 500_000

// check refuses what can never become a lock.
func check(ctx context.Context, conn *zk.Conn, path string) error {
	switch {
	case ctx == nil:
		return errors.New("zklock: the context is nil: give context.Background(), or one with a deadline")
	case conn == nil:
		return errors.New("zklock: the connection is nil: give the one that zk.Connect returned")
	case len(path) > longestPath:
		return fmt.Errorf("zklock: path %.40q…: it has %d bytes, and %d are the most", path, len(path), longestPath)
	case !strings.HasPrefix(path, "/") || path == "/" || path != pathpkg.Clean(path):
		return fmt.Errorf("zklock: path %q: want an absolute path below the root, such as /locks/orders", path)
	}
	return nil
}

// failed says what was being done to which path, and why it failed. It returns nil for nil.
func failed(what, path string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("zklock: %s %s: %w", what, path, err)
}
