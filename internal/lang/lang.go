// Package lang has what is said in two languages. The pages in a browser, and the verdicts and
// hints of the exercises, are for English and for Chinese readers; what else a terminal prints is
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

// Both is one sentence in both languages, as it stands.
func Both(en, zh string) Text { return Text{en, zh} }

// String is the English sentence, for whatever prints a Text in a terminal.
func (t Text) String() string { return t.EN }

// Of puts arguments into both sentences, as fmt.Sprintf does. An argument that is a Text
// goes into each in its own language.
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

// Chinese tells whether a page in the browser begins in Chinese: ZKLOCK_LANG=zh asks for it.
func Chinese() bool { return strings.HasPrefix(os.Getenv("ZKLOCK_LANG"), "zh") }
