# Makes the kit in a new folder, from the last commit of this clone: bash docs/kit/make.sh ../stick
# Beside the kit is teacher, the book with the answers. With en behind the folder, the kit's programs speak English.
set -eu
mkdir "$1" # fails if it is there, so that nothing old is in the kit
folder=$(cd "$1" && pwd)
git clone "$(cd "$(dirname "$0")/../.." && pwd)" "$folder/zklock"
export GOMODCACHE=$folder/modules
cd "$folder/zklock"
make book >/dev/null # it would name a folder that has moved
mv out/book ../teacher
rm docs/{workshop,workshop_exam,course}.*
make book >/dev/null
go mod download
GOWORK=off go -C internal/lab mod download
cd ..
mkdir kit
mv zklock/out/book kit/book
rm -rf zklock/out zklock/.git
cp zklock/docs/kit/*.sh kit
if test "${2-}" = en; then sed 's/ZKLOCK_LANG=zh/ZKLOCK_LANG=en/' zklock/docs/kit/env.sh >kit/env.sh; fi
plain=
if test "$(uname)" = Darwin; then # without its files ._*
	export COPYFILE_DISABLE=1
	plain=--no-xattrs
fi
tar $plain -czf kit/zklock.tar.gz zklock
tar $plain -czf kit/modules.tar.gz -C modules/cache download
go clean -modcache # which is $folder/modules
echo "Made: $folder/kit. 做好了。Next: 接着运行： bash $folder/kit/fetch.sh"
