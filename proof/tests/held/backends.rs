//! Cells of S3Backend.

use stowage_proof::oracles::Promise::{E1, E2, I11, I15, I16};

use super::Row;
use super::evidence::Cell::{Exempt, Held};
use super::evidence::Proof::{Explored, Guide, Object, OnServer, Played, Test};
use super::evidence::{Alert, Mutant, Oracle, Threat};

const PLANNED: &str = "operator/src/plan/backend/tests.rs";
const PROBES: &str = "operator/tests/world/probes.rs";
const INSTALLATIONS: &str = "operator/tests/world/installations.rs";
const METRICS: &str = "operator/tests/world/metrics.rs";
const AHEAD: &str = "operator/tests/world/ahead.rs";
const RBAC: &str = "proof/tests/tables/rbac.rs";

pub(super) static S3_BACKEND: Row = Row {
    memory: Exempt(
        "Administrators alone write it, one for each store, and whoever may write one decides about every key to it.",
    ),
    schema: Held(&[
        Test("crates/api/src/crd.rs", "every_list_map_and_string_of_a_spec_has_a_maximum"),
        Object("an endpoint of 2049 characters"),
        Object("a list of 1001 allowed namespaces"),
        Object("seventeen former endpoints"),
    ]),
    pace: Held(&[
        Test(PLANNED, "a_status_that_was_written_too_often_waits"),
        Test(PROBES, "a_store_that_is_out_is_probed_every_few_minutes_and_soon_found_to_be_back"),
        Test(PROBES, "a_store_that_says_nothing_is_given_up_and_asked_no_more_than_so_much_at_once"),
    ]),
    requests: Held(&[
        Test(PLANNED, "a_burst_of_claims_makes_one_count_once_it_is_over"),
        Test("operator/tests/world/backends.rs", "a_ready_backend_says_so_and_is_not_written_again"),
    ]),
    revoke: Exempt(
        "It has no key: those to its buckets are of claims and accesses, and its admin key is its Secret's.",
    ),
    served_by: Held(&[
        Test(PLANNED, "a_backend_that_another_operator_serves_is_left_alone"),
        Test(PLANNED, "who_serves_a_backend_is_noted_before_anything_is_asked_of_it"),
        Test(INSTALLATIONS, "of_two_installations_one_serves_a_backend_and_its_claims"),
        Explored("first-served"),
    ]),
    takeover: Held(&[
        Test(INSTALLATIONS, "a_claim_whose_backend_was_taken_over_keeps_what_it_has_and_says_so"),
        Test(INSTALLATIONS, "the_guide_hands_over_each_kind_that_an_operator_notes_itself_on"),
    ]),
    metrics: Held(&[
        Test(METRICS, "a_bound_a_waiting_and_a_failing_claim_show_in_every_family"),
        Test(METRICS, "the_series_of_a_backend_go_with_it_and_no_label_names_a_claim_or_a_bucket"),
        Test("operator/src/metrics/mod.rs", "no_series_of_a_backend_outlives_it_whatever_was_asked_of_its_store"),
    ]),
    alert: Held(&[
        Alert("StowageBackendNotReady"),
        Alert("StowageUpstreamErrors"),
        Alert("StowageGatewayStoreTrouble"),
        Alert("StowageGatewayStoreResting"),
    ]),
    preview: Held(&[
        Test(AHEAD, "what_another_operator_serves_is_left_alone_and_said_to_be"),
        Test(AHEAD, "what_is_named_and_not_there_can_not_be_told"),
        Test(AHEAD, "why_tells_of_a_pause_of_a_bound_claim_and_of_what_its_store_says"),
    ]),
    rbac: Held(&[
        Test(RBAC, "the_operator_is_granted_what_it_does_and_nothing_else"),
        Test(RBAC, "one_that_serves_some_namespaces_is_granted_what_it_does_there_and_nothing_else"),
        Test("testbed/src/rights.rs", "the_gateway_reads_secrets_and_backends_and_writes_what_it_counts"),
        Test("e2e/src/chart/tokens.rs", "manifests_grant_each_token_what_the_table_says"),
    ]),
    threat: Held(&[
        Threat("1.backend.credentials.optIn"),
        Threat("1.backend.credentials.endpoints"),
        Threat("1.backend.allowed.or"),
        Threat("1.backend.servedBy"),
        Threat("edit S3Backends, and so lead keys and claims elsewhere"),
    ]),
    uninstall: Held(&[
        Guide("docs/operate/uninstall.md"),
        Played("chart", "e2e/src/chart/life.rs", "play"),
        Played("chart", "e2e/src/chart/policies.rs", "definitions"),
    ]),
    upgrade: Held(&[OnServer("upgrade"), Played("chart", "e2e/src/chart/earlier.rs", "upgrade")]),
    simulator: Held(&[
        Test("sim/src/up/stores.rs", "an_applied_backend_has_a_store_which_its_keys_open_whenever_they_come"),
        Test("sim/src/up/recorder.rs", "an_applied_manifest_is_read_in_yaml_with_its_query"),
    ]),
    oracle: Held(&[
        Oracle(I11, "stolen-endpoint"),
        Oracle(I15, "another-store"),
        Oracle(I16, "delete-paused"),
        Oracle(E1, "create"),
        Oracle(E2, "two-at-rest"),
    ]),
    mutant: Held(&[
        Mutant("any-endpoint-will-do"),
        Mutant("any-store-will-do"),
        Mutant("failed-count-waits"),
        Mutant("backend-status-on-every-probe"),
        Mutant("counts-at-war"),
        Mutant("findings-at-war"),
    ]),
};
