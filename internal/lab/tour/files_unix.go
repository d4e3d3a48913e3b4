//go:build unix

package tour

import "syscall"

// mostFiles returns how many files this process may have open. Each connection is one.
func mostFiles() (most int, known bool) {
	var limit syscall.Rlimit
	err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit)
	return int(min(limit.Max, 1<<30)), err == nil
}
