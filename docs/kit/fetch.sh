# Fetches the nine archives of the kit into this folder, by the names that ready.sh wants: bash kit/fetch.sh
set -eu
cd "$(dirname "$0")"
go=1.25.0 java=17 zookeeper=3.9.3
get() { test -s "$1" || { curl -fL --retry 3 -o unfinished "$2" && mv unfinished "$1"; }; } # those that are there stay
get zookeeper.tar.gz https://archive.apache.org/dist/zookeeper/zookeeper-$zookeeper/apache-zookeeper-$zookeeper-bin.tar.gz
for system in linux-amd64 linux-arm64 darwin-amd64 darwin-arm64; do
	get go-$system.tar.gz https://golang.google.cn/dl/go$go.$system.tar.gz
	its=$(echo $system | sed 's/darwin/mac/; s/amd64/x64/; s/arm64/aarch64/; s,-,/,') # as Adoptium writes it
	get jre-$system.tar.gz https://api.adoptium.net/v3/binary/latest/$java/ga/$its/jre/hotspot/normal/eclipse
done
