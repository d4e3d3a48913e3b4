#!/bin/bash
# Writes what the groups of the bug hunt get into a folder: of each group its slip, its mistakes in Go
# without their names, and, from the texts of the course, its listing, in which >> marks its part; each line of
# both has a number. And go-key.txt, which names the mistakes by group and line of the Go; and class.txt, the three
# passages that are opened in class.
#
#	bash docs/workshop.sh FOLDER [TEXTS]
#
# TEXTS is a folder with alibaba.txt, 51cto.txt, lenshood.txt, mxjuly.txt and nileader.txt.
set -euo pipefail
mkdir -p "$1"
papers=$(cd "$1" && pwd)
texts=${2:+$(cd "$2" && pwd)}
cd "$(dirname "$0")/.."
zh= of='In the lock of step %d.'
case ${ZKLOCK_LANG-} in zh*) zh=.zh-CN of='在第 %d 步的锁里。' ;; esac

# in_go MISTAKES: the sentence and the code of each, such as (1|6) for W1 and W6. Before each stands @ and its number.
in_go() {
	grep -m 1 '^- .*`right`' docs/mistakes$zh.md
	awk -v of="$of" "/^[#<]/ { p = 0 }
		/^### W$1[^0-9]|^\*\*(The belief|有人以为).*\[W$1\]\(/ {
			p = 1
			match(\$0, /W$1[^0-9]/)
			print \"@\" substr(\$0, RSTART, RLENGTH - 1)
			if (FILENAME ~ /^step/) printf of \"\n\", substr(FILENAME, 6, 1)
		}
		p" step0[1-4]*/README$zh.md docs/mistakes$zh.md |
		grep -vE '^[#<]|TestMine|TestW' |
		sed -E -e 's/, after W[0-9]+ is fixed|，改好 W[0-9]+ 之后//' -e 's/ \(\[W[0-9]+\][^)]*\) in our list\)|（错误清单里的 \[W[0-9]+\][^)]*\)）//' \
			-e '/^@/!s/\[W[0-9]+\]\([^)]*\)//; s/ \(\)|（）//; s/\(, /(/; s/（，/（/; s/\( /(/'
}

# numbered GROUP: in_go's lines of code get numbers, and each @ becomes a line of the key.
numbered() {
	awk -v group="$1" -v key="$papers/go-key.txt" -v list="docs/mistakes$zh.md" '
		FILENAME == list { if (match($0, /^### W[0-9]+/)) title[substr($0, 5, RLENGTH - 4)] = substr($0, 5); next }
		/^@/ { mistake = substr($0, 2); print ""; next }
		/^```/ && ! code { code = 1; first = n + 1; print; next }
		/^```/ { code = 0; print group ", " first "-" n ": " title[mistake] >>key; print; next }
		code { print ++n ". " $0; next }
		{ print }' "docs/mistakes$zh.md" - | cat -s
}

# Of the table of the groups, the number of each, and what is on its slip.
rm -f "$papers/go-key.txt"
sed -nE 's/^\| ([1-9]) \|.* \| ([0-9 ]+) \|$/\1 \2/p' docs/workshop.md | while read -r group mistakes; do
	echo "bash docs/kit/hunt.sh $mistakes" >"$papers/$group-slip.txt"
	in_go "(${mistakes// /|})" | numbered "$group" >"$papers/$group-go.txt"
done
if test -z "$texts"; then exit; fi

set +e # a text that is missing leaves the others
cd "$texts"
alibaba() { # NUMBER: one of its three listings, whose lines are numbered
	awk -v wanted="$1" '/^1\. public/ { n++ } /^1\. [^p]/ { n = 0 } n == wanted && /^[0-9]+\./' alibaba.txt
}
class() { sed -n '/^public class ZooKeeperLock/,/^}/p' 51cto.txt; }
code() { sed -n '/^### 代码实现/,/^### 总结/p' lenshood.txt; }
improved() {
	sed -n '/改进后的分布式锁实现</,/结论/p' nileader.txt |
		awk '/结论/ { exit } /<li>/ { printf "%d. ", ++n } { print }' | sed 's/<[^>]*>//g'
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
	sed -n '/分布式锁原理$/,/^4\./p' lenshood.txt
	sed -n '/^### 判断读写顺序/,/^### 释放锁/p; /改进方案/,$p' mxjuly.txt
	improved
} >"$papers/9-listing.txt"
{
	echo "nileader:"
	improved
	echo "Alibaba:"
	sed -n '/小结$/,/^1\./p' alibaba.txt
	echo
	echo "lenshood:"
	grep -B 3 '不会.*自动释放' lenshood.txt
} >"$papers/class.txt"
empty=$(find "$papers" -name '*-listing.txt' -empty)
for words in 改进后的 互斥 自动释放; do # of each passage
	grep -q $words "$papers/class.txt" || empty+=$'\n'"$papers/class.txt, $words"
done
if test -n "$empty"; then
	echo "Empty, because the text is missing or looks otherwise: cut it by hand"
	echo "$empty"
	exit 1
fi
