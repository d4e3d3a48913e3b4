# The tests of the bug hunt: bash docs/kit/hunt.sh 4 7 8 runs those of W4, W7 and W8, and without numbers only builds.
cd "$(dirname "$0")/../.."
IFS='|'
go test -vet=off -v -run "TestW($*)[A-Z]" ./step0[2-5]*
