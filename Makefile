# Targets for people. `make demo` and `make test` need only Go, git and make;
# what they build is cached below $NODEFENCE_CACHE (default ~/.cache/nodefence).

GO      ?= go
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)

.PHONY: help
help: ## Show the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

.PHONY: demo
demo: ## Show the main job on a real control plane: five stories with a timeline
	@$(GO) run ./test/demo

.PHONY: test
test: ## Run all tests, with the real control plane and the real peers
	@$(GO) run ./test/runtests

.PHONY: build
build: ## Build bin/nodefence
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags "-s -w -X main.version=$(VERSION)" -o bin/nodefence ./cmd/nodefence

.PHONY: quick
quick: ## Run the tests that need neither the control plane nor Debian packages
	$(GO) test -short ./...

.PHONY: bench
bench: ## Run the benchmarks, some of them on the real control plane
	$(GO) test -run '^$$' -bench . -benchmem ./fencing/... ./providers/...
	$(GO) test -run '^$$' -bench . -benchtime 1x -timeout 30m ./test/e2e

.PHONY: mutations
mutations: ## Switch off each rule of safety in turn and see tests fail (about 10 minutes)
	@$(GO) run ./test/mutations

.PHONY: soak
soak: ## Play lives drawn from seeds for as long as it is let (SEEDS=20000)
	$(GO) test ./controller -run TestSeeds -seeds $(or $(SEEDS),20000) -timeout 0

.PHONY: lint
lint: ## Run golangci-lint (built from its module the first time)
	$(GO) run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0 run ./...

.PHONY: generate
generate: ## Generate the CRD and the deep copies from the types
	$(GO) run sigs.k8s.io/controller-tools/cmd/controller-gen@v0.23.0 object paths=./config/v1alpha1
	$(GO) run sigs.k8s.io/controller-tools/cmd/controller-gen@v0.23.0 crd paths=./config/v1alpha1 output:crd:dir=config/crd

.PHONY: clean
clean: ## Remove what was built in the tree (the cache stays)
	rm -rf bin
