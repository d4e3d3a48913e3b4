// Package process starts child processes, such as the clients of a lock. A child runs this program, or
// another one, in a role. Parent and child call each other's methods by net/rpc. They do so over pipes,
// so that no fault of the network affects the calls. A child can be stopped, continued and killed. It
// ends with its parent.
//
// A program declares its roles at the beginning of main, or of TestMain:
//
//	process.Role("client", func(parent process.Call) any { return &Client{parent} })
package process

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/rpc"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"
)

// ErrWindows says that nothing runs on Windows itself. This package stops, continues and kills a
// process with the signals of Unix, and a shell cleans up after it.
var ErrWindows = errors.New("this does not run on Windows itself: use WSL2, as docs/workshop.md says")

// RunsOn returns an error if this package cannot run on a system. system is a value of runtime.GOOS.
func RunsOn(system string) error {
	if system == "windows" {
		return ErrWindows
	}
	return nil
}

// Stopped is the exit code of a command that Ctrl-C has ended. Shells use the same code.
const Stopped = 130

// UntilStopped returns a context that ends when the process receives an interrupt, as by Ctrl-C, or a
// SIGTERM. A second Ctrl-C ends the process at once.
func UntilStopped() (ctx context.Context, stop context.CancelFunc) {
	ctx, stop = signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}

// ParseFlags reads a command's flags. An error about a flag has one line.
func ParseFlags(flags *flag.FlagSet, args []string) error {
	flags.Init(flags.Name(), flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	err := flags.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		flags.SetOutput(os.Stderr)
		flags.PrintDefaults()
	}
	if err != nil {
		return fmt.Errorf("%w (see make help)", err)
	}
	return nil
}

// A Call calls a method of the other side. The method is exported, has two arguments, the second of
// which is a pointer for the answer, and returns an error.
type Call func(method string, args, answer any) error

// other is the name by which each side calls the other.
const other = "Other"

// variable is the environment variable that names the role of a child.
const variable = "ZKLOCK_PART"

// InRole makes a command play a role. The command runs this program, or another one that has the role.
func InRole(name string, cmd *exec.Cmd) *exec.Cmd {
	cmd.Env = append(cmd.Environ(), variable+"="+name)
	return cmd
}

// Plays reports whether this process was started to play a role. It unsets the variable, so that the
// processes that this one starts do not play the role.
func Plays(name string) bool {
	if os.Getenv(variable) != name {
		return false
	}
	os.Unsetenv(variable)
	return true
}

// EndWithParent is for a child whose parent does not call its methods. It ends the process when the
// parent has ended, or has closed the child's input.
func EndWithParent() { _, _ = io.Copy(io.Discard, lifeline{os.Stdin}) }

// Role lets a process that Start has started in this role answer its parent's calls. The parent calls
// the methods of the value that begin returns. In any other process, Role does nothing.
func Role(name string, begin func(parent Call) any) {
	if !Plays(name) {
		return
	}
	signal.Ignore(os.Interrupt) // Ctrl-C is for the parent, which ends this process
	stdout := os.Stdout
	os.Stdout = os.Stderr // for everything else that prints
	parent := rpc.NewClient(pipes{os.NewFile(3, "answers"), os.NewFile(4, "calls")})
	call := func(method string, args, answer any) error { return parent.Call(other+"."+method, args, answer) }
	serve(begin(call), pipes{lifeline{os.Stdin}, stdout})
}

// Process is a child.
type Process struct {
	cmd       *exec.Cmd
	toChild   *rpc.Client
	fromChild pipes
	ended     chan struct{}
	err       error // how it has ended; set before ended is closed
}

// Start starts a child that plays a role. Everything that the child prints goes to the standard error.
func Start(name string) (*Process, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return StartAs(name, os.Stderr, program)
}

// StartAs is Start for another program that has the role, with its arguments. What the child prints
// goes to stderr.
func StartAs(name string, stderr io.Writer, program string, args ...string) (*Process, error) {
	p := &Process{cmd: InRole(name, exec.Command(program, args...)), ended: make(chan struct{})}
	p.cmd.Stderr = stderr
	stdin, err1 := p.cmd.StdinPipe()
	stdout, err2 := p.cmd.StdoutPipe()
	childReads, answers, err3 := os.Pipe()
	calls, childWrites, err4 := os.Pipe()
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return nil, err
	}
	p.cmd.ExtraFiles = []*os.File{childReads, childWrites}
	p.fromChild = pipes{calls, answers}
	err := p.cmd.Start()
	childReads.Close()
	childWrites.Close()
	if err != nil {
		return nil, errors.Join(err, p.fromChild.Close())
	}
	p.toChild = rpc.NewClient(pipes{stdout, stdin})
	go func() {
		defer close(p.ended)
		p.err = p.cmd.Wait()
		p.fromChild.Close()
	}()
	return p, nil
}

// Serve lets the child call the methods of a receiver, until the child ends.
func (p *Process) Serve(receiver any) { go serve(receiver, p.fromChild) }

// Call calls one of the child's methods. If the child ends before it answers, the error says how it
// has ended.
func (p *Process) Call(method string, args, answer any) error {
	err := p.toChild.Call(other+"."+method, args, answer)
	var answered rpc.ServerError
	if err != nil && !errors.As(err, &answered) {
		<-p.ended
		err = fmt.Errorf("it has ended: %v", p.cmd.ProcessState)
	}
	return err
}

// Stop pauses the child, whatever it is doing.
func (p *Process) Stop() error { return Stop(p.cmd.Process) }

// Continue lets a stopped child continue.
func (p *Process) Continue() error { return Continue(p.cmd.Process) }

// Kill ends the child as kill -9 does.
func (p *Process) Kill() error { return p.cmd.Process.Kill() }

// Ended returns a channel that is closed when the child has ended, for whatever reason.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Close makes the child end by closing its input. It kills a child that does not end within ten
// seconds, such as a stopped one. The error says how the child has ended.
func (p *Process) Close() error {
	p.toChild.Close()
	select {
	case <-p.ended:
	case <-time.After(10 * time.Second):
		_ = p.Kill()
		<-p.ended
	}
	return p.err
}

// serve answers calls until the connection ends.
func serve(receiver any, line io.ReadWriteCloser) {
	server := rpc.NewServer()
	if err := server.RegisterName(other, receiver); err != nil {
		panic(err) // the receiver has no methods that can be called
	}
	server.ServeConn(line)
}

// pipes is a connection in both directions.
type pipes struct {
	io.ReadCloser
	io.WriteCloser
}

func (p pipes) Close() error { return errors.Join(p.WriteCloser.Close(), p.ReadCloser.Close()) }

// lifeline is the input of a child. At its end the process exits, and does not wait for calls that are
// still running.
type lifeline struct{ io.ReadCloser }

func (l lifeline) Read(b []byte) (int, error) {
	n, err := l.ReadCloser.Read(b)
	if err != nil {
		os.Exit(0)
	}
	return n, err
}
