# The tests of the bug hunt: bash docs/kit/hunt.sh 4 7 8 runs those of W4, W7 and W8, and without numbers only builds.
cd "$(dirname "$0")/../.."
if test $# = 0; then # no words of the tests: they pass if a lock is wrong
	go test -vet=off -run '^$' ./step0[2-5]* >/dev/null && echo "Built. 编译好了。"
	exit
fi
for n; do
	grep -q "^func TestW$n[A-Z]" step0[2-5]*/*_test.go && continue
	echo "There is no W${n}: type the numbers of your slip. 没有 W${n}：请输入纸条上的编号。"
	exit 1
done
set -o pipefail # a test that fails is not hidden by sed, which leaves what was seen, and FOUND W8 or FAIL
IFS='|'
go test -vet=off -v -run "TestW($*)[A-Z]" ./step0[2-5]* 2>&1 | sed -E '
	/^ *=== /d
	/^ok |^PASS$|no tests to run|^go: downloading|^ +--- PASS/d
	s/^ +[a-z_]+\.go:[0-9]+: (as expected, )?//
	s/^--- PASS: Test(W[0-9]+)([A-Za-z0-9]+) .*/FOUND \1 \2/
	s/^--- FAIL: ([A-Za-z0-9]+) .*/FAIL \1/'
