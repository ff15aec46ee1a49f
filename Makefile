# Everything that is done with this project. `make` alone prints what there is.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

# Tests and demo never touch the cluster that a shell happens to point at.
unexport KUBECONFIG

FAIRWAY := target/debug/fairway

.PHONY: help
help: ## print this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

.PHONY: try
try: ## validate the example repository, show a mistake and an offline plan (needs Rust only)
	@tests/prerequisites cargo git cc perl
	@cargo build --quiet
	@demo/try $(FAIRWAY)

.PHONY: demo
demo: ## watch commits reach real clusters, about a minute once built
	@tests/prerequisites cargo go git cc perl curl openssl
	@demo/run

.PHONY: demo-up
demo-up: ## the demo's clusters and agent, left running to play with
	@tests/prerequisites cargo go git cc perl curl openssl
	@demo/run --keep

.PHONY: demo-down
demo-down: ## stop what demo-up started
	@demo/down

.PHONY: test
test: ## every test, on a real control plane
	@tests/prerequisites cargo go git cc perl curl openssl
	@tests/control-plane/build >/dev/null
	cargo test --locked

.PHONY: check
check: ## formatting, lints, generated files, documentation
	@tests/prerequisites cargo git cc perl
	cargo fmt --check
	cargo clippy --locked --all-targets -- --deny warnings
	@$(MAKE) generate
	@git diff --exit-code --stat -- docs/reference deploy || \
		{ echo 'generated files were not current: commit what `make generate` wrote' >&2; exit 1; }
	RUSTDOCFLAGS='--deny warnings' cargo doc --locked --no-deps --document-private-items --quiet

.PHONY: bench
bench: ## the measures, as tables and JSON in target/bench (about ten minutes)
	@tests/prerequisites cargo go git cc perl
	@tests/control-plane/build >/dev/null
	cargo bench --locked --bench engine --bench agent --bench migrations

.PHONY: crash
crash: ## every crash point, instead of the representative set that `make test` takes
	@tests/prerequisites cargo go git cc perl
	@tests/control-plane/build >/dev/null
	FAIRWAY_CRASH_POINTS=all cargo test --locked --test it -- crash:: --nocapture

.PHONY: messages
messages: ## the page of messages of conditions, from what agents write in the integration tests
	@tests/prerequisites cargo go git cc perl curl openssl
	@tests/control-plane/build >/dev/null
	@rm -f target/messages.jsonl
	FAIRWAY_RECORD_MESSAGES=$(CURDIR)/target/messages.jsonl cargo test --locked --test it -- agent:: runtimes:: prune_safety:: webhook:: migrations::
	FAIRWAY_RENDER_MESSAGES=$(CURDIR)/target/messages.jsonl cargo test --locked --test it -- conditions::

.PHONY: generate
generate: ## CRDs and reference pages, from the code
	@cargo run --quiet --locked -- generate all
