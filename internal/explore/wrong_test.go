package explore_test

import (
	"context"
	"crypto/rand"
	"errors"
	pathpkg "path"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"zklock/internal/property"
	childrenwatch "zklock/step03_children_watch"
)

// wrongLocks are made to break an invariant each.
var wrongLocks = []property.Subject{
	property.Over("open", newOpen),
	property.Over("stays", newStays),
	property.Over("fails", newFails),
	property.Over("hangs", newHangs),
	property.Over("asks", newAsks),
	property.Over("gap", newGap),
	property.Over("dice", newDice),
	property.Over("rests", newRests),
	property.Over("mine 3", newByChance),
	property.Over("mine 4", newAside),
}

// open lets everybody in.
type open struct{}

func newOpen(*zk.Conn, string) open { return open{} }

func (open) Lock(context.Context) error { return nil }
func (open) Unlock() error              { return nil }

// stays keeps its znode. The others do not mind.
type stays struct {
	conn *zk.Conn
	path string
}

func newStays(conn *zk.Conn, path string) stays { return stays{conn, path} }

func (l stays) Lock(context.Context) error {
	_, err := l.conn.Create(l.path+"/lock-", nil, zk.FlagEphemeralSequential, zk.WorldACL(zk.PermAll))
	return err
}

func (l stays) Unlock() error { return nil }

// fails lets nobody in.
type fails struct{ open }

func newFails(*zk.Conn, string) fails { return fails{} }

func (fails) Lock(context.Context) error { return errors.New("it does not want to") }

// hangs in Unlock.
type hangs struct{ stays }

func newHangs(conn *zk.Conn, path string) hangs { return hangs{newStays(conn, path)} }

func (hangs) Unlock() error { select {} }

// asks asks again and again.
type asks struct{ stays }

func newAsks(conn *zk.Conn, path string) asks { return asks{newStays(conn, path)} }

func (l asks) Lock(ctx context.Context) error {
	for ctx.Err() == nil {
		if _, _, err := l.conn.Exists(l.path); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// gap looks whether anybody is there, and then comes. Only some orders show what is wrong
// with that.
type gap struct{ stays }

func newGap(conn *zk.Conn, path string) gap { return gap{newStays(conn, path)} }

func (l gap) Lock(ctx context.Context) error {
	names, _, err := l.conn.Children(l.path)
	if err != nil {
		return err
	}
	if len(names) > 0 {
		return errors.New("somebody is there")
	}
	return l.stays.Lock(ctx)
}

// dice throws dice for what it asks for: no two of its orders have the same requests.
type dice struct{ stays }

func newDice(conn *zk.Conn, path string) dice { return dice{newStays(conn, path)} }

func (l dice) Lock(ctx context.Context) error {
	if _, _, err := l.conn.Exists(l.path + "/" + rand.Text()); err != nil {
		return err
	}
	return l.stays.Lock(ctx)
}

// rests asks once a second whether its znode is the first. That is long enough to be seen at
// rest on a busy machine, too.
type rests struct {
	conn *zk.Conn
	path string
	mine string
}

func newRests(conn *zk.Conn, path string) *rests { return &rests{conn: conn, path: path} }

func (l *rests) Lock(context.Context) error {
	mine, err := l.conn.Create(l.path+"/lock-", nil, zk.FlagEphemeralSequential, zk.WorldACL(zk.PermAll))
	if err != nil {
		return err
	}
	l.mine = mine
	for {
		names, _, err := l.conn.Children(l.path)
		if err != nil {
			return err
		}
		isFirst := slices.Min(names) == pathpkg.Base(l.mine)
		if isFirst {
			return nil
		}
		<-time.After(time.Second) // and not time.Sleep: a client that sleeps is not at rest
	}
}

func (l *rests) Unlock() error { return l.conn.Delete(l.mine, -1) }

// byChance is step 3's lock, and each call to Lock first looks at another znode, by chance. It is right.
type byChance struct {
	step3 *childrenwatch.Lock
	conn  *zk.Conn
	path  string
}

func newByChance(conn *zk.Conn, path string) byChance {
	return byChance{childrenwatch.New(conn, path), conn, path}
}

func (l byChance) Lock(ctx context.Context) error {
	if _, _, err := l.conn.Exists(l.path + "/" + rand.Text()); err != nil {
		return err
	}
	return l.step3.Lock(ctx)
}

func (l byChance) Unlock() error { return l.step3.Unlock() }

// aside lists in a goroutine, so a call that gives up sends its delete while the list is not answered. It is right.
type aside struct{ *rests }

func newAside(conn *zk.Conn, path string) aside { return aside{newRests(conn, path)} }

func (l aside) Lock(ctx context.Context) error {
	mine, err := l.conn.Create(l.path+"/lock-", nil, zk.FlagEphemeralSequential, zk.WorldACL(zk.PermAll))
	if err != nil {
		return err
	}
	for {
		ended := make(chan error, 1)
		isFirst := false
		go func() {
			names, _, changed, err := l.conn.ChildrenW(l.path)
			if err == nil && !slices.Contains(names, pathpkg.Base(mine)) {
				err = zk.ErrNoNode
			}
			isFirst = err == nil && slices.Min(names) == pathpkg.Base(mine)
			if err == nil && !isFirst {
				err = (<-changed).Err
			}
			ended <- err
		}()
		select {
		case err := <-ended:
			if err != nil {
				return errors.Join(err, l.conn.Delete(mine, -1))
			}
			if isFirst {
				l.mine = mine
				return nil
			}
		case <-ctx.Done():
			return errors.Join(ctx.Err(), l.conn.Delete(mine, -1))
		}
	}
}
