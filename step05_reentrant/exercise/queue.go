package exercise

import (
	"context"
	"errors"
	pathpkg "path"
	"slices"
	"strconv"
	"strings"

	"github.com/go-zookeeper/zk"
)

// This file is the lock's znode in ZooKeeper's queue.

// place is our znode's place in ZooKeeper's queue.
type place struct {
	node string
	// TODO 4: the life that the hold hangs on.
	// TODO 5: the fencing token.
}

// errGone says that our znode has left the queue without us.
var errGone = errors.New("our znode is gone")

// enqueue creates the znode.
//
// TODO 1: when the create was not answered, nobody knows whether there is a
// znode. Give it a name by which you know it again, _c_<guid>-lock-, and look
// for it until you know.
func (l *Lock) enqueue(ctx context.Context) (place, error) {
	node, err := create(l.s.conn, l.dir+"/lock-", zk.FlagEphemeralSequential)
	return place{node: node}, err
}

// wait returns when our znode is the first in ZooKeeper's queue.
func (l *Lock) wait(ctx context.Context, p *place) error {
	for {
		names, _, err := l.s.conn.Children(l.dir)
		if err != nil { // TODO 1: also when nobody knows?
			return err
		}
		if !slices.Contains(names, pathpkg.Base(p.node)) {
			return errGone
		}
		before := predecessor(names, p.node)
		if before == "" {
			return nil
		}
		if ctx.Err() != nil {
			return ended(ctx)
		}
		_, _, gone, err := l.s.conn.GetW(l.dir + "/" + before)
		if errors.Is(err, zk.ErrNoNode) {
			continue
		}
		if err != nil {
			return err
		}
		select {
		case <-gone: // or the session has ended: the next look tells
		case <-ctx.Done():
			return ended(ctx)
		}
	}
}

// remove deletes the znode.
//
// TODO 2: when the delete was not answered, nobody knows whether the znode is
// still there. Go on until it is certain that it is gone.
func (l *Lock) remove(p place) error {
	err := l.s.conn.Delete(p.node, -1)
	if errors.Is(err, zk.ErrNoNode) {
		return ErrLost
	}
	return err
}

// create makes a znode and returns its path, with the number that the server
// gave it. Parents are made where they are missing.
func create(conn *zk.Conn, path string, mode int32) (string, error) {
	made, err := conn.Create(path, nil, mode, zk.WorldACL(zk.PermAll))
	if !errors.Is(err, zk.ErrNoNode) {
		return made, err
	}
	_, err = create(conn, pathpkg.Dir(path), zk.FlagPersistent)
	if err != nil && !errors.Is(err, zk.ErrNodeExists) {
		return "", err
	}
	return create(conn, path, mode)
}

// predecessor names the znode right before mine in the queue, "" when mine is
// the first.
func predecessor(names []string, mine string) string {
	own, _ := number(mine)
	before, highest := "", 0
	for _, name := range names {
		if n, ok := number(name); ok && n < own && (before == "" || n > highest) {
			before, highest = name, n
		}
	}
	return before
}

// number reads a queue znode's number out of its name: what stands behind the
// last "lock-". Numbers are compared, never names; ok is false for a child that
// is not of the queue.
func number(name string) (n int, ok bool) {
	at := strings.LastIndex(name, "lock-")
	if at < 0 {
		return 0, false
	}
	n, err := strconv.Atoi(name[at+len("lock-"):])
	return n, err == nil
}
