//! Cells of the ConfigMaps.

use stowage_proof::oracles::Promise::{D1, E1, G6, G7, L1};

use super::Row;
use super::evidence::Cell::{Exempt, Held};
use super::evidence::Proof::{Played, Test};
use super::evidence::{Alert, Mutant, Oracle, Threat};

const USAGE_READ: &str = "crates/api/src/usage.rs";
const QUOTAS: &str = "gateway/tests/front/quotas.rs";
const LEDGER: &str = "gateway/src/quota/ledger_tests.rs";
const OBC_TESTS: &str = "operator/tests/world/obc.rs";
const CALLS: &str = "operator/src/plan/obc/tests/calls.rs";
const RBAC: &str = "proof/tests/tables/rbac.rs";

pub(super) static USAGE: Row = Row {
    memory: Held(&[Test("gateway/tests/memory.rs", "what_is_known_of_an_object_takes_no_more_than_its_share")]),
    schema: Held(&[
        Test(USAGE_READ, "a_full_config_map_has_less_than_64_kib"),
        Test(USAGE_READ, "of_replicas_a_snapshot_names_no_more_than_it_can"),
        Test(USAGE_READ, "what_is_not_ours_says_nothing"),
    ]),
    pace: Held(&[
        Test(LEDGER, "who_asks_again_waits_no_longer_than_the_watch_is_late"),
        Test("operator/src/plan/usage.rs", "a_status_is_not_written_for_little"),
    ]),
    requests: Held(&[Test(LEDGER, "what_one_bucket_has_to_tell_is_one_write_beside_a_thousand_others")]),
    revoke: Exempt("It has no key."),
    served_by: Exempt("It has no such note: only gateways write it, and the operator next to them reads it."),
    takeover: Held(&[
        Test(QUOTAS, "a_word_that_somebody_changes_is_told_again"),
        Test(LEDGER, "a_count_that_begins_again_begins_above_the_one_before"),
        Test(USAGE_READ, "what_a_scan_has_seen_counts_once"),
    ]),
    metrics: Held(&[
        Played("alerts", "e2e/src/alerts/scenes.rs", "quota_full"),
        Played("alerts", "e2e/src/alerts/scenes.rs", "quota_scans_fail"),
    ]),
    alert: Held(&[Alert("StowageQuotaFull"), Alert("StowageQuotaScansFail")]),
    preview: Held(&[Test("operator/tests/world/ahead.rs", "at_rest_there_is_nothing_to_do_and_no_claim_is_asked_for")]),
    rbac: Held(&[
        Test(RBAC, "the_operator_is_granted_what_it_does_and_nothing_else"),
        Test("testbed/src/rights.rs", "the_gateway_reads_secrets_and_backends_and_writes_what_it_counts"),
        Test("e2e/src/chart/tokens.rs", "manifests_grant_each_token_what_the_table_says"),
    ]),
    threat: Held(&[Threat("6.quota.counted"), Threat("forge what buckets hold")]),
    uninstall: Exempt("It has no finalizer, and goes with its namespace, which nothing else is in."),
    upgrade: Exempt("No version that is kept has quotas over several gateways."),
    simulator: Exempt("No person writes it, and the page shows what a claim's status says of it."),
    oracle: Held(&[Oracle(G6, "objects-quota"), Oracle(G7, "objects-quota")]),
    mutant: Held(&[
        Mutant("quota-of-one-replica"),
        Mutant("stored-counts-no-more"),
        Mutant("limit-is-read-as-none"),
        Mutant("removals-make-no-room"),
    ]),
};

pub(super) static AUTHORITIES: Row = Row {
    memory: Exempt(
        "There is one, of which the operator's pod mounts a file, and whoever installs the release writes it.",
    ),
    schema: Held(&[Test(
        "operator/src/cli/args.rs",
        "of_a_file_of_authorities_no_more_is_read_than_every_secret_may_get",
    )]),
    pace: Exempt("It is read once, at the start."),
    requests: Exempt("It is read from a file, without a request."),
    revoke: Exempt("It has no key."),
    served_by: Exempt("It has no such note: it is of one release."),
    takeover: Exempt("It comes with the release, not from a backup."),
    metrics: Exempt("It changes with the release alone."),
    alert: Exempt(
        "It changes with the release alone, and an operator that can't read it doesn't start: `StowageOperatorDown`.",
    ),
    preview: Held(&[Test("operator/tests/world/ahead.rs", "other_authorities_show_which_secrets_they_would_change")]),
    rbac: Held(&[Test("e2e/src/chart/tokens.rs", "manifests_grant_each_token_what_the_table_says")]),
    threat: Held(&[Threat("change the certificates that tenants are given")]),
    uninstall: Exempt("It is the release's own, and Helm takes it along."),
    upgrade: Exempt("No version that is kept has it."),
    simulator: Exempt("The simulator's gateway speaks plain HTTP."),
    oracle: Exempt("Its text is handed on as it is, which a test of what is written shows."),
    mutant: Exempt("The simulator's gateway speaks plain HTTP, so no scenario has authorities that could be left out."),
};

pub(super) static OBC: Row = Row {
    memory: Held(&[Test("operator/tests/memory.rs", "a_tenants_objects_take_no_more_than_their_share")]),
    schema: Held(&[Test(
        OBC_TESTS,
        "a_config_map_that_was_edited_or_deleted_is_as_it_was_and_keeps_what_others_wrote",
    )]),
    pace: Exempt("The passes of its ObjectBucketClaim write it, at the pace of that one."),
    requests: Held(&[
        Test(CALLS, "a_config_map_of_another_is_met_once_and_then_looked_at"),
        Test(CALLS, "for_a_claim_that_is_new_nothing_is_looked_for_and_what_the_watches_show_is_not_read_again"),
    ]),
    revoke: Exempt("It has no key: it says where the gateway is."),
    served_by: Exempt("It has no such note: its ObjectBucketClaim controls it."),
    takeover: Held(&[
        Test(OBC_TESTS, "a_config_map_that_was_edited_or_deleted_is_as_it_was_and_keeps_what_others_wrote"),
        Test(OBC_TESTS, "what_somebody_else_has_made_under_its_name_is_left_alone"),
    ]),
    metrics: Exempt("What is wrong with it shows at its ObjectBucketClaim, which is counted by phase."),
    alert: Held(&[Alert("StowageObjectBucketClaimNotBound")]),
    preview: Held(&[Test(
        "operator/tests/world/ahead_obcs.rs",
        "an_object_bucket_claim_waits_for_its_class_then_is_begun_and_then_is_bound",
    )]),
    rbac: Held(&[
        Test(RBAC, "the_operator_is_granted_what_it_does_and_nothing_else"),
        Test("e2e/src/chart/tokens.rs", "manifests_grant_each_token_what_the_table_says"),
    ]),
    threat: Held(&[Threat("9.configMap.repaired")]),
    uninstall: Exempt("Its ObjectBucketClaim controls it, so the garbage collector takes it along."),
    upgrade: Exempt("No version that is kept serves ObjectBucketClaims."),
    simulator: Held(&[Test("sim/tests/up/shared.rs", "an_object_bucket_claim_gets_a_bucket_that_env_tells_of")]),
    oracle: Held(&[Oracle(L1, "obc"), Oracle(E1, "obc"), Oracle(D1, "obc-edited")]),
    mutant: Held(&[Mutant("edits-of-the-config-map-stay")]),
};
