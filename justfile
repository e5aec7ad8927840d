# What people and CI run. `tests/run` prepares a machine and calls `just ci`; nothing else is needed before it.

set shell := ["bash", "-euo", "pipefail", "-c"]

export KUBECTL_ACME_BED := shell("tests/bed/where")
export PATH := KUBECTL_ACME_BED + ":" + env("PATH")

# List the recipes
default:
    @{{ just_executable() }} --list --unsorted

# Everything, in the order of the gate; tests last, then their sum
ci: fmt lint docs supply unused words scripts oldest
    @tests/bed/sum {{ just_executable() }} tests

# Check the layout of the source
fmt:
    cargo fmt --check

# Lint, with every feature and as people build it; warnings are errors only here
lint:
    cargo clippy --all-targets --all-features --locked -- -D warnings
    cargo clippy --locked -- -D warnings

# Build the documentation; broken links fail
docs:
    RUSTDOCFLAGS='-Dwarnings -Arustdoc::private_intra_doc_links' cargo doc --no-deps --document-private-items --all-features --locked

# Check crates, licences and sources against deny.toml
supply:
    cargo deny --locked check bans licenses sources

# Find dependencies that nobody uses
unused:
    cargo machete

# Find misspelt words
words:
    typos

# Check the shell scripts
scripts:
    shellcheck --external-sources tests/run .ci/run tests/bed/{cluster-up,pebble-up,prepare,sum,where} benches/{cluster,compare,dns01}.sh deploy/krew/render examples/dns01-exec/hook.sh

# Check on the oldest Rust we support, where that toolchain is installed
oldest:
    #!/usr/bin/env bash
    set -euo pipefail
    oldest=$(sed -n 's/^rust-version = "\(.*\)"$/\1/p' Cargo.toml)
    export RUSTUP_AUTO_INSTALL=0
    if cargo "+$oldest" --version >/dev/null 2>&1; then
      cargo "+$oldest" check --all-features --locked --target-dir target/oldest
    else
      echo "Rust $oldest is not installed here: left to machines that have it"
    fi

# Run every test, those that need the bed's servers last
tests: test pebble cluster

# Run every test that needs nothing but loopback
test *arguments:
    cargo test --all-features --locked --no-fail-fast {{ arguments }}

# Run the tests that need the bed's servers: Pebble, certbot
pebble *arguments:
    cargo test --all-features --locked --no-fail-fast --test it -- --ignored --skip cluster:: --test-threads=4 {{ arguments }}

# Run the tests that need a Kubernetes API server, all on one that they start
cluster *arguments:
    cargo test --all-features --locked --no-fail-fast --test it cluster:: -- --ignored --test-threads=4 {{ arguments }}

# Write the generated files anew
generate:
    UPDATE=1 cargo test --all-features --locked --test it generated

# Start Pebble and its DNS server for a person, until Ctrl-C
pebble-up *arguments:
    @tests/bed/pebble-up {{ arguments }}

# Start a Kubernetes API server with cert-manager's CRDs for a person, until Ctrl-C
cluster-up *arguments:
    @tests/bed/cluster-up {{ arguments }}

# Measure ours beside certbot and lego, on one Pebble
bench:
    cargo build --release --locked
    benches/compare.sh target/release/kubectl-acme

# Measure 100 wildcard names over 10 zones beside lego, on one BIND
bench-dns01:
    cargo build --release --locked
    benches/dns01.sh target/release/kubectl-acme

# Measure certificates in a cluster beside cert-manager's own controllers
bench-cluster:
    cargo build --release --locked
    benches/cluster.sh target/release/kubectl-acme
