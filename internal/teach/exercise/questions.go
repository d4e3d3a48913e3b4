package exercise

import (
	"regexp"
	"strings"
	"unicode/utf8"

	"zklock/internal/property"
)

// questions are what to ask oneself where the evidence tells more than that the property is
// lacking: the first that it matches. Those without a property are for all of them.
var questions = []struct {
	property *property.Property
	seen     *regexp.Regexp
	ask      string
}{
	{nil, regexp.MustCompile(`panic:\W`), "what is at this line, and what has it not been given?"},
	{nil, regexp.MustCompile(`fatal error:\W`), "what is at this line, and who else uses it at the same time?"},
	{
		nil,
		regexp.MustCompile(`by os\.Exit`),
		"whose process is it, and how does a lock tell its caller that something is wrong?",
	},
	{
		nil,
		regexp.MustCompile(`goroutine was left behind\W`),
		"what ends this goroutine, when nobody waits for it any more?",
	},
	{
		nil,
		regexp.MustCompile(`\Wdoes not (sleep|come to rest)`),
		"what makes it rest between two requests, and what ends its rest?",
	},
	{nil, regexp.MustCompile(`such as Unlock\W+has not come back`), "what does Unlock wait for?"},
	{
		nil,
		regexp.MustCompile(`waited in vain for\W`),
		"who is to tell the one who waits that something has changed, and what does it do then?",
	},
	{
		property.OneHolder,
		regexp.MustCompile(`Lock answered\W`),
		"what does this error mean, and can Lock go on after it?",
	},
	{
		property.OneHolder,
		regexp.MustCompile(`one of them was told\W`),
		"what does this error mean, and can Lock go on after it?",
	},
	{
		property.OneHolder,
		regexp.MustCompile(`none of them went on\W`),
		"who is to tell the one who waits that something has changed, and what does it do then?",
	},
	{
		property.NoStranger,
		regexp.MustCompile(`Unlock said that\W`),
		"what does Unlock answer when there is nothing of its own to delete?",
	},
	{
		property.GivingUp,
		regexp.MustCompile(`Lock does not return\W`),
		"the context has ended: what does Lock wait for besides?",
	},
	{
		property.GivingUp,
		regexp.MustCompile(`its Lock answered\W`),
		"which error does Lock return when its context has ended?",
	},
	{
		property.LostWhileWaiting,
		regexp.MustCompile(`wanted was the error\W`),
		"which error did the watch's event bring, and is it the one that Lock returns?",
	},
	{
		property.ManyShare,
		regexp.MustCompile(`which does not return\W`),
		"what does Lock keep to itself while it waits, and does Unlock need it?",
	},
}

// question is what to ask oneself: it follows from what was seen, or else from the
// property, if there is one.
func question(p *property.Property, seen string) string {
	for _, q := range questions {
		fits := q.property == nil || q.property == p
		if fits && q.seen.MatchString(seen) {
			return q.ask
		}
	}
	if p == nil {
		return ""
	}
	return p.Question.EN
}

// columns is how wide a line of what was seen is.
const columns = 116

// guid is a number in a name that only tells it from others.
var guid = regexp.MustCompile(`\b(_c_[0-9a-f]{4})[0-9a-f-]{12,}(-)`)

// InTwoLines is a text that a learner reads on two lines at most. What does not fit is left out: -run with the
// property's name and make replay show what happened.
func InTwoLines(text string) string {
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
