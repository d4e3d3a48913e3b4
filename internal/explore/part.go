package explore

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"

	"zklock/internal/actor"
	"zklock/internal/process"
	"zklock/internal/property"
)

// Interleavings are played in separate processes, in which no unrelated goroutines run. So the
// explorer can see when all clients wait.

// part is the name of the role that such a process has for a lock.
func part(name string) string { return "explore:" + name }

// Acts makes a process act as a client of this lock, or explore it, if the process was started for
// that. make play and make explore start the tests of the published mistakes and of the exercises
// as such processes.
func Acts(lock property.Subject) {
	actor.Acts(lock)
	process.Role(part(lock.Name), func(process.Call) any { return &Played{lock: lock} })
}

// Played is the explorer in such a process. The process that started it calls its exported methods.
type Played struct {
	lock   property.Subject
	player *player
}

// Begin makes the player for these settings, with a root of its own below s.Root. It closes the player
// of the settings before.
func (p *Played) Begin(s Settings, _ *bool) (err error) {
	// Each interleaving creates connections with large buffers, and then waits. One processor and a rare
	// collection halve its cost.
	runtime.GOMAXPROCS(1)
	debug.SetGCPercent(800)
	if p.player != nil {
		if err := p.player.close(); err != nil {
			return err
		}
	}
	p.player, err = newPlayer(p.lock, s, s.Root+"/"+rand.Text())
	return err
}

// Play plays the interleaving that begins with these moments.
func (p *Played) Play(begin []Moment, run *Run) (err error) {
	*run, err = p.player.play(begin)
	return err
}

// End closes the player. It is the last call, also if Begin has failed.
func (p *Played) End(bool, *bool) error {
	if p.player == nil {
		return nil
	}
	return p.player.close()
}

// A Player is a process that plays interleavings, as the process that started it sees it.
type Player struct{ process *process.Process }

// Start starts n processes that explore the lock with this name. program is started with args, and
// has to call Acts for this lock.
func Start(n int, s Settings, name, program string, args ...string) (players []*Player, err error) {
	for range n {
		child, err := process.StartAs(part(name), os.Stderr, program, args...)
		if err != nil {
			return players, errors.Join(err, End(players))
		}
		p := &Player{child}
		players = append(players, p)
	}
	if err := begin(players, s); err != nil {
		return nil, errors.Join(fmt.Errorf("begin to explore %s: %w", name, err), End(players))
	}
	return players, nil
}

// begin lets the players play interleavings within other bounds from now on.
func begin(players []*Player, s Settings) (err error) {
	for _, p := range players {
		err = errors.Join(err, p.process.Call("Begin", s, new(bool)))
	}
	return err
}

func (p *Player) play(begin []Moment) (run Run, err error) {
	err = p.process.Call("Play", begin, &run)
	return run, err
}

// End ends the processes.
func End(players []*Player) (err error) {
	for _, p := range players {
		err = errors.Join(err, p.process.Call("End", true, new(bool)), p.process.Close())
	}
	return err
}
