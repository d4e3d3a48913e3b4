// Command filter passes on what it reads, line by line, in Chinese.
package main

import (
	"bufio"
	"fmt"
	"os"

	"zklock/internal/upkeep/words"
)

func main() {
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		fmt.Println(words.Translate(lines.Text()))
	}
}
