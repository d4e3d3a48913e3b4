// Package process starts client processes: this program once more, to play a
// role of its own. Parent and child call one another's methods, by net/rpc over
// pipes that no fault of a network touches. A child can be stopped, continued
// and killed, and ends with its parent.
//
// A program has its roles at the beginning of main, or of TestMain:
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

// ErrWindows is why nothing runs on Windows itself: a process is stopped, continued and
// killed with Unix's signals, and a shell cleans up after it.
var ErrWindows = errors.New("this does not run on Windows itself: use WSL2, as docs/workshop.md says")

// RunsOn returns an error on a system that cannot run this, named as in runtime.GOOS.
func RunsOn(system string) error {
	if system == "windows" {
		return ErrWindows
	}
	return nil
}

// Stopped is the exit code of a command that Ctrl-C has ended, as a shell has it.
const Stopped = 130

// UntilStopped returns a context that ends with Ctrl-C, or when the process is told to
// end. A second Ctrl-C does not wait for anything.
func UntilStopped() (ctx context.Context, stop context.CancelFunc) {
	ctx, stop = signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}

// ParseFlags reads a command's flags. An error about them is one line.
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

// A Call calls a method of the other side: exported, with two arguments, the second
// a pointer for the answer, and an error.
type Call func(method string, args, answer any) error

// other is what each side calls the other.
const other = "Other"

// variable names the role that a child plays.
const variable = "ZKLOCK_PART"

// InRole has a command play a role: it runs this program, or another one that has the role.
func InRole(name string, cmd *exec.Cmd) *exec.Cmd {
	cmd.Env = append(cmd.Environ(), variable+"="+name)
	return cmd
}

// Plays tells whether this process was started to play a role. What it starts itself
// was not.
func Plays(name string) bool {
	if os.Getenv(variable) != name {
		return false
	}
	os.Unsetenv(variable)
	return true
}

// EndWithParent is for a child that its parent does not call: it ends the process when
// the parent has ended, or has closed the child's input.
func EndWithParent() { _, _ = io.Copy(io.Discard, lifeline{os.Stdin}) }

// Role makes a process that Start has started in this role a child: begin
// returns what the parent can call. In any other process it does nothing.
func Role(name string, begin func(parent Call) any) {
	if !Plays(name) {
		return
	}
	signal.Ignore(os.Interrupt) // Ctrl-C is for the parent, which ends this one
	stdout := os.Stdout
	os.Stdout = os.Stderr // for whatever else prints
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
	err       error // once it has ended
}

// Start starts a child that plays a role. What it has to say to people goes to the
// standard error.
func Start(name string) (*Process, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return StartAs(name, os.Stderr, program)
}

// StartAs is Start of another program that has the role, with its arguments.
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

// Call calls one of the child's methods. If the child ends meanwhile, the error
// says how.
func (p *Process) Call(method string, args, answer any) error {
	err := p.toChild.Call(other+"."+method, args, answer)
	var answered rpc.ServerError
	if err != nil && !errors.As(err, &answered) {
		<-p.ended
		err = fmt.Errorf("it has ended: %v", p.cmd.ProcessState)
	}
	return err
}

// Stop stops the child in the midst of what it does.
func (p *Process) Stop() error { return Stop(p.cmd.Process) }

// Continue lets the child go on that was stopped.
func (p *Process) Continue() error { return Continue(p.cmd.Process) }

// Kill ends the child as kill -9 does.
func (p *Process) Kill() error { return p.cmd.Process.Kill() }

// Ended is closed when the child has ended, however that came.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Close ends the child in good order, or kills it if it does not end, as when it
// is stopped. The error is about how it ended.
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

// serve answers calls until the line ends.
func serve(receiver any, line io.ReadWriteCloser) {
	server := rpc.NewServer()
	if err := server.RegisterName(other, receiver); err != nil {
		panic(err) // it has no methods that can be called
	}
	server.ServeConn(line)
}

// pipes are a line both ways.
type pipes struct {
	io.ReadCloser
	io.WriteCloser
}

func (p pipes) Close() error { return errors.Join(p.WriteCloser.Close(), p.ReadCloser.Close()) }

// lifeline is what a child reads from. Its end is the child's: what still runs is
// not waited for.
type lifeline struct{ io.ReadCloser }

func (l lifeline) Read(b []byte) (int, error) {
	n, err := l.ReadCloser.Read(b)
	if err != nil {
		os.Exit(0)
	}
	return n, err
}
