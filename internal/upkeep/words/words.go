// Package words lets the tools speak Chinese. Their code is written in English:
// a sentence in it is the key to the Chinese one in zh-CN.txt. Tools print by
// this package's functions; what they compare and keep stays English.
//
// ZKLOCK_LANG=zh, or a LC_ALL or LANG that begins with zh, chooses Chinese.
package words

import (
	"cmp"
	_ "embed"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"
)

// wished is the language that the environment asks for, also in a test.
var wished = os.Getenv("ZKLOCK_LANG")

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

// Fprintf is fmt.Fprintf in the reader's language.
func Fprintf(w io.Writer, format string, args ...any) {
	fmt.Fprint(w, Sprintf(format, args...))
}

// Fprintln prints a text in the reader's language, and ends the line.
func Fprintln(w io.Writer, text any) { fmt.Fprintln(w, In(fmt.Sprint(text))) }

// Sprintf is fmt.Sprintf in the reader's language: of the format, and of what is put
// into it.
func Sprintf(format string, args ...any) string {
	if !Chinese() {
		return fmt.Sprintf(format, args...)
	}
	own := slices.Clone(args)
	for i, arg := range args {
		switch arg.(type) {
		case string, error, fmt.Stringer:
			own[i] = printed(Translate(fmt.Sprint(arg)))
		}
	}
	return fmt.Sprintf(around(format, func(core string) string { return cmp.Or(read().exact[core], core) }), own...)
}

// printed is a text that knows how wide it is in a terminal.
type printed string

func (p printed) Format(f fmt.State, verb rune) {
	text := string(p)
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
		if r >= 0x2e80 && r < 0xfe50 || r >= 0xff00 && r < 0xff61 {
			n++
		}
	}
	return n
}

// In is a text in the reader's language.
func In(text string) string {
	if !Chinese() {
		return text
	}
	return Translate(text)
}

// Translate returns the Chinese of a text that was printed in English. What no
// sentence of zh-CN.txt prints stays as it is.
func Translate(text string) string {
	return around(text, func(core string) string {
		if known, ok := translated.Load(core); ok {
			return known.(string)
		}
		chinese := translate(core)
		translated.Store(core, chinese)
		return chinese
	})
}

var translated sync.Map

func translate(text string) string {
	if chinese, ok := read().exact[text]; ok && !strings.Contains(text, "%") {
		return chinese
	}
	if han.MatchString(text) { // it is Chinese already
		return text
	}
	if mark, rest, ok := strings.Cut(text, " "); ok && strings.Contains("✓✗–?»!", mark) {
		return mark + " " + Translate(rest)
	}
	best, left := text, len(english.FindAllString(text, -1))
	try := func(chinese string) { // the one that leaves the least in English
		if n := len(english.FindAllString(chinese, -1)); n < left {
			best, left = chinese, n
		}
	}
	split := func(between string) { // several sentences: each for itself
		i := strings.Index(text, between)
		if i <= 0 {
			return
		}
		cut := i + len(strings.TrimRight(between, "(")) // a bracket goes with what it is around
		if between[0] == '.' {
			i++ // and the full stop with what it ends
		}
		try(Translate(text[:i]) + text[i:cut] + Translate(text[cut:]))
	}
	split("\n")
	split(". ")
	for _, s := range read().patterns {
		if strings.Contains(text, s.longest) {
			if m := s.pattern().FindStringSubmatch(text); m != nil {
				try(fmt.Sprintf(s.chinese, translations(m[1:])...))
			}
		}
	}
	if rest, ok := strings.CutSuffix(text, "."); ok {
		if best != text && !strings.HasSuffix(best, "。") { // its full stop was taken for a part of something
			left++
		}
		try(Translate(rest) + "。")
	}
	for _, between := range []string{"  ", " (", ": ", "; ", ", "} {
		split(between)
	}
	if strings.HasPrefix(text, "(") && strings.HasSuffix(text, ")") {
		try("（" + Translate(text[1:len(text)-1]) + "）")
	}
	if text[0] >= 'A' && text[0] <= 'Z' { // a sentence that begins with a name
		try(Translate(strings.ToLower(text[:1]) + text[1:]))
	}
	return best
}

var han = regexp.MustCompile(`\p{Han}`)

var english = regexp.MustCompile(`[A-Za-z]+`)

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

// Script puts a page into the reader's language, with the Pairs that stand in the
// page's element "words". A button "language" changes it.
//
//go:embed words.js
var Script string

// Pairs are all sentences, in Chinese by the English ones.
func Pairs() map[string]string { return read().exact }

// A catalogue has the sentences of zh-CN.txt.
type catalogue struct {
	exact    map[string]string // English to Chinese, both without the white space around them
	patterns []sentence        // those with a verb, first those that say most
}

var read = sync.OnceValue(func() catalogue {
	c := catalogue{exact: map[string]string{}}
	for block := range strings.SplitSeq(file, "\n\n") {
		english, chinese, two := strings.Cut(strings.Trim(block, "\n"), "\n")
		if !two || strings.HasPrefix(english, "#") {
			continue
		}
		lines := strings.NewReplacer(`\n`, "\n")
		english, chinese = lines.Replace(english), lines.Replace(chinese)
		c.exact[english] = chinese
		if verb.MatchString(english) {
			s := sentence{
				chinese: strings.NewReplacer("%w", "%v", "]w", "]v").Replace(chinese),
				pattern: sync.OnceValue(func() *regexp.Regexp { return pattern(english) }),
			}
			for _, fixed := range verb.Split(english, -1) {
				s.letters += len(fixed)
				if len(fixed) > len(s.longest) {
					s.longest = fixed
				}
			}
			if len(strings.TrimSpace(s.longest)) > 2 { // "to" says too little
				c.patterns = append(c.patterns, s)
			}
		}
	}
	slices.SortStableFunc(c.patterns, func(a, b sentence) int { return b.letters - a.letters })
	return c
})

// A sentence has places for what is put into it.
type sentence struct {
	chinese string
	letters int                   // bytes of the English one that are no verbs
	longest string                // such piece
	pattern func() *regexp.Regexp // fits what the English one prints
}

var verb = regexp.MustCompile(`%(?:\[\d+\])?[-+# 0]*[0-9]*(?:\.[0-9]+)?(?:\[\d+\])?[a-zA-Z%]`)

func pattern(english string) *regexp.Regexp {
	text, fixed := "(?s)^", verb.Split(english, -1)
	for i, v := range verb.FindAllString(english, -1) {
		text += regexp.QuoteMeta(fixed[i]) + cmp.Or(places[v[len(v)-1]], `(.*?)`)
	}
	return regexp.MustCompile(text + regexp.QuoteMeta(fixed[len(fixed)-1]) + "$")
}

// places are what verbs print; any other prints anything.
var places = map[byte]string{
	'%': "%",
	'd': ` *(-?[0-9][0-9,]*) *`,
	'f': ` *(-?[0-9.e+-]+) *`,
	'g': ` *(-?[0-9.e+-]+) *`,
	'q': `"(.*?)"`,
}

// translations are what stood in the places of an English sentence, for the Chinese one.
func translations(parts []string) (all []any) {
	for _, part := range parts {
		all = append(all, printed(Translate(strings.TrimSpace(part))))
	}
	return all
}
