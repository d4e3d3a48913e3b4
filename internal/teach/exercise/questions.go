package exercise

import (
	"regexp"
	"strings"
	"unicode/utf8"

	"zklock/internal/check/lockcheck"
)

// questions are what to ask oneself where the evidence says more than the property's name:
// the first whose words are in it.
var questions = []struct{ seen, ask string }{
	{"panic: ", "what is at this line, and what has it not been given?"},
	{"fatal error: ", "what is at this line, and who else uses it at the same time?"},
	{"os.Exit", "whose process is it, and how does a lock tell its caller that something is wrong?"},
	{"a goroutine was left behind", "what ends this goroutine, when nobody waits for it any more?"},
	{"it does not sleep", "what makes it rest between two requests, and what ends its rest?"},
	{"let in beside", "when does Lock return, and has it seen that every other client is behind it?"},
	{"'s Lock to return", "who is to tell the waiter that its turn has come, and what does it do then?"},
	{"to be let in", "who is to tell the waiter that its turn has come, and what does it do then?"},
	{"its Lock does not return", "the context has ended: what does Lock wait for besides?"},
	{"such as Unlock, has not come back", "what does Unlock wait for?"},
	{"its Lock answered", "what does this error mean, and can Lock go on after it?"},
	{"its Unlock answered", "what does this error mean, and is the znode gone?"},
}

// question is what to ask oneself: it follows from what was seen, or else from the
// property, if there is one.
func question(p *lockcheck.Property, seen string) string {
	for _, q := range questions {
		if strings.Contains(seen, q.seen) {
			return q.ask
		}
	}
	if p == nil {
		return ""
	}
	return p.Hint
}

// columns is how wide a line of what was seen is.
const columns = 116

// guid is a number in a name that only tells it from others.
var guid = regexp.MustCompile(`\b(_c_[0-9a-f]{4})[0-9a-f-]{12,}(-)`)

// inTwoLines is a text on two lines at most. What does not fit is left out: -run with the
// property's name and make replay show what happened.
func inTwoLines(text string) string {
	text = guid.ReplaceAllString(strings.ReplaceAll(text, "\n", " "), "$1…$2")
	first, rest := cut(text)
	if rest == "" {
		return first
	}
	second, tooMuch := cut(rest)
	if tooMuch != "" {
		second += " …"
	}
	return first + "\n" + second
}

// cut cuts a line off a text, after a word where there is one.
func cut(text string) (line, rest string) {
	if width(text) <= columns {
		return text, ""
	}
	end, wide := 0, 0
	for at, r := range text {
		wide += width(string(r))
		if wide > columns {
			break
		}
		end = at + utf8.RuneLen(r)
	}
	if space := strings.LastIndex(text[:end], " "); space > 0 {
		return text[:space], text[space+1:]
	}
	return text[:end], text[end:]
}

// width counts the columns: a character of Chinese takes two.
func width(text string) (n int) {
	for _, r := range text {
		n++
		if r >= 0x2e80 {
			n++
		}
	}
	return n
}
