STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.7.0
TIME ?= 60s
WORKSHOP = @go build -o out/workshop ./internal/exercise && out/workshop
UNFINISHED = || case $$? in 3|130) ;; *) exit 1;; esac # a lock that is not finished, or Ctrl-C, is no error
SHELL := bash
.SHELLFLAGS := -o pipefail -c

help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

tour: ready ## all steps side by side, measured, and a page to look at: OPEN=1 opens it
	@go run ./internal/tour

test: ready ## every step's promises and costs, proved on a real ZooKeeper
	go test -timeout 120s ./...
	@command -v chromium chromium-browser google-chrome google-chrome-stable >/dev/null || echo "left out: the page in a browser (TestPageInABrowser), for there is no Chromium; apt-get install -y --no-install-recommends chromium fonts-dejavu-core"

see: ready ## what one step's tests measured: make see STEP=03
	@mkdir -p out; go test -count=1 -timeout 120s -v ./step$$(printf %02d $$((10#$(or $(STEP),1))))_* >out/see || { cat out/see; exit 1; }
	@sed -n 's/^ *» /» /p' out/see

matrix: ready ## every lock held against every property, with the evidence
	@go run ./internal/tour matrix

bench: ready ## hand-overs a second, requests and bytes, beside zk.Lock
	@go run ./internal/bench

storm: ready ## four locks on three servers that fall: make storm TIME=10m SEED=42
	@go build -o out/storm ./internal/storm && out/storm -time $(TIME) $(if $(SEED),-seed $(SEED))

part: ready ## one idea of steps 5 and 6, and what it is good for: make part STEP=05 PART=2
	@go build -o out/workshop ./internal/exercise && PART=$(PART) out/workshop part $(STEP)

zk: ready ## keep a server for make hold, until Ctrl-C
	@go build -o out/hold ./internal/hold && out/hold zk

hold: ## take a step's lock by hand, in several terminals: make hold STEP=04 NAME=a
	@go build -o out/hold ./internal/hold && out/hold hold $(or $(STEP),1) "$(NAME)" $(if $(READ),read)

exercise: ready ## your version of a step, held against its properties: make exercise STEP=04
	$(WORKSHOP) check $(STEP) $(UNFINISHED)

replay: ready ## a page of what your version did in the property that failed: make replay STEP=04
	$(WORKSHOP) replay $(STEP)

watch: ready ## the same on every save
	$(WORKSHOP) watch $(STEP) $(UNFINISHED)

hint: ## the next hint, more direct each time: make hint STEP=04
	$(WORKSHOP) hint $(STEP)

progress: ## all exercises as bars
	$(WORKSHOP) progress

solution: ready ## your version beside the step's, once it passes: make solution STEP=04
	$(WORKSHOP) solution $(STEP) $(UNFINISHED)

reset: ## begin an exercise again: make reset STEP=04
	$(WORKSHOP) reset $(STEP)

hunt: ready ## which property does a published lock lack? (W=8 chooses one)
	$(WORKSHOP) hunt $(W)

figures: ready ## draw the chapters' pictures, from a run
	@go run ./internal/page/figures

check: ## gofmt, go vet, staticcheck
	@files=$$(gofmt -l .); test -z "$$files" || { echo "gofmt has changes for: $$files"; exit 1; }
	go vet ./...
	go run $(STATICCHECK) ./...

race: ready ## the tests ten times over, with the race detector
	go test -race -count=10 -timeout 30m ./...

ready:
	@go run ./internal/zkserver/ready

.PHONY: help tour test see matrix bench storm part zk hold exercise replay watch hint progress solution reset hunt figures check race ready
