// Package setting reads what a command is told by make's variables: make hands
// TIME of "make storm TIME=10m" on in the environment.
package setting

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
)

// Read returns what a variable says, or the usual if it is not set. An error of
// parse becomes one that names the variable, its value and what is allowed, a string or a
// words.Text.
func Read[T any](variable string, usual T, allowed any, parse func(string) (T, error)) (T, error) {
	text := os.Getenv(variable)
	if text == "" {
		return usual, nil
	}
	value, err := parse(text)
	if err != nil {
		return usual, fmt.Errorf("%s=%s: it has to be %s", variable, text, allowed)
	}
	return value, nil
}

// Number reads a whole number of at least least and at most most. 03 is 3.
func Number(variable string, usual, least, most int) (int, error) {
	allowed := fmt.Sprintf("a number from %d to %d", least, most)
	return Read(variable, usual, allowed, func(text string) (int, error) {
		n, err := strconv.Atoi(text)
		isOutOfRange := n < least || n > most
		if err == nil && isOutOfRange {
			err = strconv.ErrRange
		}
		return n, err
	})
}

// Open opens an address in the browser, if OPEN=1 asks for that.
func Open(address string) error {
	if os.Getenv("OPEN") == "" {
		return nil
	}
	opener := "xdg-open"
	if runtime.GOOS == "darwin" {
		opener = "open"
	}
	if err := exec.Command(opener, address).Start(); err != nil {
		return fmt.Errorf("OPEN=1: %w: open the address above in a browser", err)
	}
	return nil
}
