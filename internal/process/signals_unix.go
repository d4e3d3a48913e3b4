//go:build unix

package process

import (
	"errors"
	"os"
	"os/signal"
	"syscall"
)

// Stop pauses a child, whatever it is doing.
func Stop(child *os.Process) error { return child.Signal(syscall.SIGSTOP) }

// Continue lets a stopped child continue.
func Continue(child *os.Process) error { return child.Signal(syscall.SIGCONT) }

// Continued is for a child. Its channel has a value each time another process lets the child continue.
func Continued() <-chan os.Signal {
	told := make(chan os.Signal, 1)
	signal.Notify(told, syscall.SIGCONT)
	return told
}

// AwaitStop returns when the kernel reports that all threads of a child have stopped.
func AwaitStop(child *os.Process) error {
	for {
		_, err := syscall.Wait4(child.Pid, nil, syscall.WUNTRACED, nil)
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// WithoutCtrlC returns the attributes of a child that does not receive its parent's Ctrl-C: it gets a
// process group of its own.
func WithoutCtrlC() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
