# Recipes for https://just.systems, which is a convenience and never needed: each runs one command that can be typed.
# What CI runs stands in .ci/run, once; the recipes that check call it, so they can't differ from CI.

# List the recipes.
default:
    @just --list --unsorted

# Watch the operator turn claims into buckets, in one process, with nothing installed.
demo *args:
    cargo run -p stowage-sim -- demo {{ args }}

# Everything that CI runs.
ci:
    .ci/run

# Format all code.
fmt:
    cargo fmt --all

# Is all code formatted?
fmt-check:
    .ci/run fmt

# Clippy over everything, warnings denied.
lint:
    .ci/run lint

# Documentation of the workspace, warnings denied.
doc:
    .ci/run doc

# Measure the operator, release build: `just bench --claims 1000`; `--against COMMAND --rounds 3` compares. A real store is
# found on the PATH: versitygw or MinIO.
bench *args:
    cargo build --release --locked -p stowage-operator -p stowage-bench --bins
    target/release/stowage-bench bench {{ args }}

# Measure the gateway on one core, release build, beside a copy proxy, haproxy, nginx and a real store where they are found:
# `just bench-gateway --cases get-small,idle`; `--against COMMAND` compares; `-o markdown` prints the tables of docs/proof/performance.md in full.
bench-gateway *args:
    cargo build --release --locked -p stowage-gateway -p stowage-bench --bins
    target/release/stowage-bench bench gateway {{ args }}

# Build everything, tests included.
build:
    .ci/run build

# All tests; with arguments, cargo test with these: `just test -p stowage-proof oracles`.
test *args:
    {{ if args == "" { ".ci/run test" } else { "cargo test --locked " + args } }}

# Kill a simulator that keeps its data, under load, this often: `just crashes 200`. CI does it ten times.
crashes times="200":
    STOWAGE_CRASHES={{ times }} cargo test --locked -p stowage-sim --test up crash

# Write crds/ and the chart's copy of it anew, after a change to crates/api/.
crds:
    cargo build --quiet --locked -p stowage-operator
    cargo run --quiet --locked -p stowage-operator -- crds > crds/crds.yaml
    cp crds/crds.yaml charts/stowage/files/crds.yaml

# Does crds/ hold what the operator prints?
crds-check:
    .ci/run crds

# Write proof/coverage.tsv, after a change to a rule of docs/spec.md or to what a test says that it covers.
coverage:
    UPDATE_DOCS=1 cargo test --quiet --locked -p stowage-proof --test coverage

# Write docs/reference/held.md, after a change to the rows in proof/tests/held.
held:
    UPDATE_DOCS=1 cargo test --quiet --locked -p stowage-proof --test held the_page_shows_the_table

# Write proof/tests/messages.txt anew, after a change to what the operator says in statuses and Events.
messages:
    UPDATE_DOCS=1 cargo test --quiet --locked -p stowage-proof --test messages

# Does every step of the demo succeed? Prints its report.
demo-check:
    .ci/run demo

# Build kube-apiserver, kube-controller-manager and etcd into the user's cache directory, once; needs Go.
control-plane:
    e2e/control-plane/build

# The Helm chart: what it renders and refuses, and its life on an API server. helm is built first, once; needs Go.
chart *args:
    e2e/helm/build
    cargo build --locked --workspace --bins
    target/debug/stowage-e2e chart {{ args }}

# The alerts: each fires in its scene and in no other. promtool is built first, once; needs Go.
alerts *args:
    e2e/promtool/build
    cargo build --locked --workspace --bins
    target/debug/stowage-e2e alerts {{ args }}

# kubectl on a real API server and on the one of `stowage-sim up`, command by command. Needs Go, once.
kubectl *args:
    e2e/control-plane/build
    cargo test --locked --workspace --no-run
    target/debug/stowage-e2e kubectl {{ args }}

# Every command on the pages of docs/guide and docs/operate, on a simulator of the page's own: `just guide
# docs/guide/install.md`. Needs Go, once.
guide *args:
    e2e/control-plane/build
    e2e/helm/build
    cargo test --locked --workspace --no-run
    target/debug/stowage-e2e guide {{ args }}

# Operators of others beside `stowage-sim up` and on a real API server, and the guide's test fixtures: `just operators --only
# kube-rs`. What this machine doesn't have is left out by name.
operators *args:
    cargo test --locked --workspace --no-run
    target/debug/stowage-bench operators {{ args }}

# The scenarios on real control planes that are started for it; `just e2e-control-plane restart adoption` plays these.
e2e-control-plane *args:
    {{ if args == "" { ".ci/run e2e" } else { "cargo build --locked --workspace --bins && target/debug/stowage-e2e run --cluster control-plane --operator-command target/debug/stowage-operator " + args } }}

# The scenarios on kind clusters that are made for it, with images of what is built here; needs kind, kubectl and a Docker
# engine. KIND_NODE_IMAGE names the nodes' image, and with it the version of Kubernetes.
e2e *args:
    kind-config/image
    cargo build --locked --workspace --bins
    target/debug/stowage-e2e run --cluster kind {{ args }}

# Clients of others through the gateway: `just clients --only boto3,rclone`, `just clients --list`. versitygw on the PATH is
# their store, else the simulated one.
clients *args:
    cargo build --locked --workspace --bins
    target/debug/stowage-bench clients {{ args }}

# ceph/s3-tests through the gateway with a claim's bucket, and what it shows against what is expected; needs git, python3 and
# versitygw on the PATH. S3_TESTS_SOURCE names another repository than github.com/ceph/s3-tests.
s3-tests *args:
    cargo build --locked --workspace --bins
    target/debug/stowage-bench s3-tests {{ args }}

# 10,000 requests written in odd ways, through the gateway to versitygw, and every byte that it receives: `just heads --seed 2`.
heads *args:
    cargo build --locked --workspace --bins
    target/debug/stowage-bench heads {{ args }}

# Every single fault and crash point of every scenario, faults that last, overtaken calls: `just explore create` for one.
explore *args:
    cargo run --release --locked -p stowage-proof -- explore {{ args }}

# Pairs of faults as well; takes hours: `just explore-deep --time-limit 600 --report out`.
explore-deep *args:
    cargo run --release --locked -p stowage-proof -- explore --profile deep {{ args }}

# The explorer as target/profile-guided/stowage-proof, half as fast again or more, in half an hour: for explorations of hours.
profile-guided:
    proof/profile-guided

# The planner in every state of small abstract worlds.
model *args:
    cargo run --release --locked -p stowage-proof -- model {{ args }}

# The same random operations on the simulator and a real server: `just conformance --kubeconfig FILE`, or `--s3 URL …` for a store.
conformance *args:
    cargo run --release --locked -p stowage-proof -- conformance {{ args }}

# Does the exploration find the bugs of proof/mutants? Takes some 17 s for each; `just mutants NAME…` tries these.
mutants *args:
    cargo run --locked -p stowage-proof -- mutants {{ args }}

# What is read from outside, by a fuzzer that sees where an input leads: `just fuzz 600 store` for ten minutes of one target.
fuzz *args:
    fuzz/run {{ args }}

# Images stowage-operator:dev, stowage-gateway:dev and stowage-sim:dev of release binaries built here; needs a Docker engine,
# pulls nothing.
image *args:
    kind-config/image {{ args }}

# Licences, banned crates, sources, advisories. Not in CI; needs `cargo install cargo-deny`.
deny:
    cargo deny check
