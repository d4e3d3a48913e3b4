//go:build race

package page

func init() { largest = 300 } // a thousand sessions are too much for the race detector
