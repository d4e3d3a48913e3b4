// Package inmemory has the types with which leasedtest gets at what leased does not export. No program outside
// leased can name them.
package inmemory

// Key is the argument of leased.InMemory.
type Key struct{}

// Place is the place in the queue of a call that acquires the lock.
type Place struct {
	Znode   string
	Token   int64
	Release func() error // removes the place from its line
}
