//go:build race

package model

// The race detector makes an exploration ten times slower, and an exploration has no goroutines. So the unit
// is longer, and cases that still have many states are left out.
func init() { most, isCoarse = 60_000, true }
