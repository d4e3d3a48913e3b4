// Package inmemory is how leasedtest reaches into leased, and nobody else can.
package inmemory

// Leased has the methods that leasedtest needs: see inmemory.go in package leased, which sets it. It has
// no type here, because this package cannot import leased.
var Leased any

// Place is the place of a call that has been let in.
type Place struct {
	Znode   string
	Token   int64
	Lease   any          // what the hold depends on: what Lease has returned before the call was let in
	Release func() error // takes the place out of its line
}
