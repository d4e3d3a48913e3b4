package process

import (
	"os"
	"syscall"
)

// On Windows no command gets as far as these functions, because zkserver.Start fails before.

func Stop(*os.Process) error { return ErrWindows }

func Continue(*os.Process) error { return ErrWindows }

func Continued() <-chan os.Signal { return nil }

func AwaitStop(*os.Process) error { return ErrWindows }

func WithoutCtrlC() *syscall.SysProcAttr { return nil }
