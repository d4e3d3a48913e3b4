#!/bin/bash
# Writes what the groups of the bug hunt get into a folder: of each group its slip, its mistakes in Go
# without their names, as the code is after the change, and, from the texts of the course, its listing, in which >>
# marks its part; each line of both has a number. And go-key.txt, which names the mistakes by group and line of the Go,
# with the changes; and class.txt, the three passages that are opened in class. To be printed, papers.html has class.txt, the listings and the slips, and go.html
# the Go and its key; each group begins a page.
#
#	bash docs/workshop.sh FOLDER [TEXTS]
#
# TEXTS is a folder with alibaba.txt, 51cto.txt, lenshood.txt, mxjuly.txt and nileader.txt: Markdown, HTML (nileader) or
# what a browser copies, with or without the numbers before the lines; the listings need all their lines, also the empty.
set -euo pipefail
mkdir -p "$1"
papers=$(cd "$1" && pwd)
texts=${2:+$(cd "$2" && pwd)}
cd "$(dirname "$0")/.."
zh= of='In the lock of step %d:' named='Group %d' class='The class' key='The key of the Go'
case ${ZKLOCK_LANG-} in
zh*) zh=.zh-CN of='在第 %d 步的锁里：' named='第 %d 组' class='全班' key='Go 代码的答案' ;;
esac

# in_go MISTAKES: the sentence and the code of each, such as (1|6) for W1 and W6. Before each stands @ and its number. A
# belief would answer what the group is asked: in its place is the step.
in_go() {
	grep -m 1 '^- .*`right`' docs/mistakes$zh.md | sed 's/^- //'
	awk -v of="$of" "/^[#<]/ { p = 0 }
		/^### W$1[^0-9]|^\*\*(The belief|有人以为).*\[W$1\]\(/ {
			p = 1
			match(\$0, /W$1[^0-9]/)
			print \"@\" substr(\$0, RSTART, RLENGTH - 1)
			if (FILENAME ~ /^step/) {
				printf of \"\n\", substr(FILENAME, 6, 1)
				next
			}
		}
		p" step0[1-4]*/README$zh.md docs/mistakes$zh.md |
		grep -vE '^[#<]|TestMine|TestW' |
		sed -E 's/, after W[0-9]+ is fixed|，改好 W[0-9]+ 之后//'
}

# numbered GROUP: in_go's text without the marks of Markdown but those of names. Of a diff it has what is there after the
# change. Lines of code get numbers. Each @ becomes a line of the key, above the diff.
numbered() {
	awk -v group="$1" -v key="$papers/$1-key.txt" -v list="docs/mistakes$zh.md" '
		FILENAME == list { if (match($0, /^### W[0-9]+/)) title[substr($0, 5, RLENGTH - 4)] = substr($0, 5); next }
		/^@/ { mistake = substr($0, 2); print ""; next }
		/^```/ && ! fence { fence = $0; first = n + 1; diff = ""; next }
		/^```/ { fence = ""; print group ", " first "-" n ": " title[mistake] >key; printf "%s", diff >key; next }
		fence ~ /diff/ { diff = diff $0 "\n"; if (/^-/) next; $0 = substr($0, 2) }
		fence { print ++n ". " $0; next }
		{ gsub(/\*/, ""); print }' "docs/mistakes$zh.md" - | cat -s
}

# page HEAD [TASK]: of the text that it reads, a printed page or more, each with this head; >> marks a line. Names in
# `` are bold, but not in a line of code, which has a number.
page() {
	echo "<table><thead><tr><th>$1</th></tr></thead><tr><td><p>${2-}</p><pre>"
	sed -E -e 's/&/\&amp;/g; s/</\&lt;/g' -e '/^(>> )?[0-9]+\. /!s,`([^`]*)`,<b>\1</b>,g' -e 's,.*,<div>&</div>,; s/^<div>>>/<div class="marked">>>/' | tr -d '\n'
	echo "</pre></td></tr></table>"
}
style='<!doctype html><meta charset="utf-8"><style>
@page { margin: 12mm; }
table { width: 100%; break-after: page; }
th { font: bold 14pt sans-serif; text-align: left; padding-bottom: 3mm; }
p { font: 11pt sans-serif; }
pre { font: 9pt/1.2 monospace; white-space: pre-wrap; tab-size: 4; }
pre div { min-height: 1.2em; padding-left: 9ch; text-indent: -8ch; }
.marked { border-left: 3pt solid; margin-left: -3pt; }
.slip { font: 14pt sans-serif; padding: 8mm 0; border-bottom: 1px dashed; break-inside: avoid; }
</style>'

# groups SCRIPT: runs it with group, its head and mistakes, for each row of the table of the groups, in the order in which
# they are filled.
groups() {
	for group in 3 5 7 1 6 8 2 4 9; do
		IFS='|' read -r _ _ listing where mistakes _ < <(grep -E "^\| $group \|.* \| [0-9 ]+ \|$" docs/workshop$zh.md | tr -d '`')
		mistakes=$(echo $mistakes)
		head=$(printf "$named" $group)
		"$@"
	done
}
task=$(sed -nE 's/^1\. \*\*(The hunt|讨论)[^*]*\*\*[^*]*\*([^*]*)\*.*/\2/p' docs/workshop$zh.md)

go() {
	echo "bash docs/kit/hunt.sh $mistakes" >"$papers/$group-slip.txt"
	in_go "(${mistakes// /|})" | numbered "$group" >"$papers/$group-go.txt"
	page "$head · Go" "$task" <"$papers/$group-go.txt"
}
slip() { echo "<div class=\"slip\">$head: <code>$(cat "$papers/$group-slip.txt")</code></div>"; }
{
	echo "$style"
	groups go
	cat "$papers"/[1-9]-key.txt >"$papers/go-key.txt"
	rm "$papers"/[1-9]-key.txt
	page "$key" <"$papers/go-key.txt"
	groups slip
} >"$papers/go.html"
if test -z "$texts"; then exit; fi

set +e # a text that is missing leaves the others
plain=$(mktemp -d)
trap 'rm -r "$plain"' EXIT
for text in "$texts"/*.txt; do tr -d '\r' <"$text" >"$plain/$(basename "$text")"; done
cd "$plain"
alibaba() { # NUMBER: one of its three listings, from "public" to its last brace
	awk -v wanted="$1" '{ sub(/^[0-9]+\. ?/, "") }
		! open && /^public / { n++; line = 0 }
		open || /^public / {
			if (n == wanted) print ++line ". " $0
			open += gsub(/{/, "") - gsub(/}/, "")
		}' alibaba.txt
}
class() { sed -n '/^public class ZooKeeperLock/,/^}/p' 51cto.txt; }
code() { sed -nE '/^(### )?代码实现/,/^(### )?总结/p' lenshood.txt; }
improved() { # the heading, the sentence below it, and the steps with their numbers
	sed -E 's/<[^>]*>//g; s/^ +//' nileader.txt | awk '/^改进后的分布式锁实现$/ { on = 1 } /^结论/ { exit }
		on && NF { sub(/^[0-9]+\. */, ""); print (n > 1 ? n - 1 ". " : "") $0; n++ }'
}
number() { awk '{ mark = sub(/^>> /, "") ? ">> " : ""; print mark NR ". " $0 }'; }

alibaba 1 | sed '7,17s/^/>> /; 70,79s/^/>> /' >"$papers/1-listing.txt"
alibaba 1 | sed '19,68s/^/>> /' >"$papers/2-listing.txt"
{ alibaba 2 | sed 's/^/>> /'; alibaba 1 | sed -n '55s/path/node/; 40,68p'; } >"$papers/3-listing.txt"
alibaba 3 | sed '5s/^/>> /; 20,54s/^/>> /; 92,106s/^/>> /' >"$papers/4-listing.txt"
class | sed '/boolean tryLock/,/^    }/s/^/>> /; /void unlock/,/^    }/s/^/>> /' | number >"$papers/5-listing.txt"
class | sed '/boolean waitOtherLock/,/^    }/s/^/>> /; /void process/,/^    }/s/^/>> /' | number >"$papers/6-listing.txt"
code | sed '/^void acquire/,/^}/s/^/>> /; /^String get/,/^}/s/^/>> /' | number >"$papers/7-listing.txt"
code | sed -e '/class LockWatcher/,/^}/s/^/>> /; /^private List.*getAllSortedPaths/,/^}/s/^/>> /' \
	-e '/void unlock/,/^}/s/^/>> /' | number >"$papers/8-listing.txt"
{
	sed -nE '/分布式锁原理$/,/休眠/p' lenshood.txt
	sed -nE '/^(### )?判断读写顺序/,/^(### )?释放锁/p; /改进方案/,$p' mxjuly.txt
	improved
} >"$papers/9-listing.txt"
{
	echo "nileader:"
	improved
	echo "Alibaba:"
	sed -n '/小结$/,/互斥/p' alibaba.txt
	echo
	echo "lenshood:"
	grep -B 3 '不会.*自动释放' lenshood.txt
} >"$papers/class.txt"

cd - >/dev/null
listing() { page "$head ·$listing" "$where· $task" <"$papers/$group-listing.txt"; }
{
	echo "$style"
	page "$class" <"$papers/class.txt"
	groups listing
	groups slip
} >"$papers/papers.html"
empty=$(find "$papers" -name '*-listing.txt' -empty)
for words in 改进后的 互斥 自动释放; do # of each passage
	grep -q $words "$papers/class.txt" || empty+=$'\n'"$papers/class.txt, $words"
done
if test -n "$empty"; then
	echo "Empty, because the text is missing or looks otherwise: cut it by hand"
	echo "$empty"
	exit 1
fi
