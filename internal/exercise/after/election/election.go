// Package election is a graduation exercise, solved: of several candidates one
// leads, everybody can ask for its name, and the leader is notified when it no longer leads.
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

// sign is the znode with the leader's name. Each time in office has its own,
// by the fencing token: so nobody can take another's away, and a sign that has
// been left behind is outranked by the next.
func (c *Candidate) sign(office *reentrant.Hold) string {
	return fmt.Sprintf("%s/leader-%019d", c.path, office.Token()) // sorted by name is sorted by number
}

// Leader names the one who leads, "" when nobody does.
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
		if !errors.Is(err, zk.ErrNoNode) { // else it has gone meanwhile: look again
			return string(data), err
		}
	}
}

// Resign ends the time in office. It returns an error when that had ended
// already, and takes nobody else's name away.
func (c *Candidate) Resign(office *reentrant.Hold) error {
	return errors.Join(c.conn.Delete(c.sign(office), -1), office.Unlock())
}
