# Makes wsl.tar in this folder, which brings WSL2 on Windows a Debian and the kit without a network. It needs Debian or
# Ubuntu (in WSL also), a network, and: sudo apt-get install -y debootstrap debian-archive-keyring
#
#	sudo bash kit/windows.sh
#
# MIRROR=https://mirrors.tuna.tsinghua.edu.cn/debian, behind sudo, takes another mirror.
set -eu
cd "$(dirname "$0")"
its=linux-$(dpkg --print-architecture) # the laptops need the same kind of processor
ls book/index.html {env,ready,rehearse}.sh {zklock,modules,zookeeper,go-$its,jre-$its}.tar.gz >/dev/null # or it ends here
command -v debootstrap >/dev/null || { echo "First: sudo apt-get install -y debootstrap debian-archive-keyring"; exit 1; }
root=$(mktemp -d -p "$PWD/..") # where device files are allowed, which in /tmp they may not be
trap 'rm -rf "$root"' EXIT
debootstrap --variant=minbase --include=less,nano,procps bookworm "$root" "${MIRROR:-http://deb.debian.org/debian}"
rm -rf "$root"/var/cache/apt/archives/*.deb "$root"/var/lib/apt/lists/*
echo 'export LANG=C.UTF-8' >>"$root/etc/bash.bashrc" # Chinese in nano
mkdir "$root/kit"
cp -R book {env,ready,rehearse}.sh {zklock,modules,zookeeper,go-$its,jre-$its}.tar.gz "$root/kit"
chmod 755 "$root" # mktemp has kept all other users out
tar -C "$root" -cf wsl.tar .
echo "wsl.tar: $(du -h wsl.tar | cut -f 1)"
