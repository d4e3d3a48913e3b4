//go:build race

package tour

func init() { largest = 300 } // a thousand sessions are too much for the race detector
