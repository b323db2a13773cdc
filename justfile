# Recipes for https://just.systems, for convenience only: each runs one command that can also be typed.
# The checks of CI are defined only in .ci/run, and the recipes for checks call it, so they can't differ from CI.

# List the recipes.
default:
    @just --list --unsorted

# Watch the operator turn claims into buckets, in one process, with nothing installed.
demo *args:
    cargo run -p stowage-sim -- demo {{ args }}

# Run all checks of CI.
ci:
    .ci/run

# Format all code.
fmt:
    cargo fmt --all

# Check the format of all code.
fmt-check:
    .ci/run fmt

# Run Clippy on everything, with warnings as errors.
lint:
    .ci/run lint

# Build the documentation of the workspace, with warnings as errors.
doc:
    .ci/run doc

# Examples: `just bench --claims 1000`; `--against COMMAND --rounds 3` compares two operators. Uses versitygw or MinIO on the
# PATH as the store.
# Measure a release build of the operator.
bench *args:
    cargo build --release --locked -p stowage-operator -p stowage-bench --bins
    target/release/stowage-bench bench {{ args }}

# Examples: `just bench-gateway --cases get-small,idle`; `--against COMMAND` compares two gateways; `-o markdown` prints
# the tables of docs/proof/performance.md in full. Also measures a copy proxy, haproxy, nginx and a real store, if they are found.
# Measure a release build of the gateway on one core.
bench-gateway *args:
    cargo build --release --locked -p stowage-gateway -p stowage-bench --bins
    target/release/stowage-bench bench gateway {{ args }}

# Build everything, tests included.
build:
    .ci/run build

# Run all tests; with arguments, run cargo test with them: `just test -p stowage-proof oracles`.
test *args:
    {{ if args == "" { ".ci/run test" } else { "cargo test --locked " + args } }}

# Kill a simulator with persistent data under load, this many times: `just crashes 200`. CI does it ten times.
crashes times="200":
    STOWAGE_CRASHES={{ times }} cargo test --locked -p stowage-sim --test up crash

# Regenerate crds/ and the chart's copy of it, after a change to crates/api/.
crds:
    cargo build --quiet --locked -p stowage-operator
    cargo run --quiet --locked -p stowage-operator -- crds > crds/crds.yaml
    cp crds/crds.yaml charts/stowage/files/crds.yaml

# Check that crds/ has the output of the operator.
crds-check:
    .ci/run crds

# Regenerate proof/coverage.tsv, after a change to a rule of docs/spec.md or to the `covers:` lines of a test.
coverage:
    UPDATE_DOCS=1 cargo test --quiet --locked -p stowage-proof --test coverage

# Regenerate docs/reference/held.md, after a change to the rows in proof/tests/held.
held:
    UPDATE_DOCS=1 cargo test --quiet --locked -p stowage-proof --test held the_page_shows_the_table

# Regenerate proof/tests/messages.txt, after a change to the operator's messages in statuses and Events.
messages:
    UPDATE_DOCS=1 cargo test --quiet --locked -p stowage-proof --test messages

# Check that every step of the demo succeeds, and print its report.
demo-check:
    .ci/run demo

# Build kube-apiserver, kube-controller-manager and etcd into the user's cache directory, once; needs Go.
control-plane:
    e2e/control-plane/build

# Test the Helm chart: rendered objects, rejected values, and its life on an API server. Builds helm first, once; needs Go.
chart *args:
    e2e/helm/build
    cargo build --locked --workspace --bins
    target/debug/stowage-e2e chart {{ args }}

# Test the alerts: each fires in its own scene and in no other. Builds promtool first, once; needs Go.
alerts *args:
    e2e/promtool/build
    cargo build --locked --workspace --bins
    target/debug/stowage-e2e alerts {{ args }}

# Compare kubectl commands on a real API server and on that of `stowage-sim up`. Needs Go, once.
kubectl *args:
    e2e/control-plane/build
    cargo test --locked --workspace --no-run
    target/debug/stowage-e2e kubectl {{ args }}

# Example: `just guide docs/guide/install.md`. Needs Go, once.
# Play every command on the pages of docs/guide and docs/operate, each page on a separate simulator.
guide *args:
    e2e/control-plane/build
    e2e/helm/build
    cargo test --locked --workspace --no-run
    target/debug/stowage-e2e guide {{ args }}

# Example: `just operators --only kube-rs`. Operators that can't be built on this machine are left out and reported.
# Play third-party operators on `stowage-sim up` and on a real API server, and run the guide's test fixtures.
operators *args:
    cargo test --locked --workspace --no-run
    target/debug/stowage-bench operators {{ args }}

# Play the scenarios on control planes started for the run; `just e2e-control-plane restart adoption` plays only these.
e2e-control-plane *args:
    {{ if args == "" { ".ci/run e2e" } else { "cargo build --locked --workspace --bins && target/debug/stowage-e2e run --cluster control-plane --operator-command target/debug/stowage-operator " + args } }}

# Needs kind, kubectl and a Docker engine. KIND_NODE_IMAGE names the image of the nodes, and so the Kubernetes version.
# Play the scenarios on kind clusters created for the run, with images of the binaries built here.
e2e *args:
    kind-config/image
    cargo build --locked --workspace --bins
    target/debug/stowage-e2e run --cluster kind {{ args }}

# Examples: `just clients --only boto3,rclone`, `just clients --list`. Uses versitygw on the PATH as the store, else the
# simulated one.
# Play third-party clients through the gateway.
clients *args:
    cargo build --locked --workspace --bins
    target/debug/stowage-bench clients {{ args }}

# Needs git, python3 and versitygw on the PATH. S3_TESTS_SOURCE is another repository than github.com/ceph/s3-tests.
# Play ceph/s3-tests through the gateway with a claim's bucket, and compare the results with the expected ones.
s3-tests *args:
    cargo build --locked --workspace --bins
    target/debug/stowage-bench s3-tests {{ args }}

# Send 10,000 unusual requests through the gateway to versitygw, and check every byte it receives: `just heads --seed 2`.
heads *args:
    cargo build --locked --workspace --bins
    target/debug/stowage-bench heads {{ args }}

# Explore single faults and crashes at every point of every scenario, lasting faults, overtaken calls: `just explore create`.
explore *args:
    cargo run --release --locked -p stowage-proof -- explore {{ args }}

# Explore pairs of faults as well, which takes hours: `just explore-deep --time-limit 600 --report out`.
explore-deep *args:
    cargo run --release --locked -p stowage-proof -- explore --profile deep {{ args }}

# Build the explorer in half an hour as target/profile-guided/stowage-proof, which is at least 1.5 times as fast.
profile-guided:
    proof/profile-guided

# Check the planner in every state of small abstract worlds.
model *args:
    cargo run --release --locked -p stowage-proof -- model {{ args }}

# Compare random operations on simulator and real server: `just conformance --kubeconfig FILE`, or `--s3 URL …` for a store.
conformance *args:
    cargo run --release --locked -p stowage-proof -- conformance {{ args }}

# Check that the exploration finds the bugs of proof/mutants, at about 17 s each; `just mutants NAME…` plays only these.
mutants *args:
    cargo run --locked -p stowage-proof -- mutants {{ args }}

# Run the coverage-guided fuzzer on everything parsed from outside: `just fuzz 600 store` for ten minutes of one target.
fuzz *args:
    fuzz/run {{ args }}

# Needs a Docker engine, and pulls nothing.
# Build the images stowage-operator:dev, stowage-gateway:dev and stowage-sim:dev from release binaries built here.
image *args:
    kind-config/image {{ args }}

# Check licences, banned crates, sources and advisories. Not in CI; needs `cargo install cargo-deny`.
deny:
    cargo deny check
