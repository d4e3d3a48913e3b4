package process

import (
	"os"
	"syscall"
)

// Nothing gets as far as here on Windows: zkserver.Start has failed before.

func Stop(*os.Process) error { return ErrWindows }

func Continue(*os.Process) error { return ErrWindows }

func Continued() <-chan os.Signal { return nil }

func AwaitStop(*os.Process) error { return ErrWindows }

func WithoutCtrlC() *syscall.SysProcAttr { return nil }
