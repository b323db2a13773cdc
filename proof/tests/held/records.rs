//! Cells of the records: Secrets in which the operator stores its state of claims and accesses.

use stowage_proof::oracles::Promise::{A2, A3, I4, I12, I13, I14, L1};

use super::Row;
use super::evidence::Cell::{Exempt, Held};
use super::evidence::Proof::{Explored, Guide, OnServer, Test};
use super::evidence::{Alert, Mutant, Oracle, Threat};
use super::secrets::{HAS_NO_NOTE, MEMORY_OF_INTERNAL, RBAC_OF_INTERNAL, SIMULATOR_OF_INTERNAL};

const TESTS: &str = "crates/api/src/secrets/tests.rs";
const SERVED: &str = "crates/api/src/secrets/served/tests.rs";
const ACCESS_TESTS: &str = "crates/api/src/secrets/access_tests.rs";
const ORPHANS_PLANNED: &str = "operator/src/plan/orphans/tests.rs";
const BY_NAME: &str = "operator/tests/world/by_name.rs";
const OWNERSHIP: &str = "operator/tests/world/ownership.rs";
const REVOCATION: &str = "operator/tests/world/revocation.rs";
const ORPHANS: &str = "operator/tests/world/orphans.rs";
const ACCESSES: &str = "operator/tests/world/accesses.rs";
const AHEAD: &str = "operator/tests/world/ahead.rs";

pub(super) static BUCKET_RECORD: Row = Row {
    memory: Held(MEMORY_OF_INTERNAL),
    schema: Held(&[
        Test(TESTS, "a_record_under_another_name_is_damaged"),
        Test(SERVED, "what_is_kept_of_a_record_has_a_bound"),
    ]),
    pace: Exempt("The passes of its claim write it, at the pace of that one."),
    requests: Held(&[
        Test(BY_NAME, "a_slow_store_has_nothing_listed"),
        Test(BY_NAME, "a_claim_whose_bucket_is_retained_goes_in_nine_requests_less_the_second_look_at_it"),
        Test(ORPHANS, "a_claim_that_is_deleted_as_it_should_be_costs_no_sweep"),
    ]),
    revoke: Held(&[
        Test(REVOCATION, "a_record_that_is_made_again_revokes_what_the_status_does_not_tell_as_handled"),
        Test(REVOCATION, "after_a_move_the_keys_to_both_buckets_are_revoked"),
    ]),
    served_by: Held(&[
        Test("operator/src/plan/tests/notes.rs", "a_note_keeps_no_consent_that_was_withdrawn"),
        Test("operator/src/plan/tests/notes.rs", "a_deletion_notes_us_again_before_the_last_secret_goes"),
    ]),
    takeover: Held(&[
        Test(OWNERSHIP, "a_record_deleted_by_hand_is_remade_with_the_next_generation_and_a_warning"),
        Test(ORPHANS, "restored_secrets_of_a_claim_that_is_gone_are_revoked"),
        Explored("restore"),
    ]),
    metrics: Exempt("What is wrong with it shows at its claim, which is counted by phase."),
    alert: Held(&[Alert("StowageClaimStalled"), Alert("StowageDeletionStuck")]),
    preview: Held(&[
        Test(AHEAD, "what_plan_says_comes_next_is_what_the_operator_then_does"),
        Test(AHEAD, "what_is_left_of_a_claim_that_is_gone_is_told_as_well"),
    ]),
    rbac: Held(RBAC_OF_INTERNAL),
    threat: Held(&[Threat("to forge what the operator remembers"), Threat("3.2.record.decides"), Threat("`br-`")]),
    uninstall: Held(&[
        Guide("docs/operate/uninstall.md"),
        Test(
            "operator/tests/world/deletion.rs",
            "public_access_goes_first_then_keys_then_the_rest_and_the_finalizer_last",
        ),
    ]),
    upgrade: Held(&[
        OnServer("upgrade"),
        Test(TESTS, "a_record_without_a_note_of_the_lowest_generation_tells_of_all"),
        Explored("older-version"),
    ]),
    simulator: Held(SIMULATOR_OF_INTERNAL),
    oracle: Held(&[
        Oracle(I4, "conflict"),
        Oracle(I12, "create"),
        Oracle(I13, "access-withdrawn"),
        Oracle(I14, "orphans"),
        Oracle(A2, "access-claim-deleted"),
    ]),
    mutant: Held(&[
        Mutant("absence-before-record"),
        Mutant("remade-at-one"),
        Mutant("let-go-record-is-back"),
        Mutant("consent-in-any-version"),
        Mutant("who-retains-ends-no-access"),
    ]),
};

pub(super) static ACCESS_RECORD: Row = Row {
    memory: Exempt("The operator alone writes it, and each text in it has a bound."),
    schema: Held(&[
        Test(ACCESS_TESTS, "what_is_written_is_read_back"),
        Test(TESTS, "a_record_under_another_name_is_damaged"),
    ]),
    pace: Exempt("The passes of its access write it, at the pace of that one."),
    requests: Held(&[Test("operator/tests/world/access_cost.rs", "consent_and_a_key_cost_the_same_beside_strangers")]),
    revoke: Held(&[Test(ACCESSES, "a_revocation_ends_every_key_at_once")]),
    served_by: Exempt(HAS_NO_NOTE),
    takeover: Held(&[
        Test(
            "operator/tests/world/installations.rs",
            "an_access_that_a_takeover_forgot_says_so_and_goes_on_once_it_is_handed_over",
        ),
        Test(ORPHANS_PLANNED, "what_an_access_left_goes_key_first_once_two_reads_do_not_find_it"),
        Explored("access-left-behind"),
    ]),
    metrics: Exempt("What is wrong with it shows at its access, which is counted by reason."),
    alert: Held(&[Alert("StowageAccessNotReady")]),
    preview: Held(&[Test(
        "operator/tests/world/ahead_accesses.rs",
        "what_is_left_of_an_access_that_is_gone_is_told_as_well",
    )]),
    rbac: Held(RBAC_OF_INTERNAL),
    threat: Held(&[Threat("8.gateway.record"), Threat("8.gateway.namespace")]),
    uninstall: Held(&[Guide("docs/operate/uninstall.md"), Test(ACCESSES, "a_deleted_access_leaves_nothing")]),
    upgrade: Exempt("No version that is kept knows accesses."),
    simulator: Held(SIMULATOR_OF_INTERNAL),
    oracle: Held(&[Oracle(A3, "access-deleted"), Oracle(I12, "access-deleted"), Oracle(L1, "access-deleted")]),
    mutant: Held(&[Mutant("records-of-accesses-stay")]),
};
