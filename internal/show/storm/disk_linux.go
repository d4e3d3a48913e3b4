package main

import "zklock/internal/server/zkserver"

// stallDisk lets a server's disk stall: the thread that writes to it stands still, as in
// an fsync that does not return, and all others go on.
func stallDisk(server *zkserver.Peer) (goOn func(), err error) {
	return server.StopThread("SyncThread")
}
