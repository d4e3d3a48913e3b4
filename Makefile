STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.7.0

help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-6s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

test: ready ## every step's promises and costs, proved on a real ZooKeeper
	go test -timeout 120s ./...

tour: ready ## steps 1 to 4 side by side, measured
	@go run ./internal/tour

check: ## gofmt, go vet, staticcheck
	@files=$$(gofmt -l .); test -z "$$files" || { echo "gofmt has changes for: $$files"; exit 1; }
	go vet ./...
	go run $(STATICCHECK) ./...

race: ready ## the tests ten times over, with the race detector
	go test -race -count=10 -timeout 30m ./...

ready:
	@go run ./internal/zktest/ready

.PHONY: help test tour check race ready
