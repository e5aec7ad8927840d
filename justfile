# What people and CI run. `tests/run` prepares a machine and calls `just ci`; nothing else is needed before it.

set shell := ["bash", "-euo", "pipefail", "-c"]

export KUBECTL_ACME_BED := shell("tests/bed/where")
export PATH := KUBECTL_ACME_BED + ":" + env("PATH")

# List the recipes
default:
    @{{ just_executable() }} --list --unsorted

# Everything, in the order of the gate; tests and programs of others last, then what was slow and the sum of the tests
ci:
    @JUST={{ just_executable() }} tests/bed/sum fmt lint docs supply unused words scripts tests world-quick

# What the gate leaves out: the oldest Rust, kills at every write on a live cluster, many certificates, cert-manager beside us twice, wider searches
nightly:
    @JUST={{ just_executable() }} KUBECTL_ACME_TEST_KILLS=0/1 tests/bed/sum fmt lint docs supply unused words scripts oldest tests scale beside-again model fuzz sim-by-date
    @{{ just_executable() }} situations

# The inner loop: compile, and run the unit tests whose names contain NAME
rule NAME:
    cargo test --lib --all-features --locked --quiet -- {{ NAME }}

# Check the layout of the source
fmt:
    cargo fmt --check

# Lint with every feature, and check what people build; warnings are errors only here
lint:
    cargo clippy --all-targets --all-features --locked -- -D warnings
    cargo check --locked

# Build the documentation; broken links fail
docs:
    RUSTDOCFLAGS='-Dwarnings -Arustdoc::private_intra_doc_links' cargo doc --no-deps --document-private-items --all-features --locked

# KUBECTL_ACME_ADVISORIES names a folder with a clone of https://github.com/rustsec/advisory-db, where there is one.
# Check crates, licences and sources against deny.toml, and for known faults where their database is at hand
supply:
    #!/usr/bin/env bash
    set -euo pipefail
    cargo deny --locked check bans licenses sources
    if [ -n "${KUBECTL_ACME_ADVISORIES:-}" ]; then
      tests/bed/advisories "$KUBECTL_ACME_ADVISORIES"
    else
      echo "nobody has looked for known faults of crates: KUBECTL_ACME_ADVISORIES names no copy of the RustSec database"
    fi

# Find dependencies that nobody uses
unused:
    cargo machete

# Find misspelt words
words:
    typos

# Check the shell scripts, and that the faults that the simulation has to find fit what ships
scripts:
    tests/sim/mutants/apply --check
    shellcheck --external-sources findings/*.sh tests/run .ci/run tests/sim/mutants/run tests/bed/{advisories,beside,cluster-up,lab-table,pebble-up,prepare,sum,where} benches/{bed,cluster,compare,conformance,diagnose,dns01,pace,scale,soak}.sh deploy/krew/render examples/ci/issue.sh examples/dns01-exec/hook.sh completions/kubectl-acme.bash completions/kubectl_complete-acme

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

# Search through what may happen to the engine, from a seed on; built quick, beside the other builds
sim SECONDS="60" SEED="1":
    KUBECTL_ACME_SIM_THREADS={{ num_cpus() }} KUBECTL_ACME_SIM_SECONDS={{ SECONDS }} KUBECTL_ACME_SIM_SEED={{ SEED }} cargo test --locked --config profile.dev.opt-level=1 --target-dir target/sim --test sim -- no_seed --nocapture

# Visit every state of the machines within wider bounds than the gate's; built quick, beside the other builds
model:
    KUBECTL_ACME_MODEL=large cargo test --locked --config profile.dev.opt-level=1 --target-dir target/sim --test model -- --nocapture --test-threads=1

# Read what nobody wrote for us, for so long, from another seed each time unless one is given; two seconds for each input at most
fuzz MINUTES="10" SEED=`date +%s`:
    KUBECTL_ACME_FUZZ_SECONDS=$(({{ MINUTES }} * 60)) KUBECTL_ACME_FUZZ_SEED={{ SEED }} KUBECTL_ACME_FUZZ_LIMIT=2000 cargo test --locked --config profile.dev.opt-level=1 --target-dir target/sim --test hostile -- nothing --nocapture

# Switch faults on, one at a time, and print after how many seeds the search finds each
sim-mutants SECONDS="120":
    tests/sim/mutants/run {{ SECONDS }}

# Search for as long as KUBECTL_ACME_SIM_SECONDS says, an hour unless told otherwise, from another seed each time
sim-by-date:
    @{{ just_executable() }} sim "${KUBECTL_ACME_SIM_SECONDS:-3600}" "$(date +%s)000"

# Run every test of the gate, in processes side by side (tests/bed/groups)
tests:
    @tests/bed/beside quick pebble
    @tests/bed/beside kills+outages drivers+roles alone cluster

# Make the causes of the catalogue happen, and print what `diagnose` names of each
lab:
    #!/usr/bin/env bash
    set -euo pipefail
    folder=$(mktemp -d) && trap 'rm -rf "$folder"' EXIT
    export KUBECTL_ACME_LAB=$folder
    tests/bed/beside quick pebble+drivers+roles+alone+cluster -- diagnose
    tests/bed/lab-table "$folder"
    {{ just_executable() }} situations

# Make faults and odd set-ups that people have reported on real parts, in network namespaces, and compare what `diagnose` says with what
# their authors know (tests/situations); words choose some. Needs root
situations *words:
    cargo build --all-features --locked
    python3 tests/situations/run.py target/debug/kubectl-acme {{ words }}

# Run every test that needs nothing but loopback
test *arguments:
    cargo test --all-features --locked --no-fail-fast {{ arguments }}

# Run the tests that need the bed's servers, such as Pebble; words choose tests by their names
pebble *words:
    @tests/bed/beside pebble -- {{ words }}

# Run the tests that need a Kubernetes API server, on some that they start; words choose tests by their names
cluster *words:
    @tests/bed/beside kills outages drivers roles alone cluster -- {{ words }}

# Run the tests with many certificates; words choose tests by their names
scale *words:
    @tests/bed/beside scale -- {{ words }}

# Run cert-manager and ours beside each other once more
beside-again:
    @tests/bed/beside roles -- cluster::side_by_side::

# Write the generated files anew
generate:
    UPDATE=1 cargo test --all-features --locked --test it generated

# Start Pebble and its DNS server for a person, until Ctrl-C
pebble-up *arguments:
    @tests/bed/pebble-up {{ arguments }}

# Start a Kubernetes API server with cert-manager's CRDs for a person, until Ctrl-C
cluster-up *arguments:
    @tests/bed/cluster-up {{ arguments }}

# Compare docs/compatibility.md with what is quick of it: a server, two clients and two resolvers of others
world-quick:
    python3 tests/world/run.py --check target/debug/kubectl-acme Serles 'acme-tiny (PyPI)' 'certbot (Debian)' unbound dnsmasq

# Put ACME servers and clients of others beside ours, and write docs/compatibility.md; words choose products
world *products:
    cargo build --release --locked
    python3 tests/world/run.py target/release/kubectl-acme {{ products }}

# Measure ours beside certbot and lego, on one Pebble, and how the cost of a certificate grows with their number
bench:
    cargo build --release --locked
    benches/compare.sh target/release/kubectl-acme
    benches/scale.sh target/release/kubectl-acme
    benches/pace.sh target/release/kubectl-acme

# Try ours, certbot, lego and acmez against every behaviour of our CA, and write docs/conformance.md
conformance:
    cargo build --release --locked
    benches/conformance.sh target/release/kubectl-acme

# Let `run` renew 2,000 certificates here and 300 in a cluster for so many minutes, with faults all along
soak MINUTES="60":
    cargo build --release --locked
    benches/soak.sh target/release/kubectl-acme {{ MINUTES }}

# Measure 100 wildcard names over 10 zones beside lego, on one BIND
bench-dns01:
    cargo build --release --locked
    benches/dns01.sh target/release/kubectl-acme

# Measure certificates in a cluster beside cert-manager's own controllers
bench-cluster:
    cargo build --release --locked
    benches/cluster.sh target/release/kubectl-acme

# Measure `diagnose` in a cluster with 1,000 Certificates, of which 100 are stuck
bench-diagnose:
    cargo build --release --locked
    benches/diagnose.sh target/release/kubectl-acme
