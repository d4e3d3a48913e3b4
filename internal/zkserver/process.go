package zkserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"zklock/internal/process"
)

// Without a configuration, logback writes all it can, each request included.
const quietLogback = `<configuration>
  <appender name="out" class="ch.qos.logback.core.ConsoleAppender">
    <encoder><pattern>%level %logger: %msg%n</pattern></encoder>
  </appender>
  <root level="WARN"><appender-ref ref="out"/></root>
</configuration>
`

// prepare makes the server's folder, with its configuration and other files.
func (p *Peer) prepare(port int, lines []string, config Config) (err error) {
	write := func(name, text string) {
		file := filepath.Join(p.dir, name)
		err = errors.Join(err, os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(text), 0o600))
	}
	write("zoo.cfg", zooCfg(p.data(), "127.0.0.1", port, lines))
	write("logback.xml", quietLogback)
	write("data/myid", fmt.Sprintln(p.ID))
	for name, text := range config.Files {
		write(name, text)
	}
	for name, text := range config.Data {
		write(filepath.Join("data", name), text)
	}
	return err
}

func (p *Peer) data() string { return filepath.Join(p.dir, "data") }

// Restart starts the server, again after a Kill, at the same address and with
// the data it had. It returns when the server serves, for which a member of an
// ensemble needs another one: of several, restart all at the same time. A
// member that is cut off stays so.
func (p *Peer) Restart(ctx context.Context) error {
	if p.child != nil && p.alive.Err() == nil {
		return fmt.Errorf("the server at %s runs already", p.Addr)
	}
	if err := p.run(); err != nil {
		return err
	}
	// Should the port be another server's, that one would answer, and be gone
	// when its own test ends: make sure that it is the one with our folder.
	_, err := await(ctx, []string{p.Addr}, "conf", p.data(), 150*time.Millisecond, p.failed)
	if err != nil {
		return fmt.Errorf(
			"%s with the ZooKeeper of %s: %w; the end of its log:\n%s",
			p.java,
			p.name,
			err,
			lastLines(p.log(), 25),
		)
	}
	return nil
}

// run starts java.
func (p *Peer) run() error {
	log, err := os.Create(filepath.Join(p.dir, "log"))
	if err != nil {
		return err
	}
	defer log.Close()

	// The shell becomes java only once it is told to, which is when the
	// watchdog can find its number: at no moment is there a java that nobody
	// watches.
	arguments := []string{"-c", `read -r go && exec "$@" </dev/null`, "sh", p.java,
		// Quick to start, and small.
		"-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m",
		// A killed java would leave its performance file in /tmp.
		"-XX:-UsePerfData",
		// Warnings only, in Apache's distribution and in Debian's.
		"-Dlogback.configurationFile=" + filepath.Join(
			p.dir,
			"logback.xml",
		), "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
		"-cp", p.classpath}
	arguments = append(arguments, p.options...)
	java := exec.Command(
		"sh",
		append(arguments, "org.apache.zookeeper.server.quorum.QuorumPeerMain", filepath.Join(p.dir, "zoo.cfg"))...)
	java.Stdout, java.Stderr = log, log
	java.SysProcAttr = process.WithoutCtrlC()
	start, err := java.StdinPipe()
	if err != nil {
		return err
	}
	defer start.Close()
	if err := java.Start(); err != nil {
		return err
	}
	pid := filepath.Join(p.dir, "pid")
	err = os.WriteFile(pid, fmt.Appendln(nil, java.Process.Pid), 0o600)
	if err == nil {
		_, err = start.Write([]byte("go\n"))
	}
	alive, ended := context.WithCancel(context.Background())
	go func() {
		java.Wait()
		os.Remove(pid) // the number is free for another process
		ended()
	}()
	p.child, p.alive, p.paused = java, alive, false
	return err
}

// failed tells why java will never serve, if so. A server of an ensemble that
// cannot have its port goes on trying.
func (p *Peer) failed() error {
	switch {
	case p.alive.Err() != nil:
		return errors.New("java ended before it served")
	case strings.Contains(p.log(), portTaken):
		return errors.New("a port is taken")
	default:
		return nil
	}
}

func (p *Peer) log() string {
	text, _ := os.ReadFile(filepath.Join(p.dir, "log"))
	return string(text)
}

// lastLines returns the last n lines of a text.
func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// Kill ends the server as kill -9 does, paused or not. It returns when the
// server has ended.
func (p *Peer) Kill() error {
	if p.child == nil {
		return nil
	}
	p.child.Process.Kill() // fails if it has ended already
	<-p.alive.Done()
	return nil
}

// Pause stops the server in the midst of what it does: it still accepts
// connections, as its system does that for it, but answers nothing.
func (p *Peer) Pause() error {
	if p.paused {
		return nil
	}
	if err := process.Stop(p.child.Process); err != nil {
		return fmt.Errorf("pause the server at %s: %w", p.Addr, err)
	}
	p.paused = true
	return process.AwaitStop(p.child.Process)
}

// Resume lets a paused server go on, as if no time had passed.
func (p *Peer) Resume() error {
	p.paused = false
	if err := process.Continue(p.child.Process); err != nil {
		return fmt.Errorf("resume the server at %s: %w", p.Addr, err)
	}
	return nil
}

// watchdog starts a shell that runs the script once this process has ended,
// in whatever way, or has called stop, which waits until the script is done.
// The script finds args in $1, $2 and so on.
func watchdog(script string, args ...string) (stop func() error, err error) {
	shell := exec.Command("sh", append([]string{"-c", "cat >/dev/null; " + script, "sh"}, args...)...)
	shell.SysProcAttr = process.WithoutCtrlC()
	alive, err := shell.StdinPipe() // no other child inherits its end of the pipe
	if err == nil {
		err = shell.Start()
	}
	if err != nil {
		return nil, err
	}
	return sync.OnceValue(func() error {
		alive.Close()
		if err := shell.Wait(); err != nil {
			return fmt.Errorf("cleaning up after ZooKeeper: %w", err)
		}
		return nil
	}), nil
}
