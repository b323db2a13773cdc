//! Cells of the Secrets for keys, public access and tenants, which are derived from the records.

use stowage_proof::oracles::Promise::{A1, A3, A5, I5, I6, I7, I8, I9, I10, I11, I12, I13, I14, I15, I16};

use super::Row;
use super::evidence::Cell::{Exempt, Held};
use super::evidence::Proof::{self, Explored, Guide, OnServer, Test};
use super::evidence::{Alert, Mutant, Oracle, Threat};

const TESTS: &str = "crates/api/src/secrets/tests.rs";
const SERVED: &str = "crates/api/src/secrets/served/tests.rs";
const ACCESS_TESTS: &str = "crates/api/src/secrets/access_tests.rs";
const SHAPES: &str = "crates/api/src/secrets/shape_tests.rs";
const DELETION: &str = "operator/src/plan/tests/deletion/revocation.rs";
const BY_NAME: &str = "operator/tests/world/by_name.rs";
const REVOCATION: &str = "operator/tests/world/revocation.rs";
const ORPHANS: &str = "operator/tests/world/orphans.rs";
const PLACES: &str = "operator/tests/world/places.rs";
const ACCESSES: &str = "operator/tests/world/accesses.rs";
const INSTALLATIONS: &str = "operator/tests/world/installations.rs";
const METRICS: &str = "operator/tests/world/metrics.rs";
const AHEAD: &str = "operator/tests/world/ahead.rs";
const AHEAD_ACCESSES: &str = "operator/tests/world/ahead_accesses.rs";
const WIRE: &str = "operator/tests/world/wire.rs";
const REQUESTS: &str = "operator/tests/world/requests.rs";
const RBAC: &str = "proof/tests/tables/rbac.rs";

/// The reason why a Secret has no annotation `served-by`.
pub(super) const HAS_NO_NOTE: &str = "It has no such note: it is in the namespace of the operator that wrote it.";

/// Tests of the rights to Secrets in the operator's namespace.
pub(super) const RBAC_OF_INTERNAL: &[Proof] = &[
    Test(RBAC, "the_operator_is_granted_what_it_does_and_nothing_else"),
    Test(RBAC, "one_that_serves_some_namespaces_is_granted_what_it_does_there_and_nothing_else"),
    Test("testbed/src/rights.rs", "the_gateway_reads_secrets_and_backends_and_writes_what_it_counts"),
    Test("e2e/src/chart/tokens.rs", "manifests_grant_each_token_what_the_table_says"),
];

/// Tests that the simulator records only names of Secrets, and no values.
pub(super) const SIMULATOR_OF_INTERNAL: &[Proof] = &[
    Test("sim/src/up/recorder.rs", "what_a_secret_holds_never_comes_into_the_notes"),
    Test("world/src/deeds/redact.rs", "names_stay_and_values_go_and_equal_values_stay_equal"),
];

/// Tests of the operator's Secrets that grow with the tenants' requests.
pub(super) const MEMORY_OF_INTERNAL: &[Proof] = &[
    Test("operator/tests/memory.rs", "a_tenants_objects_take_no_more_than_their_share"),
    Test("operator/src/cache/compressed.rs", "long_texts_of_a_secret_are_compressed_and_restored"),
    Test("gateway/tests/memory.rs", "what_is_known_of_an_object_takes_no_more_than_its_share"),
];

const WRITTEN_BY_US: &str = "The operator alone writes it, and each text in it has a bound.";

pub(super) static VIRTUAL_CREDENTIAL: Row = Row {
    memory: Exempt(WRITTEN_BY_US),
    schema: Held(&[
        Test(TESTS, "a_credential_is_read_only_as_what_it_derives_to"),
        Test(TESTS, "a_secret_key_that_the_operator_can_not_have_made_is_damage"),
        Test(SERVED, "a_credential_counts_whole_or_not_at_all"),
        Test(WIRE, "a_damaged_credential_is_told_and_not_overwritten"),
    ]),
    pace: Held(&[
        Test("operator/tests/world/rotation_limits.rs", "no_rotation_starts_within_a_minute_of_the_last"),
        Test(REVOCATION, "requests_within_a_minute_count_as_one"),
        Test("operator/tests/world/kept.rs", "no_third_key_is_made_while_one_that_is_over_is_kept"),
    ]),
    requests: Held(&[
        Test(BY_NAME, "a_rotation_lists_nothing"),
        Test(BY_NAME, "a_claim_that_has_had_many_keys_is_rotated_and_goes_in_few_requests"),
        Test("gateway/src/registry/live.rs", "a_key_is_asked_for_once_a_second"),
    ]),
    revoke: Held(&[
        Test(REVOCATION, "every_key_ends_at_once_in_the_middle_of_a_rotation_too"),
        Test(DELETION, "a_credential_without_labels_is_found_by_an_operator_that_finds_no_record"),
        Test("sim/tests/serve/gateway.rs", "a_key_ends_with_its_secret"),
    ]),
    served_by: Held(&[
        Test(INSTALLATIONS, "a_note_that_its_owner_writes_keeps_no_key_alive"),
        Test("operator/src/plan/tests/notes.rs", "a_note_keeps_no_revocation_from_being_done"),
        Explored("revoke-noted"),
    ]),
    takeover: Held(&[
        Test(ORPHANS, "a_restored_credential_without_a_record_is_revoked_and_lets_go_of_its_bucket"),
        Test(ORPHANS, "restored_secrets_of_a_claim_that_is_gone_are_revoked"),
        Explored("restore"),
    ]),
    metrics: Held(&[
        Test(METRICS, "rotations_are_counted_by_what_asked_for_them"),
        Test(PLACES, "what_notes_no_store_is_counted"),
    ]),
    alert: Held(&[Alert("StowageClaimStalled")]),
    preview: Held(&[
        Test(AHEAD, "what_plan_says_comes_next_is_what_the_operator_then_does"),
        Test(AHEAD, "what_is_left_of_a_claim_that_is_gone_is_told_as_well"),
    ]),
    rbac: Held(RBAC_OF_INTERNAL),
    threat: Held(&[Threat("2.credential.secretKey"), Threat("3.3.stamp.enforced"), Threat("`vc-` Secrets")]),
    uninstall: Held(&[
        Guide("docs/operate/uninstall.md"),
        Test(
            "operator/tests/world/deletion.rs",
            "public_access_goes_first_then_keys_then_the_rest_and_the_finalizer_last",
        ),
    ]),
    upgrade: Held(&[
        OnServer("upgrade"),
        Test(PLACES, "secrets_of_an_older_operator_work_and_are_completed_also_after_a_rollback"),
        Explored("older-version"),
    ]),
    simulator: Held(&[
        Test("sim/src/up/view.rs", "a_claim_is_shown_with_its_keys_in_order_and_none_of_their_secrets"),
        Test("sim/src/up/recorder.rs", "what_a_secret_holds_never_comes_into_the_notes"),
    ]),
    oracle: Held(&[
        Oracle(I5, "rotate-spammed"),
        Oracle(I6, "rotate"),
        Oracle(I7, "revoke"),
        Oracle(I8, "rotate-overlapping"),
        Oracle(I10, "burst"),
        Oracle(I15, "objects"),
    ]),
    mutant: Held(&[
        Mutant("missing-is-minted-again"),
        Mutant("rotation-does-not-wait"),
        Mutant("minted-before-it-is-revoked"),
        Mutant("revoked-is-told-as-gone"),
        Mutant("a-note-keeps-the-keys"),
    ]),
};

pub(super) static ACCESS_CREDENTIAL: Row = Row {
    memory: Held(MEMORY_OF_INTERNAL),
    schema: Held(&[
        Test(ACCESS_TESTS, "a_key_of_an_access_is_none_that_older_versions_read"),
        Test(ACCESS_TESTS, "a_scope_that_can_not_be_read_opens_nothing_and_closes_no_other"),
        Test(ACCESS_TESTS, "a_secret_key_that_the_operator_can_not_have_made_is_damage"),
    ]),
    pace: Held(&[
        Test(ACCESSES, "a_key_is_replaced_on_request_and_the_old_one_works_for_the_overlap"),
        Explored("access"),
    ]),
    requests: Held(&[
        Test("operator/tests/world/access_cost.rs", "consent_and_a_key_cost_the_same_beside_strangers"),
        Test("gateway/src/registry/live.rs", "a_key_is_asked_for_once_a_second"),
    ]),
    revoke: Held(&[
        Test(ACCESSES, "a_revocation_ends_every_key_at_once"),
        Test(ACCESSES, "one_write_ends_every_access_when_the_claim_goes"),
        Test(ACCESSES, "a_key_that_somebody_keeps_keeps_no_other_from_its_end"),
    ]),
    served_by: Held(&[
        Test(INSTALLATIONS, "a_note_that_its_owner_writes_keeps_no_key_alive"),
        Test(INSTALLATIONS, "an_access_that_a_takeover_forgot_says_so_and_goes_on_once_it_is_handed_over"),
    ]),
    takeover: Held(&[
        Test(INSTALLATIONS, "an_access_that_a_takeover_forgot_says_so_and_goes_on_once_it_is_handed_over"),
        Test(ACCESSES, "keys_of_an_access_whose_finalizer_was_stripped_are_swept"),
    ]),
    metrics: Held(&[Test(METRICS, "keys_of_accesses_age_and_their_rotations_are_counted")]),
    alert: Held(&[Alert("StowageAccessNotReady")]),
    preview: Held(&[
        Test(AHEAD_ACCESSES, "what_plan_says_comes_next_of_an_access_is_what_the_operator_then_does"),
        Test(AHEAD_ACCESSES, "what_is_left_of_an_access_that_is_gone_is_told_as_well"),
    ]),
    rbac: Held(RBAC_OF_INTERNAL),
    threat: Held(&[Threat("8.key"), Threat("8.gateway.record"), Threat("8.mode.read")]),
    uninstall: Held(&[Guide("docs/operate/uninstall.md"), Test(ACCESSES, "a_deleted_access_leaves_nothing")]),
    upgrade: Exempt("No version that is kept makes keys of accesses, and none reads one."),
    simulator: Held(&[
        Test("sim/tests/up/shared.rs", "an_access_is_reached_by_what_env_tells_and_the_page_shows_what_it_opens"),
        Test("sim/src/up/recorder.rs", "what_a_secret_holds_never_comes_into_the_notes"),
    ]),
    oracle: Held(&[Oracle(A1, "access-narrowed"), Oracle(A3, "access"), Oracle(A5, "access")]),
    mutant: Held(&[
        Mutant("keys-speak-for-themselves"),
        Mutant("ended-keys-of-accesses-stay"),
        Mutant("accesses-are-rotated-at-once"),
        Mutant("scopes-are-read-once"),
    ]),
};

pub(super) static ANONYMOUS_BINDING: Row = Row {
    memory: Exempt(WRITTEN_BY_US),
    schema: Held(&[Test(SERVED, "a_binding_counts_whole_or_not_at_all")]),
    pace: Exempt("The passes of its claim write it, at the pace of that one."),
    requests: Held(&[
        Test(BY_NAME, "a_claim_with_one_key_goes_with_its_empty_bucket_in_nine_requests"),
        Test(DELETION, "a_binding_that_one_read_did_not_find_is_found_before_the_claim_goes"),
    ]),
    revoke: Exempt(
        "It is no key: who may edit the claim ends public access by the spec, which waits for nothing either.",
    ),
    served_by: Held(&[Test(
        "operator/src/plan/tests/notes.rs",
        "a_note_beside_our_secrets_changes_nothing_and_is_told",
    )]),
    takeover: Held(&[
        Test("operator/tests/world/endpoints.rs", "a_bucket_that_is_found_elsewhere_stays_open_to_whom_it_was"),
        Test(ORPHANS, "a_claim_whose_finalizer_was_stripped_loses_all_access_and_keeps_its_bucket"),
        Explored("older-paused"),
    ]),
    metrics: Held(&[Test(PLACES, "what_notes_no_store_is_counted")]),
    alert: Exempt("What is wrong with it shows at its claim, which has the alerts."),
    preview: Held(&[Test(AHEAD, "what_plan_says_comes_next_is_what_the_operator_then_does")]),
    rbac: Held(RBAC_OF_INTERNAL),
    threat: Held(&[Threat("6.anonymous.oldest"), Threat("6.anonymous.rate")]),
    uninstall: Held(&[
        Guide("docs/operate/uninstall.md"),
        Test(
            "operator/tests/world/deletion.rs",
            "public_access_goes_first_then_keys_then_the_rest_and_the_finalizer_last",
        ),
    ]),
    upgrade: Held(&[
        Test(PLACES, "secrets_of_an_older_operator_work_and_are_completed_also_after_a_rollback"),
        Explored("older-paused"),
    ]),
    simulator: Held(SIMULATOR_OF_INTERNAL),
    oracle: Held(&[
        Oracle(I7, "delete-public"),
        Oracle(I12, "delete-public"),
        Oracle(I14, "anonymous"),
        Oracle(I15, "objects-public"),
        Oracle(I16, "move-public"),
    ]),
    mutant: Held(&[
        Mutant("public-access-outlives-its-claim"),
        Mutant("public-without-a-note"),
        Mutant("public-for-good"),
        Mutant("hidden-binding-is-read-once"),
    ]),
};

pub(super) static CONSUMER_SECRET: Row = Row {
    memory: Held(&[
        Test("operator/tests/memory.rs", "a_tenants_objects_take_no_more_than_their_share"),
        Test("operator/src/cache/consumer.rs", "what_is_kept_of_a_tenants_secret_has_a_bound_by_capacity"),
    ]),
    schema: Held(&[
        Test(SHAPES, "what_would_be_too_large_is_known_before_it_is_made"),
        Test(SHAPES, "what_can_not_be_is_refused_with_why"),
        Test(WIRE, "a_secret_of_ours_that_is_immutable_or_of_another_type_is_a_conflict"),
    ]),
    pace: Held(&[
        Test(WIRE, "what_somebody_changed_in_a_secret_of_ours_is_repaired"),
        Test("operator/src/controller/pace.rs", "a_burst_is_let_through_and_the_rest_comes_slowly"),
    ]),
    requests: Held(&[
        Test("operator/tests/world/rest.rs", "secrets_of_others_cost_nothing"),
        Test(REQUESTS, "nothing_is_listed_or_watched_that_is_not_ours"),
    ]),
    revoke: Held(&[
        Test(REVOCATION, "every_key_ends_at_once_in_the_middle_of_a_rotation_too"),
        Test(ACCESSES, "a_revocation_ends_every_key_at_once"),
    ]),
    served_by: Held(&[Test(INSTALLATIONS, "a_note_that_its_owner_writes_keeps_no_key_alive")]),
    takeover: Held(&[
        Test(WIRE, "a_strangers_secret_is_left_alone_and_taken_over_by_nobody"),
        Test("operator/tests/world/forged.rs", "a_forged_consumer_secret_opens_no_bucket_of_others"),
        Explored("restore"),
    ]),
    metrics: Exempt("What is wrong with it shows at its claim or access, which are counted."),
    alert: Held(&[Alert("StowageClaimStalled"), Alert("StowageAccessNotReady")]),
    preview: Held(&[
        Test(AHEAD, "what_plan_says_comes_next_is_what_the_operator_then_does"),
        Test(AHEAD_ACCESSES, "why_tells_of_an_access_that_is_paused_or_deleted_or_whose_secret_is_anothers"),
    ]),
    rbac: Held(&[
        Test(RBAC, "the_operator_is_granted_what_it_does_and_nothing_else"),
        Test(RBAC, "one_that_serves_some_namespaces_is_granted_what_it_does_there_and_nothing_else"),
        Test("operator/tests/program/namespaced.rs", "nothing_is_asked_for_outside_of_the_namespaces_that_are_served"),
        Test("e2e/src/chart/tokens.rs", "manifests_grant_each_token_what_the_table_says"),
    ]),
    threat: Held(&[Threat("2.consumer.owner"), Threat("2.labels.noProof"), Threat("3.5.memory.template")]),
    uninstall: Held(&[
        Guide("docs/operate/uninstall.md"),
        Test(
            "operator/tests/world/deletion.rs",
            "public_access_goes_first_then_keys_then_the_rest_and_the_finalizer_last",
        ),
        Test(ACCESSES, "a_deleted_access_leaves_nothing"),
    ]),
    upgrade: Held(&[OnServer("upgrade"), Explored("older-version")]),
    simulator: Held(&[
        Test("sim/tests/up/main.rs", "an_app_reaches_its_bucket_by_what_env_tells"),
        Test("sim/src/up/recorder.rs", "what_a_secret_holds_never_comes_into_the_notes"),
        Test("world/src/deeds/redact.rs", "patches_of_a_secret_tell_nothing_either"),
    ]),
    oracle: Held(&[
        Oracle(I9, "rotate"),
        Oracle(I10, "rotate"),
        Oracle(I11, "rotate"),
        Oracle(I13, "secret-taken"),
        Oracle(I14, "rename"),
    ]),
    mutant: Held(&[
        Mutant("consumer-goes-back"),
        Mutant("consumer-is-remade"),
        Mutant("strangers-secret-is-repaired"),
        Mutant("cached-key-is-published"),
        Mutant("renamed-secret-is-forgotten"),
    ]),
};
