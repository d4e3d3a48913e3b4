package multilock

import (
	"context"
	"slices"
	"testing"

	"github.com/go-zookeeper/zk"

	"zklock/internal/exercise"
	starter "zklock/internal/exercise/after/multilock/exercise"
	"zklock/internal/zktest"
	predecessorwatch "zklock/step04_predecessor_watch"
)

func TestMain(m *testing.M) { zktest.Main(m) }

// The check of the exercise accepts the solution, and refuses the starter and the wrong ones.
func TestTheExercise(t *testing.T) {
	exercise.Accepts(t, exercise.MultiLock, exercise.OverMultiLock(New, predecessorwatch.New))
	first := exercise.MultiLock.Properties[0]
	exercise.Refuses(t, exercise.MultiLock, first, exercise.OverMultiLock(starter.New, predecessorwatch.New))

	exercise.RefusesByOne(t, exercise.MultiLock,
		wrong("it holds all of its locks", "the first lock is the door", newDoor),
		wrong("all or none", "keeps what it has got", newKeeper),
		wrong("two clients with the same locks do not wait for each other",
			"locks in the caller's order", inTheCallersOrder),
		wrong("a lock named twice is one", "takes each path that is named", eachPathNamed),
		wrong("if one lock is lost, the others are still released", "stops at an error", newStopper),
	)
}

func wrong[M zktest.Locker](by, name string, newMultiLock func(conn *zk.Conn, paths ...string) M) exercise.Wrong {
	return exercise.MultiLock.Wrong(by, name, exercise.OverMultiLock(newMultiLock, predecessorwatch.New))
}

// "All take the first lock first. So it is a door, and a client that is through lets the next one in."
type door struct{ *MultiLock }

func newDoor(conn *zk.Conn, paths ...string) door { return door{New(conn, paths...)} }

func (m door) Lock(ctx context.Context) error {
	if err := m.MultiLock.Lock(ctx); err != nil {
		return err
	}
	return m.locks[0].Unlock()
}

func (m door) Unlock() error { return unlock(m.locks[1:]) }

// "The caller gets an error, and can call Unlock."
type keeper struct{ *MultiLock }

func newKeeper(conn *zk.Conn, paths ...string) keeper { return keeper{New(conn, paths...)} }

func (m keeper) Lock(ctx context.Context) error {
	for _, lock := range m.locks {
		if err := lock.Lock(ctx); err != nil {
			return err
		}
	}
	return nil
}

// "The caller knows best which lock comes first."
func inTheCallersOrder(conn *zk.Conn, paths ...string) *MultiLock {
	m := &MultiLock{}
	for i, path := range paths {
		if !slices.Contains(paths[:i], path) {
			m.locks = append(m.locks, predecessorwatch.New(conn, path))
		}
	}
	return m
}

// "Nobody names a path twice."
func eachPathNamed(conn *zk.Conn, paths ...string) *MultiLock {
	m := &MultiLock{}
	for _, path := range slices.Sorted(slices.Values(paths)) {
		m.locks = append(m.locks, predecessorwatch.New(conn, path))
	}
	return m
}

// "After an error the caller can call Unlock again."
type stopper struct{ *MultiLock }

func newStopper(conn *zk.Conn, paths ...string) stopper { return stopper{New(conn, paths...)} }

func (m stopper) Unlock() error {
	for _, lock := range m.locks {
		if err := lock.Unlock(); err != nil {
			return err
		}
	}
	return nil
}
