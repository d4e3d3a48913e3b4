package doccheck

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// A prediction has one form on all pages, in both languages. A paragraph begins with
// the word "Predict." in bold, and asks one question. Below it, before the next
// prediction or heading, its answer is folded away: what stands between
// <details> with the summary "The answer" and </details>. What the question has in
// italics are choices, and then the answer begins with the right one, in bold.
func TestEveryPredictionAsksOneQuestionAndItsAnswerIsFolded(t *testing.T) {
	t.Parallel()
	r := repo(t)
	for _, p := range r.pages {
		found, problems := p.predictions()
		assert.Empty(t, strings.Join(problems, "\n"))
		if stepReadme.MatchString(p.original()) {
			assert.Positive(t, found, "predictions in %s", p.Path)
		}
	}
}

func isPrediction(piece Piece) bool {
	predicts := strings.HasPrefix(piece.Text, "Predict.") || strings.HasPrefix(piece.Text, "先预测。")
	return piece.Kind == "Paragraph" && predicts
}

// beginsAnswer: the page folds an answer away here.
func beginsAnswer(piece Piece) bool {
	isAnswer := strings.Contains(piece.Text, ">The answer<") || strings.Contains(piece.Text, ">答案<")
	return piece.Kind == "HTMLBlock" && isAnswer
}

func endsFold(piece Piece) bool {
	return piece.Kind == "HTMLBlock" && strings.HasPrefix(piece.Text, "</details>")
}

var (
	italics   = regexp.MustCompile(`\*([^*]+)\*`)
	beginning = regexp.MustCompile(`^\*\*([^*]+?)[.。]?\*\*`)
)

// line is the line on which a piece begins.
func (p Page) line(piece Piece) string { return strings.Split(p.Source, "\n")[piece.Line-1] }

// choices lists what a question has in italics.
func (p Page) choices(question Piece) (all []string) {
	withoutBold := strings.ReplaceAll(p.line(question), "**", "")
	for _, m := range italics.FindAllStringSubmatch(withoutBold, -1) {
		all = append(all, m[1])
	}
	return all
}

// bold is what a paragraph has in bold at its beginning, or "".
func (p Page) bold(paragraph Piece) string {
	if m := beginning.FindStringSubmatch(p.line(paragraph)); m != nil {
		return m[1]
	}
	return ""
}

// predictions counts them, and says what is wrong with them.
func (p Page) predictions() (found int, problems []string) {
	answers := 0
	for i, piece := range p.Pieces {
		if beginsAnswer(piece) {
			answers++
		}
		if !isPrediction(piece) {
			continue
		}
		found++
		if n := strings.Count(piece.Text, "?") + strings.Count(piece.Text, "？"); n != 1 {
			problems = append(problems, p.at(piece.Line, "a prediction with %d questions", n))
		}
		below := p.Pieces[i+1:]
		isEnd := func(piece Piece) bool { return piece.Kind == "Heading" || isPrediction(piece) }
		if end := slices.IndexFunc(below, isEnd); end >= 0 {
			below = below[:end]
		}
		begin, end := slices.IndexFunc(below, beginsAnswer), slices.IndexFunc(below, endsFold)
		isText := func(piece Piece) bool { return piece.Kind == "Paragraph" }
		if begin < 0 || end < begin || !slices.ContainsFunc(below[begin:end], isText) {
			problems = append(problems, p.at(piece.Line, "a prediction without an answer that is folded away"))
			continue
		}
		answer := below[begin:end][slices.IndexFunc(below[begin:end], isText)]
		choices := p.choices(piece)
		isChoice := func(c string) bool { return strings.EqualFold(c, p.bold(answer)) }
		if len(choices) > 0 && !slices.ContainsFunc(choices, isChoice) {
			problems = append(
				problems,
				p.at(answer.Line, "the answer does not begin with one of the choices %q", choices),
			)
		}
	}
	if answers != found {
		problems = append(problems, p.at(1, "%d predictions, %d answers", found, answers))
	}
	return found, problems
}

func TestAPredictionThatLacksSomethingIsFound(t *testing.T) {
	t.Parallel()
	const right = "# T\n\n**Predict.** How many?\n\n<details>\n<summary>The answer</summary>\n\nTen.\n\n</details>\n"
	for _, c := range []struct{ page, says string }{
		{right, ""},
		{strings.Replace(right, "?", "? And when?", 1), "with 2 questions"},
		{strings.Replace(right, "Predict.", "Guess.", 1), "0 predictions, 1 answers"},
		{strings.Replace(right, "\nTen.\n", "", 1), "without an answer"},
		{strings.Replace(right, "<details>", "## Else\n\n<details>", 1), "without an answer"},
		{strings.Replace(right, "</details>", "", 1), "without an answer"},
		{strings.NewReplacer("How many?", "*Ten* or *nine*?", "\nTen.", "\n**Ten.** So it is.").Replace(right), ""},
		{strings.Replace(right, "How many?", "*Ten* or *nine*?", 1), "does not begin with one of the choices"},
		{strings.NewReplacer("Predict.", "先预测。", "How many?", "多少？", "The answer", "答案").Replace(right), ""},
	} {
		_, problems := Parse("docs/x.md", c.page).predictions()
		assert.Equal(t, c.says == "", len(problems) == 0, "%s\n%v", c.page, problems)
		assert.Contains(t, strings.Join(problems, "\n"), c.says, c.page)
	}
}
