# Everything runs from here: `make test` is what CI runs. MODULES are all modules of the
# repository, each with a go.mod of its own so that the toolkit's users carry only what the
# toolkit needs.
SHELL   := bash
.SHELLFLAGS := -eu -o pipefail -c
GO      ?= go
MODULES := $(patsubst %/,%,$(dir $(shell find . -name go.mod -not -path './.git/*' | sort)))
TESTED  := $(filter-out ./tools,$(MODULES))
STATICCHECK := $(CURDIR)/bin/staticcheck
BENCHSTAT   := $(CURDIR)/bin/benchstat

# What needs a Redis must not be skipped here.
export RESILIENCE_REQUIRE_REDIS := 1

.PHONY: test check fmt vet staticcheck tidy redis race allocs quickstart bench bench-compare fuzz clean

## test: formatting, vet, staticcheck, tidiness, then every test of every module
test: check redis race allocs

## check: what can be said without running anything
check: fmt vet staticcheck tidy

fmt:
	@out=$$(gofmt -l $$(git ls-files -co --exclude-standard '*.go')); \
	if [ -n "$$out" ]; then echo "not formatted by gofmt:"; echo "$$out"; exit 1; fi

vet:
	@for m in $(TESTED); do echo "vet $$m"; (cd $$m && $(GO) vet ./...); done

staticcheck: $(STATICCHECK)
	@for m in $(TESTED); do echo "staticcheck $$m"; (cd $$m && $(STATICCHECK) ./...); done

tidy:
	@for m in $(MODULES); do echo "tidy $$m"; (cd $$m && $(GO) mod tidy -diff); done

## redis: see that there is a Redis server for the tests to start
redis:
	@scripts/install-redis.sh

race:
	@for m in $(TESTED); do echo "test $$m"; (cd $$m && $(GO) test -race -timeout 9m ./...); done

# The race detector allocates by itself, so allocation counts are asserted without it.
allocs:
	@for m in $(TESTED); do echo "allocations $$m"; (cd $$m && $(GO) test -run 'Alloc' ./...); done

## quickstart: a chain carries real calls through a failing host, for a person to watch
quickstart:
	$(GO) run ./examples/quickstart

## bench: ours beside others' work, in turns, as a table of ratios (some ten minutes; see docs/performance.md)
bench: redis
	cd bench && $(GO) run ./cmd/compare $(BENCHFLAGS)

## bench-compare: the benchmarks of the working tree beside those of the previous git tag
bench-compare: $(BENCHSTAT)
	@scripts/bench-compare.sh $(BENCHSTAT)

## fuzz: each fuzz target for FUZZTIME (10s)
FUZZTIME ?= 10s
fuzz:
	@for m in $(TESTED); do (cd $$m && for p in $$($(GO) list ./...); do \
	  for f in $$($(GO) test -list '^Fuzz' $$p | grep '^Fuzz' || true); do \
	    echo "$$p $$f"; $(GO) test -run '^$$' -fuzz "^$$f\$$" -fuzztime $(FUZZTIME) $$p; \
	  done; done); done

$(STATICCHECK): tools/go.mod tools/go.sum
	cd tools && $(GO) build -o $@ honnef.co/go/tools/cmd/staticcheck

$(BENCHSTAT): tools/go.mod tools/go.sum
	cd tools && $(GO) build -o $@ golang.org/x/perf/cmd/benchstat

clean:
	rm -rf bin
