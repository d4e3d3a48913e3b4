//go:build race

package main

func init() { largest = 100 } // a thousand sessions are too much for the race detector
