//go:build unix

package process

import (
	"errors"
	"os"
	"os/signal"
	"syscall"
)

// Stop stops a child in the midst of what it does.
func Stop(child *os.Process) error { return child.Signal(syscall.SIGSTOP) }

// Continue lets a stopped child go on.
func Continue(child *os.Process) error { return child.Signal(syscall.SIGCONT) }

// Continued is for a child: it tells each time when somebody lets it go on.
func Continued() <-chan os.Signal {
	told := make(chan os.Signal, 1)
	signal.Notify(told, syscall.SIGCONT)
	return told
}

// AwaitStop returns when all threads of a child have stopped: the kernel tells.
func AwaitStop(child *os.Process) error {
	for {
		_, err := syscall.Wait4(child.Pid, nil, syscall.WUNTRACED, nil)
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// WithoutCtrlC is for a child that must not get its parent's Ctrl-C.
func WithoutCtrlC() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
