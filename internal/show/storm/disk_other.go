//go:build !linux

package main

import "zklock/internal/server/zkserver"

// stallDisk lets a server's disk stall. Only Linux can stop a single thread of another
// process: elsewhere the whole server stands still.
func stallDisk(server *zkserver.Peer) (goOn func(), err error) {
	return func() { _ = server.Resume() }, server.Pause()
}
