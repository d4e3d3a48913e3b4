package explore

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"

	"zklock/internal/actor"
	"zklock/internal/process"
	"zklock/internal/property"
)

// Orders are played in processes of their own: there, each goroutine is a client's, and so
// it can be seen when all clients wait.

// part is the name of the part that such a process has.
func part(name string) string { return "explore:" + name }

// Acts makes a process that was started to be a client of this lock, or to explore it, do
// so: make play and make explore start the tests of the published mistakes, and of the
// exercises, as such processes.
func Acts(lock property.Subject) {
	actor.Acts(lock)
	process.Role(part(lock.Name), func(process.Call) any { return &Played{lock: lock} })
}

// Played is the process, as the one that has started it sees it.
type Played struct {
	lock   property.Subject
	player *player
}

// Begin says what is explored.
func (p *Played) Begin(s Settings, _ *bool) (err error) {
	p.player, err = newPlayer(p.lock, s, s.Root+"/"+rand.Text())
	return err
}

// Play plays an order.
func (p *Played) Play(begin []Moment, run *Run) (err error) {
	*run, err = p.player.play(begin)
	return err
}

// Record plays an order once more, and records it.
func (p *Played) Record(run Run, recording *Recording) error {
	recorded := &record{}
	p.player.record = recorded
	defer func() { p.player.record = nil }()
	again, err := p.player.play(run.Moments)
	if err == nil && again.Outcome != run.Outcome {
		err = fmt.Errorf(
			"this interleaving cannot be repeated: it ended with %q, and now with %q",
			run.Outcome,
			again.Outcome,
		)
	}
	if err != nil {
		return err
	}
	*recording = recorded.made
	recording.Run = again
	return nil
}

// End is the last call, also if Begin has failed.
func (p *Played) End(bool, *bool) error {
	if p.player == nil {
		return nil
	}
	return p.player.close()
}

// A Player is a process that plays orders.
type Player struct{ process *process.Process }

// Start starts so many processes of a program, with its arguments, which has the Role of
// that name.
func Start(n int, s Settings, name, program string, args ...string) (players []*Player, err error) {
	for range n {
		child, err := process.StartAs(part(name), os.Stderr, program, args...)
		if err != nil {
			return players, errors.Join(err, End(players))
		}
		p := &Player{child}
		players = append(players, p)
		if err := child.Call("Begin", s, new(bool)); err != nil {
			return nil, errors.Join(fmt.Errorf("begin to explore %s: %w", name, err), End(players))
		}
	}
	return players, nil
}

func (p *Player) play(begin []Moment) (run Run, err error) {
	err = p.process.Call("Play", begin, &run)
	return run, err
}

// Record plays an order once more, and records it.
func (p *Player) Record(run Run) (r Recording, err error) {
	err = p.process.Call("Record", run, &r)
	return r, err
}

// End ends the processes.
func End(players []*Player) (err error) {
	for _, p := range players {
		err = errors.Join(err, p.process.Call("End", true, new(bool)), p.process.Close())
	}
	return err
}
