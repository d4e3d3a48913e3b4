package process

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	Role("echo", func(parent Call) any { return &Echo{parent} })
	goleak.VerifyTestMain(m)
}

// Echo is what the child of these tests can be asked.
type Echo struct{ parent Call }

func (e *Echo) Say(word string, answer *string) error {
	return e.parent("Hear", "it says "+word, answer)
}

func (e *Echo) Fail(why string, _ *bool) error { return errors.New(why) }
func (e *Echo) Exit(code int, _ *bool) error   { os.Exit(code); return nil }
func (e *Echo) Hang(bool, *bool) error         { select {} }

// Ear is what the child can call.
type Ear struct{}

func (Ear) Hear(words string, answer *string) error {
	*answer = words + ", and was heard"
	return nil
}

func start(t *testing.T) *Process {
	p, err := Start("echo")
	require.NoError(t, err)
	t.Cleanup(func() { _ = p.Close() })
	p.Serve(Ear{})
	return p
}

func TestParentAndChildCallOneAnother(t *testing.T) {
	p := start(t)
	var answer string
	require.NoError(t, p.Call("Say", "hello", &answer))
	require.Equal(t, "it says hello, and was heard", answer)
	require.EqualError(t, p.Call("Fail", "no", new(bool)), "no")
	hangs := make(chan error)
	go func() { hangs <- p.Call("Hang", true, new(bool)) }()
	require.NoError(t, p.Close(), "it ends in good order, whatever still runs")
	require.EqualError(t, <-hangs, "it has ended: exit status 0")
}

func TestAChildThatEnds(t *testing.T) {
	for what, c := range map[string]struct {
		end  func(*Process)
		want string
	}{
		"by itself": {func(p *Process) { _ = p.Call("Exit", 3, new(bool)) }, "exit status 3"},
		"killed":    {func(p *Process) { _ = p.Kill() }, "signal: killed"},
	} {
		t.Run(what, func(t *testing.T) {
			p := start(t)
			c.end(p)
			<-p.Ended()
			require.EqualError(t, p.Close(), c.want)
			require.EqualError(t, p.Call("Say", "anything", new(string)), "it has ended: "+c.want)
		})
	}
}

func TestStoppedAndContinued(t *testing.T) {
	p := start(t)
	require.NoError(t, p.Stop())
	stopped := make(chan error, 1)
	go func() { stopped <- AwaitStop(p.cmd.Process) }()
	await(t, "the child to stop", stopped)
	answered := make(chan error, 1)
	go func() { answered <- p.Call("Say", "hello", new(string)) }()
	require.NoError(t, p.Continue())
	await(t, "the child that goes on to answer", answered)
}

func await(t *testing.T, what string, done <-chan error) {
	t.Helper()
	select {
	case err := <-done:
		require.NoError(t, err, what)
	case <-time.After(30 * time.Second):
		require.Fail(t, "timed out waiting for "+what)
	}
}

func TestWindowsIsToldToUseWSL2(t *testing.T) {
	require.ErrorContains(t, RunsOn("windows"), "use WSL2")
	require.NoError(t, RunsOn("linux"))
	require.NoError(t, RunsOn("darwin"))
}
