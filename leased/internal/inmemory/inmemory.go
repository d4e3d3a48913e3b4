// Package inmemory gives leasedtest, and no other package, access to what leased does not export.
package inmemory

// Leased has the methods that leasedtest needs: see inmemory.go in package leased, which sets it. It has
// no type here, because this package cannot import leased.
var Leased any

// Place is the place in the queue of a call that has acquired the lock.
type Place struct {
	Znode   string
	Token   int64
	Lease   any          // what the hold depends on: what Lease has returned before the call acquired the lock
	Release func() error // removes the place from its line
}
