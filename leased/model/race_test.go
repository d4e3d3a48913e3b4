//go:build race

package model

// The race detector makes an exploration ten times slower, and there are no goroutines in
// it. So the unit is longer, and what still has many states is left out.
func init() { most, isCoarse = 60_000, true }
