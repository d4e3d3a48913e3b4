package stage

import (
	"fmt"
	"os/exec"
	"runtime"
)

// Open opens an address in the reader's browser.
func Open(address string) error {
	opener := "xdg-open"
	if runtime.GOOS == "darwin" {
		opener = "open"
	}
	if err := exec.Command(opener, address).Start(); err != nil {
		return fmt.Errorf("%w: open the address above in a browser", err)
	}
	return nil
}
