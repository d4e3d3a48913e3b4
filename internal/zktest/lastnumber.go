package zktest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"zklock/internal/zkserver"
)

// What NewAtTheEnd gives: in each of its directories three numbers are left.
const (
	FirstAtTheEnd = zkserver.LastNumber - 2
	dirsAtTheEnd  = 6
	rootsAtTheEnd = 300 // more than the tests of any one package take, run twenty times
)

// rootAtTheEnd is the n-th test's, and its directories.
func rootAtTheEnd(n int) (root string, dirs []string) {
	root = fmt.Sprintf("/zklock-end-%04d", n)
	dirs = append(dirs, root+"/lock")
	for i := 2; i <= dirsAtTheEnd; i++ {
		dirs = append(dirs, fmt.Sprintf("%s/lock%d", root, i))
	}
	return root, dirs
}

// theEnd is the server of this process whose directories' numbers come to their end.
// The first call starts it. It is always a private one: on a server that exists already,
// nobody can tell a directory that it has had so many children.
var theEnd = sync.OnceValues(func() (*zkserver.Server, error) {
	var all []string
	for n := range rootsAtTheEnd {
		root, dirs := rootAtTheEnd(n)
		all = slices.Concat(all, []string{root}, dirs)
	}
	s, err := zkserver.StartNear(context.Background(), FirstAtTheEnd, all...)
	started(s)
	return s, err
})

var takenAtTheEnd atomic.Int32 // roots

// NewAtTheEnd is New on a server of its own, with directories that nobody else has got
// and that have three numbers left: their next child gets FirstAtTheEnd. So it is in the
// test's root itself.
func NewAtTheEnd(t T) (z *Zoo, dirs []string) {
	t.Helper()
	server, err := theEnd()
	if err != nil {
		t.Fatalf("the last numbers need a private server, which finds them in its log: %v", err)
	}
	n := int(takenAtTheEnd.Add(1)) - 1
	if n >= rootsAtTheEnd {
		t.Fatalf("all %d directories with few numbers left have been used", rootsAtTheEnd)
	}
	root, dirs := rootAtTheEnd(n)
	return newAt(t, server, root), dirs
}
