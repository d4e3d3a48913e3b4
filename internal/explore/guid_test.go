package explore_test

import (
	"context"
	"errors"
	"slices"
	"strconv"

	"github.com/go-zookeeper/zk"

	"zklock/internal/property"
)

// guid is a lock in the shape of Curator's InterProcessMutex: a guid in the znode's name, by
// which the client finds it when the reply to its create is lost; each request once more when
// the connection breaks; a delete that is repeated until it is known to be done. Curator does
// the last in the background, and tells a listener of a lost session; here nobody is notified.
type guid struct {
	conn *zk.Conn
	dir  string
	node string
}

func newGuid(conn *zk.Conn, path string) *guid { return &guid{conn: conn, dir: path} }

func (l *guid) Lock(ctx context.Context) error {
	node, err := l.conn.CreateProtectedEphemeralSequential(l.dir+"/lock-", nil, zk.WorldACL(zk.PermAll))
	if err != nil {
		return err
	}
	if err := l.wait(ctx, node); err != nil {
		return errors.Join(err, l.remove(node))
	}
	l.node = node
	return nil
}

func (l *guid) Unlock() error { return l.remove(l.node) }

// wait returns when the znode is the first.
func (l *guid) wait(ctx context.Context, node string) error {
	for {
		before, err := l.before(node)
		if err != nil || before == "" {
			return err
		}
		var gone <-chan zk.Event
		err = again(func() (err error) {
			_, _, gone, err = l.conn.GetW(before)
			return err
		})
		if errors.Is(err, zk.ErrNoNode) {
			continue
		}
		if err != nil {
			return err
		}
		select {
		case <-gone: // or the session has ended: then our znode has, too
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// before is the path of the znode before ours; "": ours is the first.
func (l *guid) before(node string) (path string, err error) {
	var names []string
	err = again(func() (err error) {
		names, _, err = l.conn.Children(l.dir)
		return err
	})
	if err != nil {
		return "", err
	}
	slices.SortFunc(names, func(a, b string) int { return number(a) - number(b) })
	i := slices.Index(names, node[len(l.dir)+1:])
	switch {
	case i < 0:
		return "", errors.New("our znode has gone")
	case i == 0:
		return "", nil
	}
	return l.dir + "/" + names[i-1], nil
}

func number(name string) int {
	n, _ := strconv.Atoi(name[len(name)-10:])
	return n
}

// remove deletes the znode; when it has gone, an earlier delete has done it.
func (l *guid) remove(node string) error {
	err := again(func() error { return l.conn.Delete(node, -1) })
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	return err
}

// again does something once more when the connection has been lost.
func again(do func() error) (err error) {
	for range 3 {
		if err = do(); !errors.Is(err, zk.ErrConnectionClosed) {
			return err
		}
	}
	return err
}

// curators is what stands in the table.
var curators = property.Over("Curator's shape", newGuid)
