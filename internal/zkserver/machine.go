package zkserver

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf16"
)

// A machine runs one server. It can run the server several times, with the data that the server
// had.
type machine interface {
	fmt.Stringer
	data() string                                        // the folder of the server's data
	prepare(zooCfg string, data map[string]string) error // before the first start: the texts of files
	configure(zooCfg string) error                       // after the first start, for the next one
	start(context.Context) error                         // returns before the server serves
	failed(context.Context) error                        // why the server will never serve; nil: it may still serve
	log(context.Context) string                          // what the server has printed
	kill() error                                         // as kill -9 does; returns when the server has ended
	pause() error
	resume() error
	remove() error // ends the server, and removes everything that is left of it
}

var (
	errPortTaken = errors.New("a port is taken")
	errEnded     = errors.New("it ended before it served")
)

// A place makes machines. This process is the network between them.
type place struct {
	name    string // for people
	machine func(ports []int) (machine, error)
	address string // at which a server listens
	host    string // at which this process reaches it
	listen  string // where this process listens for the servers
	gateway string // at which they reach this process
}

// start starts servers on free ports. If another program takes one of the ports before the server
// does, start tries again with other ports.
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

// zooCfg returns the zoo.cfg of a private server. If two lines have the same key, the server uses
// the later one, so more overrides the usual lines.
//
// The tick is short, so that sessions expire quickly. By default the longest session would then be
// 20 ticks, and the server would shorten longer ones to two seconds without a message. So
// maxSessionTimeout is raised. The backlog is long because a thousand clients connect at the same
// time, and a client that finds no place tries again only a second later. forceSync stays on, so
// that a write costs as much here as in production.
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

// propertyValue writes a text as Java reads it in a properties file: in ISO 8859-1, and with a
// backslash at the beginning of an escape. This is necessary because the name of a folder may have
// any characters.
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

// Restart starts the server, also after a Kill, at the same address and with the data that it had.
// It returns when the server serves. A member of an ensemble needs others to serve, so restart
// several members at the same time. A member that is partitioned stays partitioned.
func (p *Peer) Restart(ctx context.Context) error {
	p.paused = false
	err := p.machine.start(ctx)
	if err == nil {
		// If another server had taken the port, that server would answer, and would disappear at
		// the end of its own test. So the answer must name the folder of this server.
		ended := func() error { return p.machine.failed(ctx) }
		_, err = await(ctx, []string{p.Addr}, "conf", p.machine.data(), 150*time.Millisecond, ended)
	}
	if err != nil {
		return fmt.Errorf("%s: %w; the end of its log:\n%s", p.machine, err, lastLines(p.machine.log(ctx), 25))
	}
	return nil
}

// Configure replaces the server's zoo.cfg, which the server reads when it is restarted.
func (p *Peer) Configure(zooCfg string) error { return p.machine.configure(zooCfg) }

// lastLines returns the last n lines of a text.
func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// Kill ends the server as kill -9 does, paused or not. It returns when the
// server has ended.
func (p *Peer) Kill() error { return p.machine.kill() }

// Pause stops the server, whatever it is doing. Its operating system still accepts connections for
// it, but the server answers nothing.
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

// Resume lets a paused server continue, as if no time had passed.
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
