# Fetches the nine archives of the kit into this folder, by the names that ready.sh wants: bash kit/fetch.sh
set -eu
cd "$(dirname "$0")"
go=1.25.0 java=17 zookeeper=3.9.3
tuna=https://mirrors.tuna.tsinghua.edu.cn missing=0
get() { # NAME ADDRESS OTHER: the other address is for a hand; those that are there stay
	test -s "$1" || { curl -fL --retry 3 -o unfinished "$2" && mv unfinished "$1"; } || {
		missing=1
		echo "Fetch by hand, and call it $1: $2 or the .tar.gz of $3"
		echo "请自己下载，改名为 $1：$2，或者 $3 的 .tar.gz"
	}
}
get zookeeper.tar.gz https://archive.apache.org/dist/zookeeper/zookeeper-$zookeeper/apache-zookeeper-$zookeeper-bin.tar.gz \
	$tuna/apache/zookeeper/
for system in linux-amd64 linux-arm64 darwin-amd64 darwin-arm64; do
	get go-$system.tar.gz https://golang.google.cn/dl/go$go.$system.tar.gz https://go.dev/dl/
	its=$(echo $system | sed 's/darwin/mac/; s/amd64/x64/; s/arm64/aarch64/; s,-,/,') # as Adoptium writes it
	get jre-$system.tar.gz https://api.adoptium.net/v3/binary/latest/$java/ga/$its/jre/hotspot/normal/eclipse \
		$tuna/Adoptium/$java/jre/$(echo $its | sed 's,\(.*\)/\(.*\),\2/\1,')/
done
exit $missing
