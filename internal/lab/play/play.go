// Package play is the service behind the page of make play. It has the clients, each a process of
// its own, the gates on their connections, and a recorder for each lock.
package play

import (
	"context"
	"errors"
	"fmt"

	"zklock/internal/exercise"
	"zklock/internal/lab/locks"
	"zklock/internal/zkserver"
)

// An Opening is what the page shows first.
type Opening struct {
	lesson      int // 0: none
	left, right locks.Choice
}

// NewOpening returns an opening with a lesson if lesson is not 0, or with the locks that have the
// keys left and right.
func NewOpening(lesson int, left, right string) (o Opening, err error) {
	if lesson < 0 || lesson > len(lessons) {
		return o, fmt.Errorf("LESSON=%d: want a lesson from 1 to %d", lesson, len(lessons))
	}
	o.lesson = lesson
	if right != "" && left == "" {
		left = "3"
	}
	if left != "" {
		o.left, err = locks.Choose(left)
	}
	if right != "" && err == nil {
		o.right, err = locks.Choose(right)
	}
	return o, err
}

// Serve serves the page at an address of this machine until end is called.
func Serve(ctx context.Context, o Opening, server *zkserver.Server, ensemble *zkserver.Ensemble) (
	address string, end func() error, err error,
) {
	s, stop, err := begin(ctx, ".", exercise.Folder, server, ensemble)
	if err != nil {
		return "", nil, err
	}
	address, close, err := s.listen()
	if err != nil {
		return "", nil, errors.Join(err, stop())
	}
	_ = s.goes(func() { s.start(o) })
	return address, func() error {
		close()
		return stop()
	}, nil
}

// start sets up what the page shows first. The lock on the left may take a while to build, and
// meanwhile the reader may add clients to it. The lock on the right gets as many clients.
func (s *service) start(o Opening) {
	if o.lesson > 0 {
		s.open(o.lesson)
		return
	}
	s.lay(0, o.left, 0)
	s.mu.Lock()
	clients := s.mostClients()
	s.mu.Unlock()
	s.lay(1, o.right, clients)
}
