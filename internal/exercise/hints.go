package exercise

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"zklock/internal/lang"
)

// A Hint is one of several hints for a property. Each is more direct than the one before.
type Hint struct {
	Property  string // in the reader's language
	Text      string
	Number, N int // this is hint Number of N, counted from 1
}

// notWoken is the section for a waiter whose turn has come, and that nothing wakes. Many stories
// end like this, and then the hints for their property do not fit.
const notWoken = "a waiter is not woken"

// Next returns the next hint for the property that is missing, and notes that it was given. After
// the last hint it returns the first again. Before the first check it returns a hint for the first
// property.
func (e Exercise) Next() (Hint, error) {
	p, chinese := e.Progress(), InChinese()
	section, err := e.section(p, chinese)
	if err != nil {
		return Hint{}, err
	}
	given := p.Hints[section.property] % len(section.hints)
	if p.Hints == nil {
		p.Hints = map[string]int{}
	}
	p.Hints[section.property] = given + 1
	return Hint{InWords(e.nameOf(section.property)), section.hints[given], given + 1, len(section.hints)}, e.Keep(p)
}

// A section of hints.md has the hints for one property.
type section struct {
	property string
	hints    []string
}

// section returns the hints for the missing property: those of this exercise, or, if it is a step, of one before it. If
// there are none, it returns the property's question, and why the property matters. If another question fits what was
// seen, that one comes first.
func (e Exercise) section(p Progress, chinese bool) (section, error) {
	own, err := e.sections(chinese)
	if err != nil {
		return section{}, err
	}
	if wrong, ok := mistakes[e.Name]; ok && p.Missing == "" && p.Held == len(e.Properties) {
		return section{"TestMine", []string{InWords(hintForOwn(wrong))}}, nil
	}
	if p.Missing == "" || p.Missing == canBeUsed && p.About == "" && p.Ask == (lang.Text{}) {
		return own[0], nil
	}
	if p.Missing == everyOrder {
		return section{everyOrder, []string{InWords(noHintForAnOrder(e.Name))}}, nil
	}
	all := own
	before := 0
	if e.IsStep() {
		before = slices.IndexFunc(All, func(other Exercise) bool { return other.Name == e.Name })
	}
	for _, earlier := range slices.Backward(All[:before]) {
		more, err := earlier.sections(chinese)
		if err != nil {
			return section{}, err
		}
		all = append(all, more...)
	}
	wanted := []string{cmp.Or(p.About, p.Missing)}
	if p.Stuck {
		wanted = []string{notWoken, p.Missing}
	}
	for _, property := range wanted {
		for _, s := range all {
			if s.property != property {
				continue
			}
			if p.About == "" && p.Ask != (lang.Text{}) && !p.Stuck {
				s.hints = slices.Insert(slices.Clone(s.hints), 0, InWords(p.Ask))
			}
			return s, nil
		}
	}
	if p.Ask != (lang.Text{}) {
		return section{p.Missing, []string{InWords(p.Ask)}}, nil
	}
	for _, property := range e.Properties {
		if property.String() != p.Missing {
			continue
		}
		hints := []string{InWords(property.Question)}
		if property.Why != (lang.Text{}) {
			hints = append(hints, InWords(lang.Of("Why it matters: %s.", "为什么重要：%s。", property.Why)))
		}
		return section{p.Missing, hints}, nil
	}
	return own[0], nil
}

// InChinese reports whether the reader wants the check and the hints in Chinese.
func InChinese() bool {
	asked := cmp.Or(os.Getenv("ZKLOCK_LANG"), os.Getenv("LC_ALL"), os.Getenv("LANG"))
	return strings.HasPrefix(asked, "zh")
}

// InWords returns a text in the language that the reader wants.
func InWords(text lang.Text) string {
	if InChinese() {
		return text.ZH
	}
	return text.EN
}

// nameOf returns the name of a property, or of a section of hints, that is known by its English
// name.
func (e Exercise) nameOf(known string) lang.Text {
	for _, p := range e.Properties {
		if p.String() == known {
			return p.Name
		}
	}
	switch known {
	case notWoken:
		return lang.Text{EN: notWoken, ZH: "等待者没有被唤醒"}
	case everyOrder:
		return lang.Text{EN: everyOrder, ZH: "每一种交错次序"}
	case canBeUsed:
		return lang.Text{EN: canBeUsed, ZH: "能加锁，能解锁"}
	}
	return lang.Text{EN: known, ZH: known}
}

// MissingName returns the name of what is missing.
func (e Exercise) MissingName() lang.Text { return e.nameOf(e.Progress().Missing) }

// noHintForAnOrder returns the text for a learner whose lock has all properties, and is wrong in an
// interleaving.
func noHintForAnOrder(step string) lang.Text {
	return lang.Of(
		"There is no hint for an interleaving: the one that the test has printed is the hint. "+
			"Follow it in your code, line by line. make explore STEP=mine%s draws it.",
		"没有现成的提示：测试打印的次序就是提示。请逐行对照着读你的代码。make explore STEP=mine%s 会把它画出来。",
		step,
	)
}

// hintForOwn returns the hint for a learner whose lock has all properties, and who has to write
// TestMine.
func hintForOwn(wrong mistake) lang.Text {
	return lang.Of(
		"Your lock has all properties. What is left is TestMine: which calls show the difference between "+
			"your lock and %[1]v? In %[1]v, %[2]v. "+
			"The chapter or docs/mistakes.md shows its code.",
		"你的锁已具备所有性质，只剩 TestMine：哪几次调用能区分你的锁和 %[1]v？%[1]v 的错误是：%[2]v。它的代码见本章，或者 docs/mistakes.zh-CN.md。",
		wrong.key, wrong.what,
	)
}

var numbered = regexp.MustCompile(`(?m)^\d+\. `)

// sections reads the hints of an exercise. A line "## property" begins a section of the file, and a
// line "1. text" begins a hint. Lines that are indented below a hint belong to it. The Chinese file
// has the same sections in the same order, so each of them gets its English heading.
func (e Exercise) sections(chinese bool) ([]section, error) {
	english, err := e.readHints("hints.md")
	if err != nil || !chinese {
		return english, err
	}
	all, err := e.readHints("hints.zh-CN.md")
	if err != nil {
		return nil, err
	}
	if len(all) != len(english) {
		return nil, fmt.Errorf("%s: hints.md and hints.zh-CN.md do not have the same sections", e.starter())
	}
	for i := range all {
		all[i].property = english[i].property
	}
	return all, nil
}

func (e Exercise) readHints(name string) (all []section, err error) {
	text, err := os.ReadFile(filepath.Join(e.starter(), name))
	if err != nil {
		return nil, err
	}
	for _, part := range strings.Split(string(text), "\n## ")[1:] {
		property, list, _ := strings.Cut(part, "\n")
		s := section{property: property}
		for _, hint := range numbered.Split(list, -1)[1:] {
			s.hints = append(s.hints, strings.TrimSpace(strings.ReplaceAll(hint, "\n   ", "\n")))
		}
		all = append(all, s)
	}
	return all, nil
}

// Command returns what a learner types for an exercise: make hint, or make exercise. A class without a network has no
// make on each laptop, but there docs/kit/ready.sh has built this program. It runs in the
// root of the repository, and the test of an exercise two folders below.
func Command(goal, name string) string {
	const program = "out/bin/exercise"
	verb := map[string]string{"hint": "hint", "exercise": "check"}[goal]
	for _, root := range []string{".", "../.."} {
		if _, err := os.Stat(filepath.Join(root, program)); err == nil {
			return fmt.Sprintf("%s %s %s", program, verb, name)
		}
	}
	return fmt.Sprintf("make %s STEP=%s", goal, name)
}
