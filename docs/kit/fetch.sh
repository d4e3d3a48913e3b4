# Fetches the nine archives of the kit into this folder, by the names that ready.sh wants: bash kit/fetch.sh
# Those that are there stay, and of a part it fetches the rest. What it could not fetch it lists at the end, and the
# sums that it does not know.
set -eu
cd "$(dirname "$0")"
go=1.25.0 java=17 zookeeper=3.9.3
known='
544932844156d8172f7a28f77f2ac9c15a23046698b6243f633b0a0b00c0749c  go-darwin-arm64.tar.gz
5bd60e823037062c2307c71e8111809865116714d6f6b410597cf5075dfd80ef  go-darwin-amd64.tar.gz
05de75d6994a2783699815ee553bd5a9327d8b79991de36e38b66862782f54ae  go-linux-arm64.tar.gz
2852af0cb20a13139b3448992e69b868e50ed0f8a1e5940ee1de9e19a123b613  go-linux-amd64.tar.gz
d44d870c1691662efbf1a8baf1859c901b820dc5ff163b36e81beb27b6fbf3cd31b5f1f075697edaaf6d3e7a4cb0cc92f924dcff64b294ef13d535589bdaf143  zookeeper.tar.gz
'
tuna=https://mirrors.tuna.tsinghua.edu.cn by_hand= compare=
sum() { # FILE BITS: its SHA-256 or SHA-512, on Linux and on macOS
	{ sha$2sum "$1" 2>/dev/null || shasum -a $2 "$1"; } | cut -d ' ' -f 1
}
get() { # NAME BITS ADDRESS OTHER: the other may be a folder of a mirror, of which it takes the newest JRE
	newest=
	for from in "$3" "$4"; do
		if test -s "$1"; then continue; fi
		echo "$1 …"
		part=$1.part
		if [[ $from == */ ]]; then
			curl -fL --connect-timeout 20 --max-time 60 -o list.part "$from" || continue
			newest=$(grep -o 'OpenJDK[^<>"]*-jre_[^<>"]*_hotspot_[^<>"]*\.tar\.gz' list.part | sort -V | tail -n 1)
			if test -z "$newest"; then continue; fi
			from=$from$newest part=$newest.part # not the part that the other has begun, perhaps of another version
		fi
		# It gives up at less than 10 KB in each second of a minute: at that pace an archive takes hours. What has arrived
		# stays, and the next try goes on behind it.
		curl -fL --progress-bar --connect-timeout 20 --speed-limit 10000 --speed-time 60 --retry 1 -C - -o "$part" "$from" || {
			test $? != 33 || rm -f "$part" # this site sends only whole files
			continue
		}
		if [[ $known == *"  $1"* && $known != *$'\n'"$(sum "$part" $2)  $1"* ]]; then
			echo "$from has sent another file. 校验和不对，不是这个文件。"
			rm "$part"
		else
			mv "$part" "$1"
		fi
	done
	if ! test -s "$1"; then
		by_hand+="$1: $3, or $4"$'\n'
		return
	fi
	it="$(sum "$1" $2)  $1"
	[[ $known == *$'\n'"$it"* ]] || compare+="$it${newest:+ ($newest)}"$'\n'
}
get zookeeper.tar.gz 512 https://archive.apache.org/dist/zookeeper/zookeeper-$zookeeper/apache-zookeeper-$zookeeper-bin.tar.gz \
	https://repo.huaweicloud.com/apache/zookeeper/zookeeper-$zookeeper/apache-zookeeper-$zookeeper-bin.tar.gz
for system in linux-amd64 linux-arm64 darwin-amd64 darwin-arm64; do
	get go-$system.tar.gz 256 https://golang.google.cn/dl/go$go.$system.tar.gz \
		https://mirrors.aliyun.com/golang/go$go.$system.tar.gz
	its=$(echo $system | sed 's/darwin/mac/; s/amd64/x64/; s/arm64/aarch64/; s,-,/,') # as Adoptium writes it
	get jre-$system.tar.gz 256 https://api.adoptium.net/v3/binary/latest/$java/ga/$its/jre/hotspot/normal/eclipse \
		"$tuna/Adoptium/$java/jre/$(echo $its | sed 's,\(.*\)/\(.*\),\2/\1,')/"
done
if test -n "$compare"; then
	printf '%s\n' "" "Compare with the sums on the pages of the downloads. 请与下载页上的校验和对照：" \
		"https://adoptium.net/temurin/releases/?version=$java&package=jre" \
		"https://golang.google.cn/dl/" "https://zookeeper.apache.org/releases.html" "" "$compare"
fi
if test -n "$by_hand"; then
	printf '%s\n' "" "Fetch by hand, each with curl -fL -o NAME ADDRESS (in a folder, its newest .tar.gz), and run this again." \
		"请用 curl -fL -o 文件名 地址 逐个下载（地址是目录的，取其中最新的 .tar.gz），再运行一次：" "$by_hand"
	exit 1
fi
rm -f ./*.part # of what was fetched by hand
