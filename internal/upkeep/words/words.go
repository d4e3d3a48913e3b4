// Package words lets the tools speak Chinese. Their code is written in English: a
// format in it is the key to the Chinese one in zh-CN.txt. What a tool says is a Text
// from the moment it is made: the sentence in both languages, out of a format and what
// is put into it. Whoever prints it chooses; nothing that was printed is read again.
//
// ZKLOCK_LANG=zh, or a LC_ALL or LANG that begins with zh, chooses Chinese.
package words

import (
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"zklock/internal/lang"
)

// wished is the language that the environment asks for, also in a test, and asked whether
// that is Chinese.
var (
	wished = os.Getenv("ZKLOCK_LANG")
	asked  = Chinese()
)

// AsAsked is for a test that is read by a learner: it speaks the reader's language.
func AsAsked() { os.Setenv("ZKLOCK_LANG", wished) }

func init() {
	if testing.Testing() { // tests, and what they start, compare English
		os.Setenv("ZKLOCK_LANG", cmp.Or(os.Getenv("ZKLOCK_TEST_LANG"), "en"))
	}
}

// Chinese tells whether the reader wants Chinese.
func Chinese() bool {
	return strings.HasPrefix(cmp.Or(os.Getenv("ZKLOCK_LANG"), os.Getenv("LC_ALL"), os.Getenv("LANG")), "zh")
}

// A Text is what a tool says, in both languages. A page gets both.
type Text struct {
	EN string `json:"en"`
	ZH string `json:"zh"`
}

// Of makes a text of a format, as fmt.Sprintf does. What is put into it is in the text's
// language, too: a Text, an error, and a string that is a key of zh-CN.txt.
func Of(format string, args ...any) Text {
	english := fmt.Sprintf(format, args...) // and so go vet looks at whoever calls this
	if slices.ContainsFunc(args, isText) {
		english = fmt.Sprintf(format, inEnglish(args)...)
	}
	return Text{english, chinese(format, args)}
}

// chinese is what a format says in Chinese.
func chinese(format string, args []any) string {
	own := around(format, func(core string) string { return cmp.Or(Pairs()[core], core) })
	return fmt.Sprintf(plain.Replace(own), inChinese(args)...)
}

// plain makes a format of Errorf one of Sprintf.
var plain = strings.NewReplacer("%w", "%v", "]w", "]v")

// Whole is a text in which nothing is put, such as a property's name. One that is no key
// of zh-CN.txt is the same in both languages. A name may have a number behind it: the key
// of "client 3" is "client %d".
func Whole(text string) Text {
	return Text{text, around(text, func(core string) string { return cmp.Or(Pairs()[core], numbered(core), core) })}
}

// numbered is the Chinese of a name with a number behind it, if there is one.
func numbered(text string) string {
	at := strings.LastIndex(text, " ") + 1
	name, number := text[:at], text[at:]
	if _, err := strconv.Atoi(number); err != nil {
		return ""
	}
	return strings.NewReplacer("%d", number, "%s", number).Replace(cmp.Or(Pairs()[name+"%d"], Pairs()[name+"%s"]))
}

// Capital makes the English text begin with a capital letter.
func (t Text) Capital() Text { return Text{strings.ToUpper(t.EN[:1]) + t.EN[1:], t.ZH} }

// String is the text in the reader's language.
func (t Text) String() string {
	if Chinese() {
		return t.ZH
	}
	return t.EN
}

// AsAsked is a line that a test prints: it is in the reader's language.
func (t Text) AsAsked() string {
	if asked {
		return t.ZH
	}
	return t.EN
}

// Changed changes both languages in the same way.
func (t Text) Changed(change func(string) string) Text { return Text{change(t.EN), change(t.ZH)} }

// Join puts texts one behind the other.
func Join(texts []Text, between string) Text {
	var en, zh []string
	for _, t := range texts {
		en, zh = append(en, t.EN), append(zh, t.ZH)
	}
	return Text{strings.Join(en, between), strings.Join(zh, between)}
}

// failure is an error that Errorf has made.
type failure struct {
	error
	text Text
}

func (f failure) Unwrap() error { return f.error }

// Errorf is fmt.Errorf for an error that can be told in both languages. By itself, it
// is English.
func Errorf(format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	if slices.ContainsFunc(args, isText) {
		err = fmt.Errorf(format, inEnglish(args)...)
	}
	return failure{err, Text{err.Error(), chinese(format, args)}}
}

// Error is what an error says. One that Errorf has not made says it in Chinese if it is a
// key of zh-CN.txt, as a whole or with %w for the error that it wraps; and else as far as
// that is so of what it wraps, and of what stands behind that.
func Error(err error) Text {
	if own, ok := err.(failure); ok {
		return own.text
	}
	text := Whole(err.Error())
	if text.ZH != text.EN {
		return text
	}
	for _, cause := range causes(err) {
		said := Error(cause)
		before, after, found := strings.Cut(text.ZH, said.EN)
		if !found { // it is told already
			continue
		}
		if chinese, known := Pairs()[before+"%w"+after]; known {
			text.ZH = strings.Replace(chinese, "%w", said.ZH, 1)
		} else {
			text.ZH = before + said.ZH + Whole(after).ZH
		}
	}
	return text
}

// causes are the errors that an error wraps.
func causes(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()
	}
	if cause := errors.Unwrap(err); cause != nil {
		return []error{cause}
	}
	return nil
}

// Any is anything as a text.
func Any(value any) Text {
	switch value := value.(type) {
	case Text:
		return value
	case lang.Text:
		return Text(value)
	case error:
		return Error(value)
	}
	return Whole(fmt.Sprint(value))
}

// Sprintf is a text of Of in the reader's language.
func Sprintf(format string, args ...any) string { return Of(format, args...).String() }

// Fprintf is fmt.Fprintf in the reader's language.
func Fprintf(w io.Writer, format string, args ...any) { fmt.Fprint(w, Sprintf(format, args...)) }

// Fprintln prints a text in the reader's language, and ends the line.
func Fprintln(w io.Writer, text any) { fmt.Fprintln(w, Any(text)) }

// isText tells whether an argument would print itself in the reader's language.
func isText(arg any) bool {
	_, is := arg.(Text)
	return is
}

// inEnglish are arguments for an English format.
func inEnglish(args []any) []any {
	own := slices.Clone(args)
	for i, arg := range args {
		if text, ok := arg.(Text); ok {
			own[i] = text.EN
		}
	}
	return own
}

// inChinese are arguments for a Chinese format.
func inChinese(args []any) []any {
	own := slices.Clone(args)
	for i, arg := range args {
		switch arg.(type) {
		case Text, string, error, fmt.Stringer:
			if text := Any(arg); text.ZH != text.EN {
				own[i] = wide(text.ZH)
			}
		}
	}
	return own
}

// wide is a text that knows how wide it is in a terminal.
type wide string

func (t wide) Format(f fmt.State, verb rune) {
	text := string(t)
	if verb == 'q' {
		text = `"` + text + `"`
	}
	width, _ := f.Width()
	pad := strings.Repeat(" ", max(0, width-utf8.RuneCountInString(text)-Wide(text)))
	if f.Flag('-') {
		text, pad = pad, text
	}
	io.WriteString(f, pad+text)
}

// Wide counts the characters of a text that are twice as wide as others in a terminal.
func Wide(text string) (n int) {
	for _, r := range text {
		isEastAsian := r >= 0x2e80 && r < 0xfe50
		isFullwidth := r >= 0xff00 && r < 0xff61
		if isEastAsian || isFullwidth {
			n++
		}
	}
	return n
}

// around changes a text without the white space around it.
func around(text string, change func(core string) string) string {
	core := strings.TrimSpace(text)
	if core == "" {
		return text
	}
	before, after, _ := strings.Cut(text, core)
	return before + change(core) + after
}

//go:embed zh-CN.txt
var file string

// Say is how a page's script says a sentence in the reader's language.
//
//go:embed say.js
var Say string

//go:embed words.js
var script string

// Script is Say for a page that has the Pairs in its element "words". A button "language"
// changes the language.
var Script = Say + script

// Pairs are the sentences of zh-CN.txt, in Chinese by the English ones, both without
// the white space around them.
var Pairs = sync.OnceValue(func() map[string]string {
	pairs := map[string]string{}
	for block := range strings.SplitSeq(file, "\n\n") {
		english, chinese, two := strings.Cut(strings.Trim(block, "\n"), "\n")
		if !two || strings.HasPrefix(english, "#") {
			continue
		}
		lines := strings.NewReplacer(`\n`, "\n")
		pairs[lines.Replace(english)] = lines.Replace(chinese)
	}
	return pairs
})
