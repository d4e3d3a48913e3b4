// Command filter passes on what it reads, line by line. A line that is a sentence, behind
// whatever stands before it, has it in Chinese.
package main

import (
	"bufio"
	"fmt"
	"os"

	"zklock/internal/upkeep/words"
)

func main() {
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		fmt.Println(inChinese(lines.Text()))
	}
}

// inChinese puts the longest end of a line into Chinese that is a sentence.
func inChinese(line string) string {
	for at := range line {
		isAfterSpace := at == 0 || line[at-1] == ' '
		begins := isAfterSpace && line[at] != ' '
		if chinese, known := words.Pairs()[line[at:]]; begins && known {
			return line[:at] + chinese
		}
	}
	return line
}
