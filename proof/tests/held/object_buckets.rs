//! Cells of ObjectBucketClaim and ObjectBucket.

use stowage_proof::oracles::Promise::{D1, E1, I13, L1};

use super::Row;
use super::evidence::Cell::{Exempt, Held};
use super::evidence::Proof::{Guide, OnServer, Played, Test};
use super::evidence::{Alert, Mutant, Oracle, Threat};

const READ: &str = "crates/api/src/obc.rs";
const PLANNED: &str = "operator/src/plan/obc/tests/mod.rs";
const CALLS: &str = "operator/src/plan/obc/tests/calls.rs";
const OBC: &str = "operator/tests/world/obc.rs";
const AHEAD: &str = "operator/tests/world/ahead_obcs.rs";
const RBAC: &str = "proof/tests/tables/rbac.rs";

pub(super) static OBJECT_BUCKET_CLAIM: Row = Row {
    memory: Held(&[
        Test("operator/tests/memory.rs", "a_tenants_objects_take_no_more_than_their_share"),
        Test(READ, "of_texts_and_maps_no_more_is_kept_than_a_bound"),
    ]),
    schema: Held(&[
        Test(READ, "whatever_stands_in_one_it_can_be_read"),
        Test(READ, "of_texts_and_maps_no_more_is_kept_than_a_bound"),
        Test(PLANNED, "names_of_any_length_come_to_names"),
    ]),
    pace: Held(&[Test(OBC, "whoever_touches_one_or_what_it_made_without_end_is_answered_at_a_pace")]),
    requests: Held(&[
        Test(CALLS, "for_a_claim_that_is_new_nothing_is_looked_for_and_what_the_watches_show_is_not_read_again"),
        Test(OBC, "at_rest_nothing_is_written_and_a_restart_tells_nothing_anew"),
    ]),
    revoke: Held(&[Test(OBC, "its_key_ends_at_once_where_its_bucket_claim_is_asked")]),
    served_by: Held(&[
        Test(OBC, "a_note_on_what_does_its_work_is_told_and_keeps_nothing_from_going"),
        Test(PLANNED, "one_that_is_anothers_is_not_touched"),
    ]),
    takeover: Held(&[
        Test(OBC, "one_that_is_restored_from_a_backup_gets_its_bucket_back"),
        Test(OBC, "at_rest_nothing_is_written_and_a_restart_tells_nothing_anew"),
        Test(OBC, "a_crash_after_each_call_leaves_one_of_everything"),
    ]),
    metrics: Held(&[Test(
        "operator/tests/world/metrics.rs",
        "accesses_object_bucket_claims_and_what_is_left_to_another_operator_show",
    )]),
    alert: Held(&[Alert("StowageObjectBucketClaimNotBound")]),
    preview: Held(&[
        Test(AHEAD, "an_object_bucket_claim_waits_for_its_class_then_is_begun_and_then_is_bound"),
        Test(AHEAD, "one_of_another_provisioner_is_left_alone_and_said_to_be"),
        Test(AHEAD, "why_of_an_object_bucket_claim_tells_what_does_its_work_waits_for"),
        Test(AHEAD, "one_whose_class_names_a_bucket_that_is_there_tells_of_its_access"),
    ]),
    rbac: Held(&[
        Test(RBAC, "the_operator_is_granted_what_it_does_and_nothing_else"),
        Test("operator/tests/world/namespaced.rs", "object_bucket_claims_need_the_whole_cluster"),
        Test("e2e/src/chart/tokens.rs", "manifests_grant_each_token_what_the_table_says"),
    ]),
    threat: Held(&[Threat("have claims made, with `--obc`, and delete ObjectBuckets")]),
    uninstall: Held(&[
        Guide("docs/operate/uninstall.md"),
        Test(OBC, "a_namespace_goes_with_all_that_is_in_it"),
        Played("chart", "e2e/src/chart/policies.rs", "definitions"),
    ]),
    upgrade: Held(&[
        Test(OBC, "without_the_flag_nothing_is_watched"),
        Test(OBC, "what_rooks_own_tests_expect_of_one_holds"),
    ]),
    simulator: Held(&[
        Test("sim/tests/up/shared.rs", "an_object_bucket_claim_gets_a_bucket_that_env_tells_of"),
        Test("sim/tests/up/shared.rs", "without_that_option_nothing_knows_object_bucket_claims"),
        Test("sim/src/up/view.rs", "an_object_bucket_claim_is_shown_with_its_phase"),
        Test("sim/src/up/recorder.rs", "an_applied_manifest_is_read_in_yaml_with_its_query"),
    ]),
    oracle: Held(&[
        Oracle(I13, "obc-retained"),
        Oracle(L1, "obc-deleted"),
        Oracle(L1, "obc-brownfield"),
        Oracle(E1, "obc"),
        Oracle(D1, "obc-edited"),
    ]),
    mutant: Held(&[
        Mutant("bound-is-told-at-each-look"),
        Mutant("class-decides-at-deletion"),
        Mutant("bucket-of-the-class-is-claimed"),
        Mutant("edits-of-the-shadow-stay"),
        Mutant("deletes-of-obcs-pin-no-version"),
    ]),
};

pub(super) static OBJECT_BUCKET: Row = Row {
    memory: Held(&[
        Test("operator/tests/memory.rs", "a_tenants_objects_take_no_more_than_their_share"),
        Test(READ, "of_an_object_bucket_no_more_is_kept_than_a_bound"),
    ]),
    schema: Held(&[
        Test(READ, "of_texts_and_maps_no_more_is_kept_than_a_bound"),
        Test("operator/src/plan/obc/tests/brownfield.rs", "what_can_not_be_read_of_the_object_bucket_decides_nothing"),
    ]),
    pace: Exempt("The pass of its ObjectBucketClaim writes it, at the pace of that one."),
    requests: Held(&[
        Test(CALLS, "what_is_there_after_all_is_met_and_used"),
        Test(OBC, "two_claims_whose_object_buckets_would_have_one_name_have_one_each"),
    ]),
    revoke: Exempt("It has no key."),
    served_by: Exempt("It has no such note: it says which ObjectBucketClaim it is of."),
    takeover: Held(&[
        Test(OBC, "an_object_bucket_that_was_lost_is_made_again_and_deletes_nothing"),
        Test(PLANNED, "what_is_lost_destroys_nothing"),
        Test(
            "operator/src/plan/obc/tests/brownfield.rs",
            "an_object_bucket_that_was_lost_is_made_again_by_what_the_access_says",
        ),
    ]),
    metrics: Exempt("There is one for each ObjectBucketClaim, which is counted."),
    alert: Exempt("What is wrong with it shows at its ObjectBucketClaim, which has the alert."),
    preview: Held(&[Test(AHEAD, "an_object_bucket_claim_waits_for_its_class_then_is_begun_and_then_is_bound")]),
    rbac: Held(&[
        Test(RBAC, "the_operator_is_granted_what_it_does_and_nothing_else"),
        Test("operator/tests/world/namespaced.rs", "object_bucket_claims_need_the_whole_cluster"),
    ]),
    threat: Held(&[Threat("have claims made, with `--obc`, and delete ObjectBuckets")]),
    uninstall: Held(&[
        Guide("docs/operate/uninstall.md"),
        Test(OBC, "what_becomes_of_the_bucket_is_for_the_class_to_say"),
        Played("chart", "e2e/src/chart/policies.rs", "definitions"),
    ]),
    upgrade: Held(&[Test(OBC, "without_the_flag_nothing_is_watched"), OnServer("obc")]),
    simulator: Held(&[Test("sim/tests/up/shared.rs", "an_object_bucket_claim_gets_a_bucket_that_env_tells_of")]),
    oracle: Held(&[
        Oracle(L1, "obc"),
        Oracle(L1, "obc-deleted"),
        Oracle(I13, "obc-retained"),
        Oracle(D1, "obc-edited"),
    ]),
    mutant: Held(&[
        Mutant("shadow-before-its-objectbucket"),
        Mutant("objectbucket-goes-before-its-shadow"),
        Mutant("objectbucket-is-left-to-the-collector"),
        Mutant("remade-shadow-is-not-noted"),
        Mutant("taken-name-takes-the-other"),
    ]),
};
