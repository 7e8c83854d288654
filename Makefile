# Cairn. `make help` lists every target.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
GOVULNCHECK := golang.org/x/vuln/cmd/govulncheck@v1.9.0
GOTESTSUM   := gotest.tools/gotestsum@v1.13.0
FUZZTIME    ?= 20s
PROVE       ?= 10m
MUTATE      ?=
SOAK        ?= 5m
RATE        ?= 1
N           ?= 100000
SEED        ?= 0
PKG         ?= ./...

.PHONY: help
help: ## list the targets
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sort | sed -E 's/:.*## /\t/' | awk -F'\t' '{printf "  %-16s %s\n", $$1, $$2}'

.PHONY: build
build: ## build cairn and the functions for this machine
	go build -o bin/ ./cmd/... ./functions/...

.PHONY: demo
demo: ## the document-collection case: a killed worker, nothing sent twice (Go only)
	go run ./examples/documentcase

.PHONY: replay
replay: ## replay recorded agent runs with a crash at every step
	go run ./examples/replay --crash

.PHONY: test
test: ## all tests, also on the local engine (needs Python 3.11)
	scripts/test.sh $(PKG)

.PHONY: unit
unit: ## tests without the local engine
	go run $(GOTESTSUM) --format pkgname -- -race $(PKG)

.PHONY: check
check: fmt-check vet lint vuln test infra-test demo replay blackbox smoke ## what CI runs

.PHONY: fmt
fmt: ## format
	gofmt -w $$(git ls-files '*.go')

.PHONY: fmt-check
fmt-check: ## fail on unformatted files
	@out=$$(gofmt -l $$(git ls-files '*.go')); if [ -n "$$out" ]; then echo "not formatted:"; echo "$$out"; exit 1; fi

.PHONY: vet
vet: ## go vet
	go vet ./...

.PHONY: lint
lint: ## staticcheck
	go run $(STATICCHECK) ./...

.PHONY: vuln
vuln: ## govulncheck; says so when the vulnerability database cannot be reached
	scripts/vuln.sh $(GOVULNCHECK)

.PHONY: engine-up
engine-up: ## start the local AWS engine (no Docker)
	localstack/engine.sh up

.PHONY: engine-down
engine-down: ## stop it
	localstack/engine.sh down

.PHONY: fuzz
fuzz: ## run every fuzz target for FUZZTIME
	scripts/fuzz.sh $(FUZZTIME)

.PHONY: bench
bench: ## benchmarks, as ratios to raw SDK calls in the same run
	scripts/bench.sh

.PHONY: blackbox
blackbox: ## the field cases against a sandbox, where their runner is beside the checkout
	@if [ -f ../shared/tools/blackbox/run.py ]; then CAIRN_JSONTESTSUITE=$(abspath ../shared/data/jsontestsuite) python3 ../shared/tools/blackbox/run.py --repo . --jobs 1; else echo "SKIP blackbox: no runner beside the checkout"; fi

-include infra/Makefile.inc

.PHONY: prove
prove: ## simulation for PROVE (10m): schedules with faults; a million calls of concurrent histories, some on the local engine
	scripts/prove.sh $(PROVE)

.PHONY: mutate
mutate: ## take each guarding condition away: a test must notice (MUTATE='-only claim' for some)
	go run ./internal/mutate $(MUTATE)

.PHONY: smoke
smoke: ## a few thousand inputs of each fuzz target and a sixteenth of the mutants, another one after each commit
	scripts/fuzz.sh 4000x
	go run ./internal/mutate -every 16 -first $$(( $$(git rev-list --count HEAD) % 16 ))

.PHONY: soak
soak: ## load with kills and broken connections on the local engine for SOAK (5m), RATE a second, N at most
	scripts/soak.sh -for $(SOAK) -rate $(RATE) -n $(N) -seed $(SEED)

.PHONY: model
model: ## explore the models' large worlds, each order of every step (minutes on one core)
	GOMAXPROCS=1 go test ./internal/model -count=1 -v -timeout 30m -run TestModels -full
