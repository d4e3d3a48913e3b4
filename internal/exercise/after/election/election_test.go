package election

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"

	"zklock/internal/exercise"
	starter "zklock/internal/exercise/after/election/exercise"
	"zklock/internal/steps"
	"zklock/internal/zktest"
	reentrant "zklock/step05_reentrant"
)

func TestMain(m *testing.M) { zktest.Main(m) }

// The check of the exercise accepts the solution, and refuses the starter and the wrong ones.
func TestTheExercise(t *testing.T) {
	exercise.Accepts(t, exercise.Election, exercise.OverElection(steps.OpenReentrant, New))
	first := exercise.Election.Properties[0]
	exercise.Refuses(t, exercise.Election, first, exercise.OverElection(steps.OpenReentrant, starter.New))

	exercise.RefusesByOne(t, exercise.Election,
		wrong("one leads at a time", "leads when the leader's name goes", newHeir),
		wrong("every client can find out who leads", "leaves its name up", newLeaver),
		wrong("a crashed leader is no longer reported as the leader", "a persistent name", newPersistent),
		wrong("a disconnected leader is notified before another one leads",
			"works under the caller's context", newUnaware),
		wrong("a late resignation does no harm", "one znode for all names", newOneSign),
		wrong("giving up leaves nothing behind", "campaigns on in the background", newTireless),
	)
}

func wrong[H zktest.Hold, C interface {
	Campaign(context.Context) (H, error)
	Leader() (name string, err error)
	Resign(H) error
}](by, name string, newCandidate func(s *reentrant.Session, path, name string) C) exercise.Wrong {
	return exercise.Election.Wrong(by, name, exercise.OverElection(steps.OpenReentrant, newCandidate))
}

// "When the leader's name is gone, I lead." So does everybody who waits for that.
type heir struct{ *Candidate }

func newHeir(s *reentrant.Session, path, name string) heir {
	c := New(s, path, name)
	c.lock = reentrant.New(s, path+"/line-of-"+name) // nobody else asks for it
	return heir{c}
}

func (c heir) Campaign(ctx context.Context) (*reentrant.Hold, error) {
	names, _, err := c.conn.Children(c.path)
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		return nil, err
	}
	names = slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, "leader-") })
	if len(names) == 0 {
		return c.Candidate.Campaign(ctx)
	}
	_, _, gone, err := c.conn.GetW(c.path + "/" + slices.Max(names))
	if err != nil {
		return nil, err
	}
	select {
	case <-gone:
		return c.Candidate.Campaign(ctx)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// "The next leader's name outranks mine." And if there is no next one?
type leaver struct{ *Candidate }

func newLeaver(s *reentrant.Session, path, name string) leaver { return leaver{New(s, path, name)} }

func (c leaver) Resign(office *reentrant.Hold) error { return office.Unlock() }

// "Resign takes the name down." Who has crashed does not resign.
type persistent struct{ *Candidate }

func newPersistent(s *reentrant.Session, path, name string) persistent {
	return persistent{New(s, path, name)}
}

func (c persistent) Campaign(ctx context.Context) (*reentrant.Hold, error) {
	office, err := c.lock.Lock(ctx)
	if err != nil {
		return nil, err
	}
	_, err = c.conn.Create(c.sign(office), []byte(c.name), zk.FlagPersistent, zk.WorldACL(zk.PermAll))
	return office, err
}

// "The work has its context from the caller."
type unaware struct{ *Candidate }

func newUnaware(s *reentrant.Session, path, name string) unaware { return unaware{New(s, path, name)} }

func (c unaware) Campaign(ctx context.Context) (plainOffice, error) {
	office, err := c.Candidate.Campaign(ctx)
	return plainOffice{office}, err
}

func (c unaware) Resign(office plainOffice) error { return c.Candidate.Resign(office.Hold) }

type plainOffice struct{ *reentrant.Hold }

func (plainOffice) Context(parent context.Context) context.Context { return parent }

// "There is one leader, so there is one name, and one place for it."
type oneSign struct{ *Candidate }

func newOneSign(s *reentrant.Session, path, name string) oneSign { return oneSign{New(s, path, name)} }

func (c oneSign) sign() string { return c.path + "/leader-now" }

func (c oneSign) Campaign(ctx context.Context) (*reentrant.Hold, error) {
	office, err := c.lock.Lock(ctx)
	if err != nil {
		return nil, err
	}
	_, err = c.conn.Create(c.sign(), []byte(c.name), zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
	return office, err
}

func (c oneSign) Resign(office *reentrant.Hold) error {
	return errors.Join(c.conn.Delete(c.sign(), -1), office.Unlock())
}

// "Whoever gives up must not wait." The goroutine goes on, and its znode is queued.
type tireless struct{ *Candidate }

func newTireless(s *reentrant.Session, path, name string) tireless {
	return tireless{New(s, path, name)}
}

func (c tireless) Campaign(ctx context.Context) (office *reentrant.Hold, err error) {
	done := make(chan struct{})
	var won *reentrant.Hold
	var lost error
	go func() {
		defer close(done)
		won, lost = c.Candidate.Campaign(context.WithoutCancel(ctx))
	}()
	select {
	case <-done:
		return won, lost
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
