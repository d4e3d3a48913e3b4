// Package election is the solution of an exercise after the steps: one of several candidates leads,
// every client can find out which, and the leader is notified when it no longer leads.
package election

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"

	reentrant "zklock/step05_reentrant"
)

// Candidate is a client that may lead, under a name of its own.
type Candidate struct {
	conn *zk.Conn
	lock *reentrant.Lock // its holder leads
	path string
	name string
}

// New returns a candidate of the election at path.
func New(s *reentrant.Session, path, name string) *Candidate {
	return &Candidate{s.Conn(), reentrant.New(s, path+"/line"), path, name}
}

// Campaign blocks until this candidate leads. The hold that it returns is its
// time in office: the hold's context ends when the office is lost.
func (c *Candidate) Campaign(ctx context.Context) (*reentrant.Hold, error) {
	office, err := c.lock.Lock(ctx)
	if err != nil {
		return nil, err
	}
	_, err = c.conn.Create(c.sign(office), []byte(c.name), zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
	if err != nil {
		err = fmt.Errorf("put up the name at %s: %w", c.path, err)
		return nil, errors.Join(err, office.Unlock())
	}
	return office, nil
}

// sign returns the path of the znode with the leader's name. The path has the fencing token, so
// each time in office has a znode of its own. So no candidate can delete the znode of another one,
// and Leader prefers the next znode to one that was left behind.
func (c *Candidate) sign(office *reentrant.Hold) string {
	return fmt.Sprintf("%s/leader-%019d", c.path, office.Token()) // sorted by name is sorted by number
}

// Leader returns the name of the leader, or "" if nobody leads.
func (c *Candidate) Leader() (name string, err error) {
	for {
		names, _, err := c.conn.Children(c.path)
		if err != nil && !errors.Is(err, zk.ErrNoNode) {
			return "", err
		}
		names = slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, "leader-") })
		if len(names) == 0 {
			return "", nil
		}
		data, _, err := c.conn.Get(c.path + "/" + slices.Max(names))
		if !errors.Is(err, zk.ErrNoNode) { // otherwise it was deleted meanwhile: look again
			return string(data), err
		}
	}
}

// Resign ends the time in office. If that has ended already, Resign returns an error, and does not
// delete another leader's name.
func (c *Candidate) Resign(office *reentrant.Hold) error {
	return errors.Join(c.conn.Delete(c.sign(office), -1), office.Unlock())
}
