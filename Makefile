# sandboxd: `make run` runs it, `make test` proves it. `make help` lists the rest.

SHELL := /bin/bash
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

GO        ?= go
VERSION   := $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS   := -s -w -X main.version=$(VERSION)
GO_FILES  := $(shell git ls-files -co --exclude-standard '*.go' '*.templ' '*.sql' '*.yaml' 'templates/*' go.mod go.sum 2>/dev/null)
JS_FILES  := $(shell git ls-files -co --exclude-standard 'static/*' 2>/dev/null)
ASSETS    := static/dist/manifest.json
ENGINE    := internal/setup/engine.sh
TRAEFIK   := internal/setup/traefik
VERSITYGW := internal/setup/versitygw
SDKS      := internal/gateway/sdk/node_modules/.package-lock.json
TEST_TIME := 40m
# 'make lint' vets everything, and a stack needs no debug information: without both, tests are built in less time.
GO_TEST   = $(GO) test -vet=off -ldflags=-w -timeout $(TEST_TIME)
E2E_TEST  = $(GO_TEST) -tags e2e -count 1
# SQLite is C translated to Go, and the others stretch passwords: all are several times as slow under the race detector. Leave out only
# packages such as these: another's generic functions could be linked into the rest of the test, and the detector would then miss what
# they synchronise.
UNRACED   := modernc.org/sqlite/lib golang.org/x/crypto/scrypt golang.org/x/crypto/argon2 golang.org/x/crypto/blake2b
RACE_TEST = $(GO_TEST) -race $(foreach p,$(UNRACED),-gcflags='$(p)=-race=false')
# The packages that test-engine runs, with all of their tests: 'make test' leaves them out of 'make check'.
ON_ENGINE := $(patsubst %/,%,$(sort $(dir $(wildcard internal/*/*_engine_test.go internal/*/*/*_engine_test.go))))
FUZZ_TIME ?= 20s
WORKSPACE := ^Test(Chat|Trials|Programs|Files|Models|FilesPage|Workspace|Services|IDE|Client|Metrics|Logs|LogsPage|Activity|ActivityPage|Alerts|BackupsPage|SchedulesPage|SnapshotsPage|Repositories|Updates|UpdatesPage)_
AGENTS := ^TestAgents_
LLM := ^TestLLM_
CHAOS := ^Test(Chaos|Snapshots|StoragePool|Soak)_
TRAEFIK_VERSION = $(shell sed -n 's|.*github.com/traefik/traefik/v3 v\([^ ]*\).*|\1|p' $(TRAEFIK)/go.mod)
BASE_IMAGE = bin/sandboxd template build base --data artifacts/data
VSCODE     = bin/sandboxd ide build --data artifacts/data

.PHONY: help run build check test images test-engine test-e2e test-workspace test-agents test-llm test-chaos shots fuzz bench image lint generate check-generate clean

help: ## list what can be made
	@awk 'BEGIN {FS = ":.*## "} /^[a-z0-9-]+:.*## / {printf "  make %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: build ## set up what is missing, then serve on http://localhost:8080 (ARGS="--listen …" for more)
	@$(ENGINE) bin/sandboxd serve $(ARGS)

build: bin/sandboxd bin/guest ## build both binaries and the browser's assets

check: build $(SDKS) ## fast: linters and all tests that need no engine
	@$(MAKE) --no-print-directory lint
	@$(MAKE) --no-print-directory check-generate
	cd static && npm test --silent
	$(GO) test ./internal/archtest
	$(RACE_TEST) $$($(GO) list ./... | grep -vFx $(addprefix -e sandboxd/,internal/archtest $(WITHOUT)))

test: ## everything, on a real engine and in a real browser
	@$(MAKE) --no-print-directory -j2 --output-sync=target check images WITHOUT='$(ON_ENGINE)'
	@$(MAKE) --no-print-directory -j2 --output-sync=target test-engine test-chaos
	@$(MAKE) --no-print-directory -j2 --output-sync=target test-e2e test-workspace

images: build ## the browser and the images that the tests use
	@internal/setup/tools.sh chromium
	$(ENGINE) $(BASE_IMAGE)
	$(ENGINE) $(VSCODE)

test-engine: build bin/cadvisor bin/versitygw ## tests on a real engine
	@internal/setup/tools.sh
	$(ENGINE) $(BASE_IMAGE)
	$(ENGINE) $(RACE_TEST) -tags engine -p 2 $(addprefix ./,$(ON_ENGINE))

test-e2e: build bin/traefik bin/pebble bin/cadvisor bin/criu ## what a person and a program do, with the real binary, engine and browser
	@internal/setup/tools.sh chromium
	$(ENGINE) $(BASE_IMAGE)
	$(ENGINE) $(E2E_TEST) -p 1 -skip '$(CHAOS)|$(WORKSPACE)|$(AGENTS)|$(LLM)' ./cmd/... ./compose ./internal/terminal

test-workspace: images bin/traefik ## the same for files, services, VS Code, access from other machines, metrics, logs, activity, alerts, backups, repositories and snapshots
	$(ENGINE) $(E2E_TEST) -run '$(WORKSPACE)' ./cmd/sandboxd

test-agents: build artifacts/agents/node_modules/.package-lock.json ## the agents of others, as their npm packages have them (1.6 GB), over the model gateway: no part of 'make test'
	@internal/setup/tools.sh
	$(ENGINE) $(BASE_IMAGE)
	$(ENGINE) $(E2E_TEST) -run '$(AGENTS)' -v ./cmd/sandboxd

test-llm: build ## Ollama in a sandbox, built from its Go module, and a model of random weights that another sandbox asks: no part of 'make test'
	@internal/setup/tools.sh
	$(ENGINE) $(BASE_IMAGE)
	$(ENGINE) bin/sandboxd template build llm --data artifacts/data
	$(ENGINE) $(E2E_TEST) -run '$(LLM)' -v ./cmd/sandboxd

test-chaos: build bin/traefik ## kills of sandboxd and of an engine of its own, snapshots and the storage pool
	@internal/setup/tools.sh
	$(ENGINE) $(BASE_IMAGE)
	$(ENGINE) $(E2E_TEST) -run '$(CHAOS)' ./cmd/sandboxd

shots: build ## renew the approved screenshots of every page: look at each before you commit it
	@internal/setup/tools.sh chromium
	$(ENGINE) $(BASE_IMAGE)
	$(ENGINE) $(E2E_TEST) -run '^TestShots_' ./cmd/sandboxd -approve

fuzz: $(ASSETS) ## let every Fuzz function look for new faults (FUZZ_TIME=20s each)
	@ran=0 failed=0; while IFS=: read -r file func; do \
		ran=$$((ran + 1)); echo "$$(dirname "$$file") $${func#func }"; \
		$(GO) test -run '^$$' -fuzz "^$${func#func }\$$" -fuzztime $(FUZZ_TIME) "./$$(dirname "$$file")" </dev/null || failed=$$((failed + 1)); \
	done < <(git grep --untracked -o '^func Fuzz[A-Za-z0-9_]*' -- '*_test.go'); \
	echo "$$failed of $$ran failed: what fails is kept in testdata/fuzz beside its test"; [ $$failed = 0 ] && [ $$ran != 0 ]

bench: build bin/traefik ## measure beside the raw engine, into bench.json
	$(ENGINE) $(BASE_IMAGE)
	$(ENGINE) $(VSCODE)
	@rm -f bench.json
	$(ENGINE) $(GO) test -tags bench -count 1 -timeout 30m -run TestBench -v -p 1 ./web ./internal/gateway ./internal/sqlite ./cmd/sandboxd
	$(ENGINE) $(GO) test -tags "bench engine" -count 1 -timeout 10m -run TestBench -v ./internal/link

image: build ## build sandboxd's container image, for compose/compose.yaml
	$(ENGINE) docker build --quiet --network host --file compose/Dockerfile --tag sandboxd:local .

lint: ## formatting, vet, staticcheck (also of the tagged tests)
	@test -z "$$(gofmt -l cmd compose internal web views static templates | tee /dev/stderr)" || { echo "run gofmt -w on these files" >&2; exit 1; }
	$(GO) vet -tags 'engine e2e' ./...
	$(GO) vet -tags bench ./...
	$(GO) tool staticcheck -tags 'engine e2e bench' ./...

generate: ## write the generated files: views and the table of flags
	$(GO) tool templ generate -path views
	$(GO) run ./cmd/sandboxd docs --write docs/configuration.md

check-generate: ## fail when a generated file is stale
	@$(GO) tool templ generate -path views >/dev/null
	@$(GO) run ./cmd/sandboxd docs --check docs/configuration.md
	@git diff --exit-code --stat -- '*_templ.go' || { echo "stale: run 'make generate' and commit" >&2; exit 1; }

clean: ## remove what was built; your sandboxes and their data stay
	rm -rf bin artifacts bench.json static/node_modules internal/gateway/sdk/node_modules
	find static/dist -mindepth 1 ! -name .keep -delete

bin/sandboxd: $(GO_FILES) $(ASSETS)
	@echo "building sandboxd (the first time takes some minutes: Go modules are fetched and compiled)"
	@mkdir -p bin
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o $@ ./cmd/sandboxd

bin/guest: $(GO_FILES)
	@mkdir -p bin
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w -funcalign=16' -o $@ ./cmd/guest

$(ASSETS): static/node_modules/.package-lock.json $(filter-out static/dist/%,$(JS_FILES))
	@echo "bundling the browser's assets"
	$(GO) run ./static/bundle

static/node_modules/.package-lock.json: static/package.json static/package-lock.json
	@command -v npm >/dev/null || { echo "npm is missing: install Node.js 20 or newer with npm, then repeat" >&2; exit 1; }
	@echo "fetching the browser's libraries"
	cd static && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
	@touch $@

$(SDKS): internal/gateway/sdk/package.json internal/gateway/sdk/package-lock.json
	@command -v npm >/dev/null || { echo "npm is missing: install Node.js 20 or newer with npm, then repeat" >&2; exit 1; }
	@echo "fetching the vendors' libraries for tests of the model gateway"
	cd internal/gateway/sdk && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
	@touch $@

# 'npm ci' refuses the lock: it names packages for other systems that were never published.
artifacts/agents/node_modules/.package-lock.json: internal/setup/agents/package.json internal/setup/agents/package-lock.json
	@command -v npm >/dev/null || { echo "npm is missing: install Node.js 20 or newer with npm, then repeat" >&2; exit 1; }
	@echo "fetching the agents for their test: 1.6 GB"
	@mkdir -p artifacts/agents
	cp internal/setup/agents/package.json internal/setup/agents/package-lock.json internal/setup/agents/.npmrc artifacts/agents
	cd artifacts/agents && npm install --ignore-scripts --no-audit --no-fund --loglevel=error
	cd artifacts/agents/node_modules/opencode-ai && node postinstall.mjs
	@touch $@

bin/traefik: $(TRAEFIK)/go.mod $(TRAEFIK)/go.sum
	@echo "building Traefik for the tests (the first time takes five to ten minutes)"
	@mkdir -p bin
	CGO_ENABLED=0 $(GO) build -C $(TRAEFIK) -trimpath -ldflags '-s -w -X github.com/traefik/traefik/v3/pkg/version.Version=$(TRAEFIK_VERSION)' \
		-o $(CURDIR)/$@ github.com/traefik/traefik/v3/cmd/traefik

bin/pebble: $(TRAEFIK)/go.mod $(TRAEFIK)/go.sum
	@mkdir -p bin
	CGO_ENABLED=0 $(GO) build -C $(TRAEFIK) -trimpath -ldflags '-s -w' -o $(CURDIR)/$@ github.com/letsencrypt/pebble/v2/cmd/pebble

bin/versitygw: $(VERSITYGW)/go.mod $(VERSITYGW)/go.sum
	@mkdir -p bin
	CGO_ENABLED=0 $(GO) build -C $(VERSITYGW) -trimpath -ldflags '-s -w' -o $(CURDIR)/$@ github.com/versity/versitygw/cmd/versitygw

bin/criu: internal/setup/criu.sh
	@internal/setup/tools.sh
	internal/setup/criu.sh $@

bin/cadvisor: internal/setup/cadvisor.sh
	@internal/setup/tools.sh
	internal/setup/cadvisor.sh $@
