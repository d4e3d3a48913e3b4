# Every terminal of a class without a network begins with it: . ~/kit/env.sh
unset GOROOT GOOS GOARCH ZK_SERVERS ZK_BACKEND # what an earlier Go or class has left behind
export ZKLOCK_LANG=zh                          # in a class in English: en
export GOENV=off # what go env -w has kept
export GO111MODULE=on GOWORK=off GOTOOLCHAIN=local GOFLAGS=-buildvcs=false
export CGO_ENABLED=0 # nothing here needs a C compiler, and on macOS cc only asks to install one
export GOPROXY=file://$HOME/kit/download
export GOMODCACHE=$HOME/kit/modcache GOCACHE=$HOME/kit/gocache # what removes the kit removes these
export PATH=$HOME/kit/go/bin:$PATH
export ZOOKEEPER_HOME=$(echo $HOME/kit/apache-zookeeper-*-bin)
export JAVA_HOME=$(echo $HOME/kit/jdk-*-jre)
if test -d "$JAVA_HOME/Contents/Home"; then export JAVA_HOME=$JAVA_HOME/Contents/Home; fi
if test -n "${ZSH_VERSION-}"; then setopt interactivecomments; fi # zsh, as on macOS: a comment may stand behind a command
