package zktest

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"zklock/internal/process"
)

// Child lets a test binary run the process that really crashes. A test starts
// its own binary again with Process. There Child, called in TestMain before
// Main, runs the role of that process:
//
//	func TestMain(m *testing.M) {
//		zktest.Child("holder", hold)
//		zktest.Main(m)
//	}
//
// play gets the server's addresses and the arguments given to Process. The
// process ends when play returns, and when its parent has ended.
func Child(role string, play func(servers, args []string)) {
	if !process.Plays(role) {
		return
	}
	go process.EndWithParent()
	play(strings.Split(os.Args[1], ","), os.Args[2:])
	os.Exit(0)
}

// child is a run of this test binary as the named Child.
func (z *Zoo) child(role string, args ...string) *exec.Cmd {
	args = append([]string{strings.Join(z.Servers(), ",")}, args...)
	return process.InRole(role, exec.CommandContext(z.Ctx, os.Args[0], args...))
}

// Say is for the child: it prints one line for its parent's Line.
func Say(format string, args ...any) { fmt.Printf(format+"\n", args...) }

// Continued is for the child: its channel has a value each time the parent lets it continue.
func Continued() <-chan os.Signal { return process.Continued() }

// Process is a child process. A test exchanges lines of text with it, so it can be in any language.
type Process struct {
	cmd   *exec.Cmd
	stdin io.Writer
	lines chan string
	zoo   *Zoo
}

// Process starts this test binary again as the named Child. It ends with the
// test.
func (z *Zoo) Process(role string, args ...string) *Process {
	z.t.Helper()
	return z.Command(z.child(role, args...))
}

// Command starts a program. It is killed at the test's end, and may take the end of its input as
// the end of its parent.
func (z *Zoo) Command(cmd *exec.Cmd) *Process {
	z.t.Helper()
	p := &Process{cmd: cmd, lines: make(chan string, 100), zoo: z}
	p.cmd.Stderr = os.Stderr
	stdin, err1 := p.cmd.StdinPipe()
	stdout, err2 := p.cmd.StdoutPipe()
	if err1 != nil || err2 != nil {
		z.t.Fatalf("pipes to %s: %v, %v", cmd, err1, err2)
	}
	p.stdin = stdin
	if err := p.cmd.Start(); err != nil {
		z.t.Fatalf("start %s: %v", cmd, err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer close(p.lines)
		for scanner := bufio.NewScanner(stdout); scanner.Scan(); {
			p.lines <- scanner.Text()
		}
		_ = p.cmd.Wait() // usually it was killed on purpose
	}()
	z.t.Cleanup(func() {
		stdin.Close()
		p.Kill()
		for range p.lines { // the test does not read them any more
		}
		<-ended
	})
	return p
}

// Tell writes a line to the process.
func (p *Process) Tell(line string) {
	p.zoo.t.Helper()
	if _, err := fmt.Fprintln(p.stdin, line); err != nil {
		p.zoo.t.Fatalf("tell %s %q: %v", p.cmd, line, err)
	}
}

// Line returns the next line that the process prints.
func (p *Process) Line() string {
	p.zoo.t.Helper()
	return AwaitChan(p.zoo, "a line from the child process", p.lines)
}

// Kill ends the process at once.
func (p *Process) Kill() { _ = p.cmd.Process.Kill() }

// Terminate tells the process to end, by SIGTERM, as a service manager does.
func (p *Process) Terminate() {
	p.zoo.t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		p.zoo.t.Fatalf("tell %s to end: %v", p.cmd, err)
	}
}

// Stop pauses the process, whatever it is doing.
func (p *Process) Stop() {
	p.zoo.t.Helper()
	if err := process.Stop(p.cmd.Process); err != nil {
		p.zoo.t.Fatalf("stop %s: %v", p.cmd, err)
	}
}

// Continue lets a stopped process continue.
func (p *Process) Continue() {
	p.zoo.t.Helper()
	if err := process.Continue(p.cmd.Process); err != nil {
		p.zoo.t.Fatalf("let %s go on: %v", p.cmd, err)
	}
}
