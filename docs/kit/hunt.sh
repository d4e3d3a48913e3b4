# The tests of the bug hunt: bash docs/kit/hunt.sh 4 7 8 runs those of W4, W7 and W8, and without numbers only builds.
cd "$(dirname "$0")/../.."
if test $# = 0; then # no words of the tests: PASS means that a lock is wrong
	go test -vet=off -run '^$' ./step0[2-5]* >/dev/null && echo "Built. 编译好了。"
	exit
fi
IFS='|'
go test -vet=off -v -run "TestW($*)[A-Z]" ./step0[2-5]*
