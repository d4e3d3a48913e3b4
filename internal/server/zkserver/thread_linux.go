package zkserver

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// StopThread stops one of the server's threads, as a machine does that has no time
// for it, while all others go on. name is how the thread's name begins: the system
// keeps 15 letters of it. It works on Linux.
func (p *Peer) StopThread(name string) (goOn func(), err error) {
	tid, err := p.thread(name)
	if err != nil {
		return nil, err
	}
	stopped, end, gone := make(chan error), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		runtime.LockOSThread() // and ends with it: only the thread that has stopped another may let it go
		err := syscall.PtraceAttach(tid)
		for err == nil {
			const anyThread = 0x40000000 // __WALL: not only the first one of a process
			if _, err = syscall.Wait4(tid, nil, anyThread, nil); err != syscall.EINTR {
				break
			}
			err = nil
		}
		stopped <- err
		if err == nil {
			<-end
			_ = syscall.PtraceDetach(tid)
		}
	}()
	if err := <-stopped; err != nil {
		return nil, fmt.Errorf("stop the thread %s of the server at %s: %w", name, p.Addr, err)
	}
	return sync.OnceFunc(func() { close(end); <-gone }), nil
}

// thread finds a thread's number by the beginning of its name.
func (p *Peer) thread(name string) (tid int, err error) {
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/comm", p.child.Process.Pid))
	for _, file := range files {
		if text, _ := os.ReadFile(file); strings.HasPrefix(string(text), name) {
			return strconv.Atoi(filepath.Base(filepath.Dir(file)))
		}
	}
	return 0, fmt.Errorf("the server at %s has no thread %s…: %w", p.Addr, name, err)
}
