// Package lang has what is said in two languages. The pages in a browser are for English
// and for Chinese readers; what a terminal prints is English.
package lang

import (
	"os"
	"strings"
)

// A Text is one sentence in both languages.
type Text struct {
	EN string `json:"en"`
	ZH string `json:"zh"`
}

// String is the English sentence, for whatever prints a Text in a terminal.
func (t Text) String() string { return t.EN }

// Chinese tells whether a page in the browser begins in Chinese: ZKLOCK_LANG=zh asks for it.
func Chinese() bool { return strings.HasPrefix(os.Getenv("ZKLOCK_LANG"), "zh") }
