//! Cells of BucketClaim.

use stowage_proof::oracles::Promise::{E1, I1, I4, I5, I7, I12, I13, I16, L1, L2, L3};

use super::Row;
use super::evidence::Cell::Held;
use super::evidence::Proof::{Explored, Guide, Object, OnServer, Played, Test};
use super::evidence::{Alert, Mutant, Oracle, Threat};

const KEPT: &str = "crates/api/src/kept.rs";
const PACE: &str = "operator/src/controller/pace.rs";
const WAKES: &str = "operator/tests/world/wakes.rs";
const BY_NAME: &str = "operator/tests/world/by_name.rs";
const REVOCATION: &str = "operator/tests/world/revocation.rs";
const INSTALLATIONS: &str = "operator/tests/world/installations.rs";
const METRICS: &str = "operator/tests/world/metrics.rs";
const AHEAD: &str = "operator/tests/world/ahead.rs";
const RBAC: &str = "proof/tests/tables/rbac.rs";

pub(super) static BUCKET_CLAIM: Row = Row {
    memory: Held(&[
        Test("operator/tests/memory.rs", "a_tenants_objects_take_no_more_than_their_share"),
        Test(KEPT, "what_is_kept_of_a_claim_has_a_bound_by_capacity"),
        Test(KEPT, "a_long_template_is_a_digest_in_a_cache_and_whole_in_a_pass"),
        Test(KEPT, "the_first_rules_of_a_claim_are_kept_that_fit"),
        Test(KEPT, "of_a_status_the_conditions_that_fit_are_kept"),
    ]),
    schema: Held(&[
        Test("crates/api/src/crd.rs", "every_list_map_and_string_of_a_spec_has_a_maximum"),
        Object("a Secret name of 254 characters"),
        Object("a quota of 33 characters"),
        Object("a backend name of 254 characters"),
    ]),
    pace: Held(&[
        Test(PACE, "a_burst_is_let_through_and_the_rest_comes_slowly"),
        Test(WAKES, "a_claim_that_is_touched_without_end_has_its_store_asked_at_a_pace"),
        Test("operator/tests/world/rotation_limits.rs", "no_rotation_starts_within_a_minute_of_the_last"),
        Test(
            "operator/tests/world/turns.rs",
            "a_burst_of_one_namespace_is_done_one_after_the_other_and_holds_nobody_else_up",
        ),
    ]),
    requests: Held(&[
        Test("operator/tests/world/create.rs", "binding_a_claim_costs_seven_kubernetes_requests_and_three_s3_calls"),
        Test(BY_NAME, "a_claim_with_one_key_goes_with_its_empty_bucket_in_nine_requests"),
        Test(BY_NAME, "a_rotation_lists_nothing"),
        Test(BY_NAME, "a_claim_that_has_had_many_keys_is_rotated_and_goes_in_few_requests"),
    ]),
    revoke: Held(&[
        Test(REVOCATION, "every_key_ends_at_once_in_the_middle_of_a_rotation_too"),
        Test(REVOCATION, "a_revocation_waits_for_nothing"),
        Test(REVOCATION, "a_key_that_somebodys_finalizer_keeps_is_over_all_the_same"),
        Test(WAKES, "a_claim_that_is_touched_without_end_has_its_keys_revoked_at_once"),
        Explored("revoke"),
        Explored("revoke-in-rotation"),
    ]),
    served_by: Held(&[
        Test(INSTALLATIONS, "of_two_installations_one_serves_a_backend_and_its_claims"),
        Test(INSTALLATIONS, "a_note_that_its_owner_writes_keeps_no_key_alive"),
        Test(INSTALLATIONS, "an_object_tells_of_a_note_no_more_once_it_is_taken_off"),
        Test("operator/src/plan/tests/notes.rs", "a_deletion_notes_us_again_before_the_last_secret_goes"),
        Test(METRICS, "a_claim_that_goes_and_is_another_operators_counts_as_deleting"),
        Explored("revoke-noted"),
        Explored("delete-noted"),
    ]),
    takeover: Held(&[
        Test(INSTALLATIONS, "a_claim_whose_backend_was_taken_over_keeps_what_it_has_and_says_so"),
        Test(INSTALLATIONS, "the_guide_hands_over_each_kind_that_an_operator_notes_itself_on"),
        Test(
            "operator/src/plan/tests/notes.rs",
            "a_claim_that_was_handed_over_loses_its_keys_here_and_is_left_alone_else",
        ),
        Test("operator/tests/world/ownership.rs", "a_retained_bucket_comes_back_to_a_claim_of_its_name"),
        Test("operator/tests/world/status.rs", "a_claim_whose_status_was_lost_or_is_old_loses_nothing"),
        Explored("restore"),
    ]),
    metrics: Held(&[
        Test(METRICS, "a_bound_a_waiting_and_a_failing_claim_show_in_every_family"),
        Test(METRICS, "deletions_are_timed_by_policy_and_objects_counted"),
        Test(METRICS, "accesses_object_bucket_claims_and_what_is_left_to_another_operator_show"),
    ]),
    alert: Held(&[Alert("StowageClaimNotReady"), Alert("StowageClaimStalled"), Alert("StowageDeletionStuck")]),
    preview: Held(&[
        Test(AHEAD, "what_plan_says_comes_next_is_what_the_operator_then_does"),
        Test(AHEAD, "why_tells_for_each_reason_since_when_and_what_would_change_it"),
        Test(AHEAD, "what_another_operator_serves_is_left_alone_and_said_to_be"),
        OnServer("plan"),
    ]),
    rbac: Held(&[
        Test(RBAC, "the_operator_is_granted_what_it_does_and_nothing_else"),
        Test(RBAC, "one_that_serves_some_namespaces_is_granted_what_it_does_there_and_nothing_else"),
        Test("operator/tests/program/namespaced.rs", "nothing_is_asked_for_outside_of_the_namespaces_that_are_served"),
        Test("e2e/src/chart/tokens.rs", "manifests_grant_each_token_what_the_table_says"),
    ]),
    threat: Held(&[
        Threat("3.5.memory"),
        Threat("3.2.record.decides"),
        Threat("3.2.proof"),
        Threat("1.claim.servedBy.overruled"),
        Threat("3.3.revoke.atOnce"),
    ]),
    uninstall: Held(&[
        Guide("docs/operate/uninstall.md"),
        Test(AHEAD, "what_hangs_without_the_operator_is_told_with_the_end_of_its_bucket"),
        Played("chart", "e2e/src/chart/life.rs", "play"),
        Played("chart", "e2e/src/chart/policies.rs", "definitions"),
    ]),
    upgrade: Held(&[
        OnServer("upgrade"),
        Explored("older-version"),
        Explored("older-paused"),
        Played("chart", "e2e/src/chart/earlier.rs", "upgrade"),
    ]),
    simulator: Held(&[
        Test("sim/tests/up/history.rs", "a_life_of_a_claim_is_played_again_step_by_step"),
        Test("sim/tests/up/main.rs", "the_page_hears_of_claims_and_calls_and_of_no_secret"),
        Test("sim/src/up/view.rs", "a_claim_is_shown_with_its_keys_in_order_and_none_of_their_secrets"),
    ]),
    oracle: Held(&[
        Oracle(I1, "delete-forced"),
        Oracle(I4, "conflict"),
        Oracle(I5, "rotate"),
        Oracle(I7, "revoke"),
        Oracle(I12, "create"),
        Oracle(I13, "delete"),
        Oracle(I16, "bucket-lost"),
        Oracle(L1, "move"),
        Oracle(L2, "delete-locked"),
        Oracle(L3, "revoke-in-rotation"),
        Oracle(E1, "secret-taken"),
    ]),
    mutant: Held(&[
        Mutant("bucket-before-finalizer"),
        Mutant("revocation-waits-for-the-overlap"),
        Mutant("record-proves-alone"),
        Mutant("a-note-keeps-the-keys"),
        Mutant("a-list-is-all-news"),
    ]),
};
