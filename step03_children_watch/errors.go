package childrenwatch

import (
	"context"
	"errors"
	"fmt"
	pathpkg "path"
	"strings"

	"github.com/go-zookeeper/zk"
)

// longestPath leaves room for the rest of a request. When a request is longer than 1 MB
// (jute.maxbuffer), the server closes the connection, and the caller gets zk.ErrConnectionClosed.
const longestPath = 500_000

// check refuses arguments with which Lock can never succeed.
func check(ctx context.Context, conn *zk.Conn, path string) error {
	switch {
	case ctx == nil:
		return errors.New("zklock: the context is nil: pass context.Background() or a context with a deadline")
	case conn == nil:
		return errors.New("zklock: the connection is nil: pass the one that zk.Connect returned")
	case len(path) > longestPath:
		return fmt.Errorf("zklock: path %.40q…: it has %d bytes, and the limit is %d", path, len(path), longestPath)
	case !strings.HasPrefix(path, "/") || path == "/" || path != pathpkg.Clean(path):
		return fmt.Errorf("zklock: path %q: want an absolute path below the root, such as /locks/orders", path)
	}
	return nil
}

// failed adds the operation and the path to err. For nil it returns nil.
func failed(what, path string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("zklock: %s %s: %w", what, path, err)
}
