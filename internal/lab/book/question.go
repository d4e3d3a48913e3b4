package book

import (
	"bytes"
	"fmt"
	"html/template"
	"regexp"
	"strings"

	"github.com/yuin/goldmark/ast"
)

// A question is what a form asks. A chapter writes a question as a paragraph that begins with
// "Predict." in bold letters, followed by the answer in <details>. If the question has text in
// italics, each such text is a choice, and the one that equals the first bold text of the answer is
// right. Otherwise the form asks for each number that the answer has in bold letters.
type question struct {
	Key     string
	Say     map[string]string
	Numbers []number
	Choices []choice
}

type number struct{ Value, Of string }

type choice struct {
	Text  string
	Right bool
}

// predicts reports whether a block is a paragraph that asks for a prediction.
func (w *writer) predicts(n ast.Node) bool {
	if n.Kind() != ast.KindParagraph {
		return false
	}
	for _, bold := range w.emphasised(n, 2) {
		if predict.MatchString(bold) {
			return true
		}
	}
	return false
}

// emphasised returns the texts that a node has in italics (level 1) or in bold letters (level 2).
func (w *writer) emphasised(n ast.Node, level int) (all []string) {
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		e, ok := n.(*ast.Emphasis)
		begins := ok && entering
		if begins && e.Level == level {
			all = append(all, w.said(e))
		}
		return ast.WalkContinue, nil
	})
	return all
}

var numberOf = regexp.MustCompile(`^([0-9][0-9,]*(?:\.[0-9]+)?) *(.*?)[.。]?$`)

// question writes a question with its form and its answer. The question begins with the block
// first. question returns the last block of the answer.
func (w *writer) question(first ast.Node) (last ast.Node) {
	w.asked++
	q := question{Key: w.key(), Say: w.edition.labels()}
	w.beginQuestion(q)
	var choices []string
	n := first
	for ; n != nil && !w.isTag(n, "<details>"); n = n.NextSibling() {
		if n.Kind() == ast.KindHeading {
			w.fail("%s: a question without an answer in <details>", q.Key)
			return n.PreviousSibling()
		}
		choices = append(choices, w.emphasised(n, 1)...)
		w.block(n)
	}
	if n == nil {
		w.fail("%s: a question without an answer in <details>", q.Key)
		return nil
	}
	form := w.out
	w.out = bytes.Buffer{}
	var bold []string
	for n = n.NextSibling(); n != nil && !w.isTag(n, "</details>"); n = n.NextSibling() {
		bold = append(bold, w.emphasised(n, 2)...)
		w.block(n)
	}
	answer := w.out.String()
	w.out = form
	for _, text := range bold {
		if m := numberOf.FindStringSubmatch(text); m != nil && len(choices) == 0 {
			q.Numbers = append(q.Numbers, number{strings.ReplaceAll(m[1], ",", ""), m[2]})
		}
	}
	hasRight := len(choices) == 0
	for _, text := range choices {
		isRight := len(bold) > 0 && strings.EqualFold(text, strings.Trim(bold[0], ".。"))
		hasRight = hasRight || isRight
		q.Choices = append(q.Choices, choice{text, isRight})
	}
	if !hasRight {
		w.fail("%s: none of the choices %q is the first bold text of the answer", q.Key, choices)
	}
	w.form(q, answer)
	return n
}

func (w *writer) beginQuestion(q question) {
	fmt.Fprintf(&w.out, "<section class=\"question\" data-key=%q aria-label=%q>\n", q.Key, q.Say["question"])
	w.out.WriteString("<div class=\"asked\">\n")
}

// form ends a question with the form and the answer.
func (w *writer) form(q question, answer string) {
	w.out.WriteString("</div>\n")
	if err := templates.ExecuteTemplate(&w.out, "question", q); err != nil {
		w.fail("%s: %w", q.Key, err)
	}
	fmt.Fprintf(&w.out, "<details class=\"answer\"><summary>%s</summary>\n", template.HTMLEscapeString(q.Say["answer"]))
	fmt.Fprintf(&w.out, "<p class=\"yours\" role=\"status\"></p>\n%s</details>\n</section>\n", answer)
}

// isTag reports whether a block is HTML that begins with a tag.
func (w *writer) isTag(n ast.Node, tag string) bool {
	return n.Kind() == ast.KindHTMLBlock && strings.HasPrefix(string(n.Lines().Value(w.markdown)), tag)
}
