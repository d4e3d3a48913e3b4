# Rehearses a class without a network on a borrowed laptop: it stands in the place of ready.sh in the line of the door.
# In a new home, which it deletes at the end, it does what ready.sh does, and then what the class types. Its last line
# begins with Rehearsed, or with Not rehearsed. Leave the stick in.
set -eu
stick=$(cd "$(dirname "$0")" && pwd)
home=$(mktemp -d ~/rehearsal.XXXXXX) # not in /tmp, which may be a piece of the memory
export HOME=$home
finish() {
	failed=$?
	kill $(jobs -p) 2>/dev/null || true
	wait
	cd /
	chmod -R u+w "$home"
	rm -rf "$home"
	if test $failed != 0; then
		echo "Not rehearsed: $asked. 演练没有通过。"
		exit 1
	fi
	echo "Rehearsed in $(((SECONDS + 59) / 60)) minutes: $system. 演练通过。"
}
asked="ready.sh does not end with Ready"
system="$(uname -s) $(uname -m)"
trap finish EXIT
trap "exit 1" INT TERM HUP # else, after Ctrl-C, finish sees the status of the last command: 0
bash "$stick/ready.sh"

shell=${SHELL:-bash} # in which the learners type; on a Mac it is zsh
begin='. ~/kit/env.sh && cd ~/kit/zklock &&'
asked="the exercise does not stop at 'waiting sends no request' (等待时不发请求)"
"$shell" -c "$begin out/bin/exercise check 3" >~/said || true # it has to fail
cat ~/said
grep -qE 'waiting sends no request|等待时不发请求' ~/said
asked="the bug hunt does not find W1 and W6"
"$shell" -c "$begin bash docs/kit/hunt.sh 1 6" >~/said
cat ~/said
grep -q '^FOUND W1 ' ~/said
grep -q '^FOUND W6 ' ~/said
asked="the page does not open"
"$shell" -c "$begin exec out/bin/play -lesson=3" >~/said &
until grep -o 'http://.*' ~/said; do
	kill -0 $!
	sleep 1
done
echo "Open this address in a browser, on Windows in Edge, or with localhost for 127.0.0.1. If a page with a drawing opens,"
echo "press Enter, else Ctrl-C."
echo "请在浏览器里打开这个地址（Windows 上用 Edge；打不开，就把 127.0.0.1 换成 localhost）。看到带图的网页，就按回车键；"
echo "还是打不开，就按 Ctrl-C。"
read -r
