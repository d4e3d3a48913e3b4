// Package lang has texts in two languages. The pages in a browser, and the verdicts and hints of
// the exercises, are in English and in Chinese. Everything else that a terminal shows is in
// English.
package lang

import (
	"fmt"
	"os"
	"strings"
)

// A Text is one sentence in both languages.
type Text struct {
	EN string `json:"en"`
	ZH string `json:"zh"`
}

// Both returns a Text of the two sentences, unchanged.
func Both(en, zh string) Text { return Text{en, zh} }

// String returns the English sentence, for code that prints a Text in a terminal.
func (t Text) String() string { return t.EN }

// Of formats both sentences with the arguments, as fmt.Sprintf does. If an argument is a Text, each
// sentence gets it in its own language.
func Of(en, zh string, args ...any) Text {
	var inEnglish, inChinese []any
	for _, arg := range args {
		text, isText := arg.(Text)
		if !isText {
			inEnglish, inChinese = append(inEnglish, arg), append(inChinese, arg)
			continue
		}
		inEnglish, inChinese = append(inEnglish, text.EN), append(inChinese, text.ZH)
	}
	return Text{fmt.Sprintf(en, inEnglish...), fmt.Sprintf(zh, inChinese...)}
}

// Chinese reports whether a page in the browser begins in Chinese, because ZKLOCK_LANG=zh is set.
func Chinese() bool { return strings.HasPrefix(os.Getenv("ZKLOCK_LANG"), "zh") }
