// Package play is the service behind the page to play with the locks: it has the clients,
// each a process of its own, the gates on their lines, and a recorder for each lock.
package play

import (
	"context"
	"errors"

	"zklock/internal/exercise"
	"zklock/internal/server/zkserver"
	"zklock/internal/show/setting"
)

// An Opening is what the page shows first.
type Opening struct {
	lesson      int // 0: none
	left, right lock
}

// ReadOpening reads it from the environment: LESSON, or LEFT and RIGHT.
func ReadOpening() (o Opening, err error) {
	const locks = "a lock, such as 3, zk, W8 or mine"
	var err1, err2, err3 error
	o.lesson, err1 = setting.Number("LESSON", 0, 1, len(lessons))
	o.left, err2 = setting.Read("LEFT", lock{}, locks, find)
	o.right, err3 = setting.Read("RIGHT", lock{}, locks, find)
	if o.right.Key != "" && o.left.Key == "" {
		o.left, _ = find("3")
	}
	return o, errors.Join(err1, err2, err3)
}

// Serve serves the page at an address of this machine, until end is called.
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
	_ = s.goes(func() {
		if o.lesson > 0 {
			s.open(o.lesson)
			return
		}
		s.lay(0, o.left, 0)
		s.lay(1, o.right, 0)
	})
	return address, func() error {
		close()
		return stop()
	}, nil
}
