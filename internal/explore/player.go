package explore

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"zklock/internal/actor"
	"zklock/internal/lang"
	"zklock/internal/property"
	"zklock/internal/wiretap"
	"zklock/internal/zktest"
)

// longest is the largest number of choices in an interleaving. Without it, an interleaving of a
// lock that polls may never end.
const longest = 100

// A Moment is a point of an interleaving at which the explorer made a choice.
type Moment struct {
	Choices []string
	Taken   int
}

// A Run is an interleaving that was played.
type Run struct {
	Moments  []Moment
	Requests int         // of all clients, also the lost ones
	Faults   []string    // in the order in which they happened
	Wrong    []string    // the invariants that it breaks; nil: none
	Told     []Line      // the run as a story
	Outcome  string      // how it ended for each client, or the invariants that it breaks
	Ends     []lang.Text // how it ended, in sentences; nil: it was not played to its end
	Hangs    bool        // a call of it does not return, and so this process can play no more
	Differs  string      // it did not begin with the moments that were given, and was not played to its end; "": it did
	Covered  bool        // not played to its end: other interleavings have the rest, or it is beyond the Settings
	Points   []Point     // before each choice, and the last one; without those of the beginning that was given
}

// player plays one interleaving after the other.
type player struct {
	Settings
	lock   property.Subject
	eye    *zk.Conn // the explorer's own session
	number int      // of the interleaving
	looked bool     // looksForTimers has found no timer

	// Of the present interleaving:
	path      string // of its directory
	story     *account
	clients   []*client
	last      int // the client of the last choice that was no fault; -1: none
	faults    int // so far
	lastFault string
	switches  int
	asleep    []choice      // choices that can be left out now, because other interleavings have them
	token     int64         // of the last writer
	woken     int           // the most waiters that one release has woken
	record    *record       // nil: no points are noted
	owners    map[int64]int // the clients, by their sessions
}

// newPlayer connects to the servers, and creates the znode root.
func newPlayer(lock property.Subject, settings Settings, root string) (*player, error) {
	settings.Root = root
	p := &player{Settings: settings, lock: lock}
	eye, err := zktest.Dial(settings.Servers, timeout, wiretap.New().Dial)
	if err != nil {
		return nil, err
	}
	p.eye = eye
	if _, err := eye.Create(root, nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
		eye.Close()
		return nil, fmt.Errorf("create %s: %v", root, err)
	}
	return p, nil
}

// close deletes what is left below the player's root, and ends its session.
func (p *player) close() error {
	defer p.eye.Close()
	return p.remove(p.Root)
}

// remove deletes a znode and everything below it. A lock may also have left znodes outside its
// directory, so close deletes from the root down.
func (p *player) remove(path string) error {
	names, _, err := p.eye.Children(path)
	for _, name := range names {
		err = errors.Join(err, p.remove(path+"/"+name))
	}
	return errors.Join(err, p.eye.Delete(path, -1))
}

// play plays the interleaving that begins with these moments. After them it takes the first choice
// each time. An error means that the explorer could not play it, not that the lock is wrong.
func (p *player) play(begin []Moment) (r Run, err error) {
	if err := p.enter(); err != nil {
		return r, err
	}
	r, err = p.playOn(begin)
	r.Told = p.story.told()
	err = errors.Join(err, p.leave())
	if err != nil {
		return r, fmt.Errorf("%w\n%s", err, strings.Join(r.Tell(), "\n"))
	}
	return r, nil
}

// enter creates a new directory and new clients. Each client calls Lock.
func (p *player) enter() error {
	p.number++
	dir := fmt.Sprintf("%s/%d", p.Root, p.number)
	if _, err := p.eye.Create(dir, nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
		return fmt.Errorf("create %s: %v", dir, err)
	}
	p.path = dir
	p.story = &account{path: dir}
	p.record = nil
	if p.Points {
		p.record = &record{}
	}
	p.owners = map[int64]int{}
	p.clients = make([]*client, p.Clients)
	p.last = -1
	p.faults = 0
	p.switches = 0
	p.asleep = nil
	p.token = 0
	p.woken = 0
	errs := make([]error, p.Clients)
	var all sync.WaitGroup
	for i := range p.clients {
		all.Go(func() {
			p.clients[i], errs[i] = newClient(i, p.lock, p.Servers, p.story, p.record)
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if err := p.settle(); err != nil {
		return err
	}
	for i, c := range p.clients {
		inside := actor.Holds
		if i < p.Readers {
			inside = actor.Reads
		}
		if err := c.lock(func() error { return p.takesItsWay(i, c) }, inside); err != nil {
			return err
		}
	}
	return nil
}

// lockPath is the path of the lock that the clients take.
func (p *player) lockPath() string {
	if p.Znode {
		return p.path + "/lock"
	}
	return p.path
}

// takesItsWay makes a client's lock, and chooses whether the client writes or reads.
func (p *player) takesItsWay(i int, c *client) error {
	write, read := p.lock.Ways(c.session, p.lockPath())
	c.way = write
	if i < p.Readers && read == nil {
		return errors.New("this lock has no readers")
	}
	if i < p.Readers {
		c.way = *read
	}
	return nil
}

// leave ends the clients, and deletes the directory.
func (p *player) leave() error {
	var all sync.WaitGroup
	for _, c := range p.clients {
		if !c.hasCrashed() {
			all.Go(c.leave)
		}
	}
	all.Wait()
	return p.remove(p.path)
}

// playOn makes choices until none is left, an invariant is broken, or other interleavings have the
// rest.
func (p *player) playOn(begin []Moment) (r Run, err error) {
	for {
		if err := p.settle(); err != nil {
			if c := p.hangs(); c != nil {
				p.story.chosen(c.name, "%s's "+c.calling+" has not returned after its session ended",
					"%s 的会话已经结束，"+c.calling+" 还没有返回")
				r.Wrong, r.Outcome, r.Hangs = []string{noReturn}, noReturn, true
				return r, nil
			}
			return r, err
		}
		if p.Points {
			at, err := p.look()
			if err != nil {
				return r, err
			}
			if len(r.Moments) >= len(begin) {
				r.Points = append(r.Points, at)
			}
		}
		if p.Mild && p.hasLostAWrite() { // that is no mild fault
			r.Covered = true
			return r, nil
		}
		p.looksInside(&r)
		if len(r.Wrong) > 0 {
			r.Outcome = Outcome(r.Wrong)
			return r, nil
		}
		all := p.choices()
		if len(all) == 0 {
			return r, p.judge(&r)
		}
		if len(r.Moments) == longest {
			r.Wrong = append(r.Wrong, asksOn)
			r.Outcome = asksOn
			return r, nil
		}
		sleeps := func(c choice) bool {
			return slices.ContainsFunc(p.asleep, func(other choice) bool { return other.label == c.label })
		}
		awake := slices.DeleteFunc(slices.Clone(all), sleeps)
		if len(awake) == 0 {
			r.Covered = true
			return r, nil
		}
		moment := Moment{Choices: labels(awake)}
		if i := len(r.Moments); i < len(begin) {
			isSame := slices.Equal(begin[i].Choices, moment.Choices)
			switch {
			case isSame:
				moment.Taken = begin[i].Taken
			case p.mayDiffer():
				begin = begin[:i] // this is another interleaving, which the tree may not know yet
			default:
				r.Differs = fmt.Sprintf("at choice %d there was %q, and now there is %q", i+1, begin[i].Choices, moment.Choices)
				return r, nil
			}
		}
		r.Moments = append(r.Moments, moment)
		taken := awake[moment.Taken]
		if taken.isFault() {
			r.Faults = append(r.Faults, taken.fault())
		}
		if taken.isRequest() {
			r.Requests++
		}
		if err := p.do(taken, all[0]); err != nil {
			return r, err
		}
		p.fallAsleep(awake, moment.Taken)
	}
}

func (p *player) hasLostAWrite() bool {
	return slices.ContainsFunc(p.clients, func(c *client) bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.lostWrite
	})
}

// mayDiffer reports whether the same choices may lead to different ones: the context of a call has ended, and its reply
// may arrive at the same moment. Then Go chooses at random which of the two the lock sees first.
func (p *player) mayDiffer() bool {
	return slices.ContainsFunc(p.clients, func(c *client) bool { return c.gaveUp })
}

// hangs returns a client that has crashed, and whose call has not returned long after its Session was closed. It
// returns nil if there is none. The clients have not come to rest in time: hangs gives them as much time again.
func (p *player) hangs() *client {
	hanging := func(c *client) bool { return c.hasCrashed() && c.isCalling() }
	if !slices.ContainsFunc(p.clients, hanging) || p.settle() == nil {
		return nil
	}
	if i := slices.IndexFunc(p.clients, hanging); i >= 0 {
		return p.clients[i]
	}
	return nil
}

// fallAsleep notes the choices that can be left out next. Such a choice precedes the taken one in
// the list, or could already be left out this time. It is also independent of the taken one. In
// another interleaving it was taken first, and the two have the same result there.
func (p *player) fallAsleep(awake []choice, taken int) {
	couldSleep := slices.Concat(p.asleep, awake[:taken])
	p.asleep = nil
	bounded := p.Switches != Unbound
	if p.Full || bounded { // the other interleaving may need one more switch, and so not be played
		return
	}
	for _, c := range couldSleep {
		if independent(c, awake[taken]) {
			p.asleep = append(p.asleep, c)
		}
	}
}

// do carries out a choice. first is the first choice of the moment.
func (p *player) do(ch, first choice) error {
	c := p.clients[ch.client]
	if ch.isFault() {
		p.faults++
		p.lastFault = ch.fault()
	} else {
		lastCouldGoOn := first.client == p.last
		if lastCouldGoOn && ch.client != p.last {
			p.switches++
		}
		p.last = ch.client
	}
	var request lang.Text
	c.mu.Lock()
	if c.pending != nil {
		request = p.story.briefly(*c.pending)
	}
	releases := c.State() == actor.Releases && c.pending != nil && c.pending.Op == wiretap.Delete
	c.mu.Unlock()
	toldBefore := p.notifications(ch.client)
	switch ch.deed {
	case passes:
		p.story.chosen(c.name, "%s asks: %s", "%s 请求：%s", request)
		c.letGo()
	case unlocks:
		p.story.chosen(c.name, "%s calls Unlock", "%s 调用 Unlock")
		c.unlock()
	case losesRequest:
		p.story.chosen(c.name, "%s asks: %s. The REQUEST IS LOST, and the connection breaks",
			"%s 请求：%s：请求丢失，连接断开", request)
		c.hangUp()
	case losesReply:
		p.story.chosen(c.name, "%s asks: %s. The REPLY IS LOST, and the connection breaks",
			"%s 请求：%s：响应丢失，连接断开", request)
		c.tap.LoseReply(wiretap.Any, 1)
		c.letGo()
	case crashes:
		p.story.chosen(c.name, "%s CRASHES, and its session ends", "%s 崩溃，会话结束")
		return c.crash(p.Servers[0])
	case expires:
		p.story.chosen(c.name,
			"%s's SESSION EXPIRES: the server deletes its znode, if it has one, and the client does not know it yet",
			"%s 的会话过期：服务器删除它的 znode（如果有），而客户端还不知道")
		return c.expire(p.Servers[0])
	case givesUp:
		p.story.chosen(c.name, "%s GIVES UP", "%s 放弃等待")
		c.gaveUp = true
		c.GiveUp()
	}
	if ch.deed == losesRequest || ch.deed == losesReply {
		c.faulty = true
	}
	if !releases {
		return nil
	}
	if err := p.settle(); err != nil {
		return err
	}
	p.woken = max(p.woken, p.notifications(ch.client)-toldBefore)
	return nil
}

// notifications counts the notifications that the waiting clients have received, except one client.
func (p *player) notifications(butFor int) (n int) {
	for i, c := range p.clients {
		c.mu.Lock()
		if i != butFor && c.State() == actor.Waits {
			n += c.told
		}
		c.mu.Unlock()
	}
	return n
}

// settle returns when no client does anything more by itself: each one waits, at the gate or for
// another client, and has received all notifications. The server changes only by what has passed a
// gate, so no notification follows those that settle has flushed.
func (p *player) settle() error {
	const pause = 20 * time.Microsecond
	flushed := -1 // the connections at the last flush
	for begun := time.Now(); time.Since(begun) < patience; {
		if !p.allSettled() {
			time.Sleep(pause)
			continue
		}
		connections := p.connections()
		if connections != flushed {
			if err := p.flush(); err != nil {
				return err
			}
			flushed = connections
			continue
		}
		atRest := othersWait() && p.allSettled() // nothing arrived during the check
		if atRest && p.connections() == flushed {
			return nil
		}
		time.Sleep(pause)
	}
	return errors.New("the clients do not come to rest")
}

// flush returns when each client has received all notifications that the server has sent so far.
func (p *player) flush() error {
	for _, c := range p.clients {
		if c.hasCrashed() {
			continue
		}
		if err := c.flush(); err != nil {
			return fmt.Errorf("a read to flush the line of %s: %w", c.name, err)
		}
	}
	return nil
}

// connections counts the connections that the clients have had.
func (p *player) connections() (n int) {
	for _, c := range p.clients {
		c.mu.Lock()
		n += c.connection
		c.mu.Unlock()
	}
	return n
}

func (p *player) allSettled() bool {
	return !slices.ContainsFunc(p.clients, func(c *client) bool { return !c.isSettled() })
}
