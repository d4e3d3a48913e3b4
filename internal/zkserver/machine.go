package zkserver

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf16"
)

// A machine has one server, which it runs, again and again, with the data that it had.
type machine interface {
	fmt.Stringer
	data() string                                        // the folder of the server's data
	prepare(zooCfg string, data map[string]string) error // before the first start: the texts of files
	start(context.Context) error                         // returns before the server serves
	failed(context.Context) error                        // why the server will never serve, if so
	log(context.Context) string                          // what it has printed
	kill() error                                         // as kill -9 does; returns when the server has ended
	pause() error
	resume() error
	remove() error // and all that is left of it
}

var (
	errPortTaken = errors.New("a port is taken")
	errEnded     = errors.New("it ended before it served")
)

// A place has machines, and this process between them as their network.
type place struct {
	name    string // for people
	machine func(ports []int) (machine, error)
	address string // at which a server listens
	host    string // at which this process reaches it
	listen  string // where this process listens for the servers
	gateway string // at which they reach this process
}

// start starts servers on free ports, and again on others if someone has taken one of them
// before a server did.
func (p place) start(ctx context.Context, servers int, config Config) (e *Ensemble, err error) {
	for range 5 {
		var ports []int
		if ports, err = freePorts(3 * servers); err != nil {
			break
		}
		if e, err = p.launch(ctx, ports, config); !errors.Is(err, errPortTaken) {
			break
		}
	}
	return e, err
}

// zooCfg is the zoo.cfg of a private server. Of two lines with the same key
// the later one counts: more wins.
//
// A short tick lets sessions expire quickly. The longest session is then 20
// ticks, unless raised: longer ones would be cut to two seconds in silence.
// A thousand clients come at once: an attempt to connect that finds no place is made
// again a second later. forceSync stays on, so that a write costs here what it costs in earnest.
func zooCfg(dataDir, address string, port int, more []string) string {
	return fmt.Sprintf(`dataDir=%s
clientPortAddress=%s
clientPort=%d
tickTime=100
maxSessionTimeout=60000
maxClientCnxns=0
clientPortListenBacklog=1000
admin.enableServer=false
4lw.commands.whitelist=*
%s
`, propertyValue(dataDir), address, port, strings.Join(more, "\n"))
}

// propertyValue writes a text as Java reads it in a file of properties: that is in ISO 8859-1, and a
// backslash begins an escape. A folder can have any name.
func propertyValue(text string) string {
	var value strings.Builder
	for _, unit := range utf16.Encode([]rune(text)) {
		if isPlain := unit > ' ' && unit < 0x7f && unit != '\\'; isPlain {
			value.WriteByte(byte(unit))
			continue
		}
		fmt.Fprintf(&value, `\u%04x`, unit)
	}
	return value.String()
}

// Restart starts the server, again after a Kill, at the same address and with
// the data it had. It returns when the server serves, for which a member of an
// ensemble needs another one: of several, restart all at the same time. A
// member that is partitioned stays so.
func (p *Peer) Restart(ctx context.Context) error {
	p.paused = false
	err := p.machine.start(ctx)
	if err == nil {
		// Should the port be another server's, that one would answer, and be gone
		// when its own test ends: make sure that it is the one with our folder.
		ended := func() error { return p.machine.failed(ctx) }
		_, err = await(ctx, []string{p.Addr}, "conf", p.machine.data(), 150*time.Millisecond, ended)
	}
	if err != nil {
		return fmt.Errorf("%s: %w; the end of its log:\n%s", p.machine, err, lastLines(p.machine.log(ctx), 25))
	}
	return nil
}

// lastLines returns the last n lines of a text.
func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// Kill ends the server as kill -9 does, paused or not. It returns when the
// server has ended.
func (p *Peer) Kill() error { return p.machine.kill() }

// Pause stops the server in the midst of what it does: it still accepts
// connections, as its system does that for it, but answers nothing.
func (p *Peer) Pause() error {
	if p.paused {
		return nil
	}
	if err := p.machine.pause(); err != nil {
		return fmt.Errorf("pause the server at %s: %w", p.Addr, err)
	}
	p.paused = true
	return nil
}

// Resume lets a paused server go on, as if no time had passed.
func (p *Peer) Resume() error {
	if !p.paused {
		return nil
	}
	if err := p.machine.resume(); err != nil {
		return fmt.Errorf("resume the server at %s: %w", p.Addr, err)
	}
	p.paused = false
	return nil
}
