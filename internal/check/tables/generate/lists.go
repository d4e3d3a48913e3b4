package main

import (
	"fmt"
	"slices"
	"strings"

	"zklock/internal/check/tables"
	"zklock/internal/property"
	"zklock/internal/upkeep/doccheck"
	"zklock/internal/upkeep/words"
)

// lists are all that is made from the tables.
func lists() (all []list) {
	for _, e := range []edition{english, chinese} {
		all = append(all,
			list{e.chapter("4"), "mistakes", e.mistakesOf("4", e.toMistakes())})
		for _, step := range tables.Steps() {
			all = append(all, list{e.chapter(step.Key), "properties", e.marks(step.Key)})
		}
	}
	for _, step := range tables.Steps() {
		all = append(all, list{step.Folder + "/lock_test.go", "properties", comment(step.Folder)})
	}
	return all
}

// An edition of the pages is in English or in Chinese.
type edition struct {
	chinese bool

	comma, colon    string // between words, and before what explains them
	bracket, closed string // around a remark
	enumerate       string // between links
	besides         string // between what is wrong in an order
	property        string // above the names of the properties
	otherNames      string // where else they have names
}

var (
	english = edition{false, ", ", ": ", " (", ")", ", ", "; ", "property", ""}
	chinese = edition{true, "，", "：", "（", "）", "、", "；", "性质<br>property", "英文名见[性质表](../docs/properties.zh-CN.md)"}
)

// say is a text in the edition's language.
func (e edition) say(text string) string {
	if e.chinese {
		return words.Whole(text).ZH
	}
	return text
}

// page is where the edition has a page.
func (e edition) page(path string) string {
	if e.chinese {
		return doccheck.InChinese(path)
	}
	return path
}

// chapter is where the edition has the chapter of a step.
func (e edition) chapter(key string) string {
	return e.page(tables.Find(key).Folder + "/README.md")
}

// row is a row of a table in Markdown.
func row(cells ...string) string {
	text := "|"
	for _, cell := range cells {
		if cell != "" {
			text += " " + cell
		}
		text += " |"
	}
	return text + "\n"
}

// marks is a chapter's list of what the step's lock has, and what it lacks.
func (e edition) marks(key string) string {
	const has, isNew, next, lacks = "✓", "✓ new", "✗ next", "✗"
	steps := tables.Steps()
	at := slices.IndexFunc(steps, func(l tables.Lock) bool { return l.Key == key })
	names := map[string][]string{}
	for _, r := range property.Matrix {
		hadBefore := at == 0 || r.Of(steps[at-1].Key) == property.Yes
		comesNext := at+1 < len(steps) && r.Of(steps[at+1].Key) == property.Yes
		label := ""
		switch verdict := r.Of(key); {
		case verdict == property.Yes && hadBefore:
			label = has
		case verdict == property.Yes:
			label = isNew
		case verdict == property.No && comesNext:
			label = next
		case verdict == property.No:
			label = lacks
		default:
			continue // the question does not arise: see below
		}
		name := e.say(r.Property.Name.EN)
		if remark := r.Remarks[key]; remark != "" {
			name += e.bracket + e.say(remark) + e.closed
		}
		names[label] = append(names[label], name)
	}
	const between = " · "
	text := row("", e.otherNames) + "|---|---|\n"
	for _, label := range []string{has, isNew, next, lacks} {
		if len(names[label]) > 0 {
			text += row(e.say(label), strings.Join(names[label], between))
		}
	}
	if reasons := e.doesNotArise(key); len(reasons) > 0 {
		text += row(string(property.Void), strings.Join(reasons, between))
	}
	return text
}

// doesNotArise lists the properties that mean nothing for a step's lock, and why. Neighbours
// with the same reason stand together.
func (e edition) doesNotArise(key string) (all []string) {
	var names []string
	reason := ""
	end := func() {
		if len(names) > 0 {
			all = append(all, strings.Join(names, e.comma)+e.colon+e.say(reason))
		}
		names = nil
	}
	for _, r := range property.Matrix {
		if r.Of(key) != property.Void {
			continue
		}
		if r.Remarks[key] != reason {
			end()
		}
		names, reason = append(names, e.say(r.Property.Name.EN)), r.Remarks[key]
	}
	end()
	return all
}

// toMistakes is the way from a chapter to the page of mistakes.
func (e edition) toMistakes() string {
	if e.chinese {
		return "../docs/mistakes.zh-CN.md"
	}
	return "../docs/mistakes.md"
}

// link leads to a mistake.
func (e edition) link(m tables.Mistake, page string) string {
	heading := m.Key() + e.colon + e.say(m.Name)
	return fmt.Sprintf("[%s](%s#%s)", m.Key(), page, doccheck.Anchor(heading))
}

// mistakesOf is a chapter's table of the mistakes of its step.
func (e edition) mistakesOf(key, page string) string {
	text := e.say("| mistake | what its code does | what comes of it | the test |") + "\n|---|---|---|---|\n"
	for _, m := range tables.Mistakes {
		if m.Step == key {
			text += row(e.link(m, page), e.say(m.Does), e.say(m.Comes), "`"+m.Test+"`")
		}
	}
	return text
}
