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

	"zklock/internal/process"
)

// javaProcess is a server that runs as a child process, with its files in a temporary folder.
type javaProcess struct {
	installation
	dir   string
	clean func() error    // kills java, and removes the folder
	child *exec.Cmd       // the last java
	alive context.Context // ends when java has ended
}

// quietLogback is the configuration of logback. Without one, logback writes everything that it can,
// including each request.
const quietLogback = `<configuration>
  <appender name="out" class="ch.qos.logback.core.ConsoleAppender">
    <encoder><pattern>%level %logger: %msg%n</pattern></encoder>
  </appender>
  <root level="WARN"><appender-ref ref="out"/></root>
</configuration>
`

// machine makes the folder of a server, under a watchdog.
//
// Java has to end, and its folder has to be removed, however this process ends: by Stop, os.Exit, a
// panic, Ctrl-C, or SIGKILL, which leaves no time for a clean-up. Only another process can ensure
// that: the watchdog. It learns from the kernel that this process has ended, because the kernel
// closes a pipe that only this process holds open.
//
// Linux could kill java by itself, through Pdeathsig. But it does so as soon as the thread that
// started java ends, which Go's scheduler decides. And nothing would remove the folder.
func (i installation) machine([]int) (machine, error) {
	dir, err := os.MkdirTemp("", "zklock-")
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNoFolder, err)
	}
	clean, err := watchdog(`read -r pid <"${1:?}"/pid && kill -9 "$pid"
		rm -rf "$1" || { sleep 1; rm -rf "$1"; }`, dir)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return &javaProcess{installation: i, dir: dir, clean: clean}, nil
}

func (p *javaProcess) String() string { return p.java + " with the ZooKeeper of " + p.name }

func (p *javaProcess) data() string { return filepath.Join(p.dir, "data") }

func (p *javaProcess) prepare(zooCfg string, data map[string]string) (err error) {
	write := func(name, text string) {
		file := filepath.Join(p.dir, name)
		err = errors.Join(err, os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(text), 0o600))
	}
	write("zoo.cfg", zooCfg)
	write("logback.xml", quietLogback)
	for name, text := range data {
		write(filepath.Join("data", name), text)
	}
	return err
}

func (p *javaProcess) configure(zooCfg string) error { return p.prepare(zooCfg, nil) }

func (p *javaProcess) start(context.Context) error {
	log, err := os.Create(filepath.Join(p.dir, "log"))
	if err != nil {
		return err
	}
	defer log.Close()

	// The shell becomes java only after it has read a line. That line is sent when the file pid
	// exists, by which the watchdog finds java. So java never runs without the watchdog.
	java := exec.Command("sh", "-c", `read -r go && exec "$@" </dev/null`, "sh", p.java,
		// Quick to start, and small.
		"-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m",
		// A killed java would leave its performance file in /tmp.
		"-XX:-UsePerfData",
		// Warnings only, in Apache's distribution and in Debian's.
		"-Dlogback.configurationFile="+filepath.Join(p.dir, "logback.xml"),
		"-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
		"-cp", p.classpath,
		"org.apache.zookeeper.server.quorum.QuorumPeerMain", filepath.Join(p.dir, "zoo.cfg"))
	java.Env = append(java.Environ(), "LC_ALL=C.UTF-8") // the encoding in which java reads file names
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
		os.Remove(pid) // another process may get this number
		ended()
	}()
	p.child, p.alive = java, alive
	return err
}

func (p *javaProcess) failed(context.Context) error {
	switch {
	case strings.Contains(p.log(context.Background()), "BindException"):
		return errPortTaken // a server of an ensemble keeps trying, and does not end
	case p.alive.Err() != nil:
		return errEnded
	default:
		return nil
	}
}

func (p *javaProcess) log(context.Context) string {
	text, _ := os.ReadFile(filepath.Join(p.dir, "log"))
	return string(text)
}

func (p *javaProcess) kill() error {
	if p.child == nil {
		return nil
	}
	p.child.Process.Kill() // fails if it has ended already
	<-p.alive.Done()
	return nil
}

func (p *javaProcess) pause() error {
	if err := process.Stop(p.child.Process); err != nil {
		return err
	}
	return process.AwaitStop(p.child.Process)
}

func (p *javaProcess) resume() error { return process.Continue(p.child.Process) }

func (p *javaProcess) remove() error { return errors.Join(p.kill(), p.clean()) }

// watchdog starts a shell that runs the script when this process has ended in any way, or has
// called stop. stop returns when the script has ended. The script finds args in $1, $2 and so on.
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
