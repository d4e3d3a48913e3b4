# The client library has a data race, which is no news: zk.(*Conn).sendSetWatches.
export GORACE = suppressions="$(CURDIR)/internal/zktest/race.txt"

STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.7.0
SHELL := bash
.SHELLFLAGS := -o pipefail -c

# A variable of a command, as in make tour STEPS=3,4, becomes a flag of its program:
# $(call flags,STEPS) is then -steps=3,4.
flags = $(foreach name,$(1),$(if $($(name)),-$(shell echo $(name) | tr A-Z a-z)="$($(name))"))

# A misspelt variable, as in make tour WAITER=5, is an error. Those that a command knows stand below it.
GOAL := $(or $(firstword $(MAKECMDGOALS)),help)
KNOWN := $(shell awk '/^[a-z]+:/ { here = $$1 == "$(GOAL):" } here && /^\#\# / { for (i = 2; i <= NF; i++) if ($$i ~ /^[A-Z]+=/) { sub("=.*", "", $$i); print $$i } }' Makefile)
TYPED := $(foreach name,$(.VARIABLES),$(if $(findstring command line,$(origin $(name))),$(name)))
UNKNOWN := $(filter-out $(KNOWN) RACE GO% ZK_% ZKLOCK_%,$(TYPED))
$(if $(UNKNOWN),$(error make $(GOAL) has no variable $(UNKNOWN). It has: $(or $(KNOWN),none)))

# The programs of the lab, a module of its own, are built into out/bin, and run here: out/book is the book.
lab = mkdir -p out && export GOWORK=off && go -C internal/lab build -o ../../out/bin/ ./cmd/$(1) && out/bin/$(1)

help: ## this list: each command with its variables, as in make exercise STEP=4
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-9s %s\n", $$1, $$2 } /^## / { print "     " substr($$0, 4) } /^##@ / { print "\n" substr($$0, 5) }' Makefile

##@ Start here

book: labready ## builds the chapters and pages into a site, in out/book, with predictions and recorded runs
## OPEN=1           opens it
	@$(call lab,book) $(call flags,OPEN)

tour: soon ready labready ## measures all steps side by side, and writes a page that shows the runs
## STEPS=3,4        these steps only
## WAITERS=200      how many clients wait in the largest crowd; else 1000
## MATRIX=1         instead: which lock has which property, with the evidence
## OPEN=1           opens the page
## PAGE=tour.html   where the page is written; else out/tour.html
	@$(call lab,tour) $(call flags,STEPS WAITERS PAGE OPEN) $(if $(MATRIX),matrix)

play: soon ready labready ## serves a page where you lock, release and make things fail: real clients, a real server
## SERVERS=3        three servers, which can fail
## LESSON=3         starts with lesson 3
## LEFT=3 RIGHT=4   the locks side by side: a step, mutex, rwmutex, cohort, zk, a mistake such as W8, or mine
## OPEN=1           opens the page
## RECORD=1         instead: records anew the pauses that lesson 5 and the book play
	@$(call lab,play) $(call flags,SERVERS LESSON LEFT RIGHT OPEN RECORD)

test: ready ## tests what each step promises, what it costs and what is still broken, on a real ZooKeeper
	@go run ./internal/cmd/zk with go test $(RACE) -vet=off -p 3 -timeout 600s ./step06* ./step05* ./step0[1-4]*
	@echo "make check has the other tests: those of leased, the tools, the pages and the exercises' check"

exercise: ready ## copies an unfinished lock into the folder yours, and tests what you have written there
## STEP=4           which exercise; else shows the progress of each, and takes the first that is not done
## FROM=5.5         in step 5, copies our lock of this stair in place of the starter
	@go run ./internal/cmd/exercise check "$(STEP)" "$(FROM)"

hint: home ## prints the next hint; each is more direct than the one before
## STEP=4           which exercise; else the first that is not done
	@go run ./internal/cmd/exercise hint $(STEP)

explore: soon ready labready ## plays every interleaving of a few clients' requests, with a fault at every possible place
## STEP=4           which lock: 3 to 6, 3w, 5.5 (part A), mutex, rwmutex, cohort, zk, a mistake such as W8, or mine (mine4: that of step 4); else step 4
## CLIENTS=3        how many clients; else 2
## READERS=1        how many of them are readers, in step 6; else none
## FAULTS=2         the largest number of faults in an interleaving; else 1
## SWITCHES=1       the largest number of times that a client is interrupted; else no limit
## OPEN=1           opens the page on which you play them
## RECORD=1         instead: records anew what the book's page of the network plays
	@$(call lab,explore) $(call flags,STEP CLIENTS READERS FAULTS SWITCHES OPEN RECORD)

zk: $(if $(STEP),,ready) ## runs a server until Ctrl-C; with STEP, acquires a step's lock on it by hand
## STEP=4           a client of this step's lock, in another terminal
## NAME=ada         the client's name
## READ=1           as a reader, in step 6
	@mkdir -p out; go build -o out/zk ./internal/cmd/zk && out/zk $(if $(STEP),$(call flags,STEP NAME READ))

##@ To change this repository

check: ready ## what make test leaves out: gofmt, go vet, staticcheck, and the tests of leased, the tools and the pages
	@files=$$(gofmt -l step0* leased docs internal); test -z "$$files" || { echo "gofmt has changes for: $$files"; exit 1; }
	go vet ./step0... $(BESIDE)
	go run $(STATICCHECK) ./step0* $(BESIDE)
	go test $(RACE) -vet=off -p 2 -timeout 3600s $(BESIDE)
	export $(WORKSPACE); for module in leased leased/service; do (cd $$module && $(CHECK)) || exit 1; done
	export GOWORK=off; cd internal/lab && $(CHECK)
	@command -v chromium chromium-browser google-chrome google-chrome-stable >/dev/null || echo "left out: the tests of the pages in a browser (Test…InABrowser), because Chromium is not installed. To install it: apt-get install -y --no-install-recommends chromium fonts-dejavu-core"

bench: ready labready ## measures turns a second, requests and bytes, compared with zk.Lock, Curator, kazoo, Redis and etcd
## CONTENDERS=1,8   how many contend; else 1,8,32
## ROUNDS=3         in how many rounds; else 7
	@$(call lab,bench) $(call flags,CONTENDERS ROUNDS)

storm: ready ## tests some locks while servers, networks and processes fail at random moments
## TIME=10m         how long; else 1m
## SEED=42          which faults, in which order; else random ones
## FIRST=1          ends at the first mistake of a production lock
	@mkdir -p out && $(WORKSPACE) go -C leased build -o ../out/storm ./cmd/storm && out/storm $(call flags,TIME SEED FIRST)

# What is beside the steps in this module; the starters of the exercises are not finished, and yours/ is the learner's.
BESIDE = ./docs ./internal/...
# The other modules. leased's tests use this one, by leased/go.work: a require in its go.mod would reach those who use
# leased. With a workspace Go takes no -mod=mod.
WORKSPACE = GOWORK="$(CURDIR)/leased/go.work" GOFLAGS="$(filter-out -mod=mod,$(GOFLAGS))"
# One package at a time: those of leased and of the pages in a browser each take both cores of a small machine.
CHECK = go vet ./... && go run $(STATICCHECK) ./... && go test $(RACE) -vet=off -p 1 -timeout 1800s ./...

# RACE=-race is for .ci.

soon: # a first line within a second: what is built, and started, says nothing for a while
	@echo "make $(GOAL): builds its program, and starts a ZooKeeper of its own (about half a minute the first time)"

ready: home # the modules in silence, so that what is installed stands in the first line
	@go list -m >/dev/null || { GOWORK=off go list -m >/dev/null 2>&1 || echo "This needs Go 1.25 or newer: https://go.dev/dl/"; exit 1; }
	@go mod download || { $(NO_MODULES); exit 1; }
	@go run ./internal/cmd/zk install

labready: home
	@GOWORK=off go -C internal/lab mod download || { $(NO_MODULES); exit 1; }

home: # without it Go says much, and nothing of HOME
	@test -n "$$HOME" || test -n "$$GOMODCACHE$$GOPATH" && test -n "$$HOME$$GOCACHE$$XDG_CACHE_HOME" || { \
		echo "HOME is not set, and Go keeps its modules there: export HOME=/a/folder/of/yours"; exit 1; }

# An old Go fails at go.mod, and not for want of a network. If it is only the file go.work that fails, Go itself has said what to do.
NO_MODULES = echo 'Go could not fetch the modules. If its usual proxy is out of reach, set a mirror, and try again. This one is in China:'; \
	echo "  go env -w GOPROXY=https://goproxy.cn,direct"; \
	echo 'Other mirrors, and what to do without a network: docs/workshop.md'

.PHONY: help soon tour play test exercise hint explore zk check bench storm book ready labready home
