package sharedlock

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	pathpkg "path"
	"slices"
	"strconv"
	"strings"

	"github.com/go-zookeeper/zk"
)

// This file is a znode in ZooKeeper's queue, as in step 5. New is what its name
// says, read or write, and whom it waits for.

// The kinds of znodes, as they stand in the names.
const (
	read  = "__READ__"
	write = "__WRIT__"
)

// place is our znode's place in ZooKeeper's queue.
type place struct {
	node  string
	owner int64 // the session with which the znode goes
	token int64 // once it is the first: the fencing token,
	life  *life // and what the tenure hangs on
}

// errGone says that our znode has left the queue without us.
var errGone = errors.New("our znode is gone")

// enqueue creates the znode. Its name has a guid, by which it is found when the
// reply to the create was lost. enqueue returns only when it knows whether
// there is a znode.
func (l *RWLock) enqueue(ctx context.Context, kind string) (place, error) {
	guid := make([]byte, 16)
	_, _ = rand.Read(guid) // never fails
	name := fmt.Sprintf("_c_%x-%s", guid, kind)
	for {
		before, _ := l.s.now()
		node, err := create(l.s.conn, l.dir+"/"+name, zk.FlagEphemeralSequential)
		after, _ := l.s.now()
		if err == nil && before.id == after.id {
			return place{node: node, owner: after.id}, nil
		}
		if err != nil && !unanswered(err) {
			return place{}, err
		}
		p, err := l.find(name)
		if err != nil || p.node != "" {
			return p, err
		}
		if ctx.Err() != nil { // there is none, and none is wanted
			return place{}, ctx.Err()
		}
	}
}

// find looks for the znode of a create without an answer. The sync comes first:
// the server that we are connected to now may lag behind the one that carried
// out the create. A znode of another session is not ours: it goes when that
// session does.
func (l *RWLock) find(name string) (place, error) {
	for l.s.ctx.Err() == nil {
		life, _ := l.s.now()
		_, err := l.s.conn.Sync(l.dir)
		var names []string
		if err == nil {
			names, _, err = l.s.conn.Children(l.dir)
		}
		for _, n := range names {
			if !strings.HasPrefix(n, name) || err != nil {
				continue
			}
			var stat *zk.Stat
			_, stat, err = l.s.conn.Get(l.dir + "/" + n)
			if err == nil && stat.EphemeralOwner == life.id {
				return place{node: l.dir + "/" + n, owner: life.id}, nil
			}
			if errors.Is(err, zk.ErrNoNode) { // it went with its session: look at the next
				err = nil
			}
		}
		if !unanswered(err) {
			if errors.Is(err, zk.ErrNoNode) {
				err = nil
			}
			return place{}, err
		}
	}
	return place{}, errClosed
}

// wait returns when nobody whom our znode waits for is before it in ZooKeeper's
// queue. With once it returns ErrLocked instead of waiting.
func (l *RWLock) wait(ctx context.Context, p *place, kind string, once bool) error {
	for {
		life := l.s.renewed(ctx) // before the list: a loss after it counts
		names, stat, err := l.s.conn.Children(l.dir)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case unanswered(err):
			continue
		case err != nil && !errors.Is(err, zk.ErrNoNode):
			return err
		case life.id != p.owner || !slices.Contains(names, pathpkg.Base(p.node)):
			return errGone
		}
		before := predecessor(names, p.node, kind)
		if before == "" && life.ctx.Err() != nil {
			continue // the line was down for too long, and is back
		}
		if before == "" {
			// Pzxid is the transaction that last changed the directory's children.
			// The holder before us took its own from a list that still had its
			// znode: the delete came later, and this number is at least the delete's.
			p.token, p.life = stat.Pzxid, life
			return nil
		}
		if once {
			return ErrLocked
		}
		_, _, gone, err := l.s.conn.GetW(l.dir + "/" + before)
		if unanswered(err) || errors.Is(err, zk.ErrNoNode) {
			continue
		}
		if err != nil {
			return err
		}
		select {
		case <-gone: // or the session has ended: the next look tells
		case <-ctx.Done():
		}
	}
}

// remove deletes the znode, and goes on until it is certain that it is gone.
// It returns ErrLost when it was gone before, or went with its session. tried
// says that a delete was sent before, to which no answer came.
func (l *RWLock) remove(p place, tried bool) error {
	for {
		err, sure := l.tryRemove(p, tried)
		if sure {
			return err
		}
		tried = true
	}
}

// tryRemove sends one delete. sure says that the answer leaves no doubt.
func (l *RWLock) tryRemove(p place, tried bool) (err error, sure bool) {
	if l.s.ctx.Err() != nil { // the znode goes with the session
		return ErrLost, true
	}
	err = l.s.conn.Delete(p.node, -1)
	life, _ := l.s.now() // after the answer, which may be a new session's
	switch {
	case err == nil:
		return nil, true
	case life.id != p.owner || l.s.ctx.Err() != nil:
		return ErrLost, true
	case unanswered(err):
		return err, false
	case errors.Is(err, zk.ErrNoNode) && tried: // the first reply was lost
		return nil, true
	case errors.Is(err, zk.ErrNoNode):
		return ErrLost, true
	}
	return err, true
}

// create makes a znode and returns its path, with the number that the server
// gave it. Parents are made only when the server says that they are missing:
// asking for them each time would be a write each time.
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

// predecessor names the znode that mine waits for: the last writer before a
// reader, the last of all before a writer; "" when there is none.
func predecessor(names []string, mine, kind string) string {
	own, _, _ := number(mine)
	before, highest := "", 0
	for _, name := range names {
		n, other, ok := number(name)
		if ok && n < own && (before == "" || n > highest) && (kind == write || other == write) {
			before, highest = name, n
		}
	}
	return before
}

// number reads a queue znode's number and kind out of its name. Numbers are
// compared, never names; ok is false for a child that is not of the queue.
func number(name string) (n int, kind string, ok bool) {
	for _, kind := range []string{read, write} {
		if at := strings.LastIndex(name, kind); at >= 0 {
			if n, err := strconv.Atoi(name[at+len(kind):]); err == nil {
				return n, kind, true
			}
		}
	}
	return 0, "", false
}
