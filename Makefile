STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.7.0
STEP ?= 01
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
	@go test -count=1 -timeout 120s -v ./step$(STEP)_* | sed -n 's/^ *» /» /p; /--- FAIL/p'

matrix: ready ## every lock held against every property, with the evidence
	@go run ./internal/tour matrix

bench: ready ## hand-overs a second, requests and bytes, beside zk.Lock
	@go run ./internal/bench

figures: ready ## draw the chapters' pictures anew, from a run
	@go run ./internal/page/figures

check: ## gofmt, go vet, staticcheck
	@files=$$(gofmt -l .); test -z "$$files" || { echo "gofmt has changes for: $$files"; exit 1; }
	go vet ./...
	go run $(STATICCHECK) ./...

race: ready ## the tests ten times over, with the race detector
	go test -race -count=10 -timeout 30m ./...

ready:
	@go run ./internal/zktest/ready

.PHONY: help tour test see matrix bench figures check race ready
