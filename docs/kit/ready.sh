# Copies the kit from the stick into the learner's home, and builds and tries what a class needs. Copied once, it does
# the rest again without the stick: bash ~/kit/ready.sh
set -eu
shopt -s extglob dotglob # for !(yours): all but yours, also what is hidden
stick=$(cd "$(dirname "$0")" && pwd)
system=$(uname -s | tr A-Z a-z)-$(uname -m | sed 's/x86_64/amd64/;s/aarch64/arm64/')
archives=$(echo {zklock,modules,zookeeper,go-$system,jre-$system}.tar.gz) # of this system alone
if ! test "$stick" -ef ~/kit; then
	mkdir -p ~/kit
	chmod -R u+w ~/kit # an older kit may have folders that nobody can write to
	rm -rf ~/kit/book
	cp -Rf "$stick"/book "$stick"/{env,ready}.sh ~/kit
	for archive in $archives; do cp -f "$stick/$archive" ~/kit; done
	exec bash ~/kit/ready.sh # while bash reads this file from the stick, nobody can eject it
fi
cd ~/kit
echo "Copied: the stick is no longer needed. Now it unpacks, builds and tests: about three minutes, on a slow laptop up to eight."
echo "已复制，不再需要 U 盘。接着解压、编译、测试：大约三分钟，慢的机器最多八分钟。"
for archive in $archives; do gzip -t $archive; done
rm -rf go download apache-zookeeper-* jdk-* zklock/!(yours) # an older kit does not mix with this one
for archive in $archives; do tar xzf $archive; done
. ./env.sh
for folder in "$JAVA_HOME" "$ZOOKEEPER_HOME"; do
	test -d "$folder" || { echo "Not one folder: $folder"; exit 1; }
done
cd zklock
echo "Building. 'go: downloading' reads from the kit, not from a network."
echo "正在编译。出现 go: downloading 也不联网，是从 kit 里读的。"
go build -o out/bin/ ./internal/cmd/exercise ./internal/cmd/zk
go -C internal/lab build -o ../../out/bin/ ./cmd/play
echo "Testing: up to two minutes, on a slow laptop longer; a dot every ten seconds."
echo "正在测试：最多两分钟，慢的机器更久；每十秒打印一个点。"
while sleep 10 >/dev/null 2>&1; do echo .; done &
dots=$!
disown # or bash says that it was terminated
trap "kill $dots" EXIT
if ! out/bin/zk with go test -vet=off ./step03_children_watch ./step04_predecessor_watch; then
	echo "All is built, but a test failed, as it may on a slow laptop. Plug it in, close other programs, and type:"
	echo "都已编译好，但有测试失败，慢的机器上可能这样。请接上电源，关掉别的程序，再输入："
	echo "bash ~/kit/ready.sh"
	exit 1
fi
kill $dots
trap - EXIT
if ! test -e yours/multilock; then
	out/bin/exercise hint multilock >/dev/null # only tried; not of step 3, because each hint is given once
	rm -rf yours/multilock
fi
echo "Ready. 准备好了。Language: ${ZKLOCK_LANG:-en}"
echo "Type this now, and first in each new terminal. 现在输入下面这一行；以后每新开一个终端，都先输入这一行："
echo ". ~/kit/env.sh && cd ~/kit/zklock"
