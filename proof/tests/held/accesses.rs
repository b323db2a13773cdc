//! Cells of BucketAccess.

use stowage_proof::oracles::Promise::{A1, A2, A3, A5, D1, E2, I12, I13, I16};

use super::Row;
use super::evidence::Cell::Held;
use super::evidence::Proof::{Explored, Guide, Object, OnServer, Test};
use super::evidence::{Alert, Mutant, Oracle, Threat};

const KEPT: &str = "crates/api/src/kept.rs";
const ACCESSES: &str = "operator/tests/world/accesses.rs";
const NAMESPACED: &str = "operator/tests/world/namespaced.rs";
const INSTALLATIONS: &str = "operator/tests/world/installations.rs";
const AHEAD: &str = "operator/tests/world/ahead_accesses.rs";
const RBAC: &str = "proof/tests/tables/rbac.rs";
const SHARED: &str = "sim/tests/up/shared.rs";

pub(super) static BUCKET_ACCESS: Row = Row {
    memory: Held(&[
        Test("operator/tests/memory.rs", "a_tenants_objects_take_no_more_than_their_share"),
        Test(KEPT, "what_is_kept_of_an_access_has_a_bound_by_capacity"),
    ]),
    schema: Held(&[
        Test("crates/api/src/crd.rs", "every_list_map_and_string_of_a_spec_has_a_maximum"),
        Object("an access to 65 buckets"),
        Object("a prefix of 513 characters"),
        Object("a label of 64 characters in the template of an access"),
    ]),
    pace: Held(&[
        Test("operator/tests/world/access_cost.rs", "claims_are_read_for_an_access_at_a_pace"),
        Test("operator/src/controller/pace.rs", "a_burst_is_let_through_and_the_rest_comes_slowly"),
    ]),
    requests: Held(&[
        Test("operator/tests/world/access_cost.rs", "consent_and_a_key_cost_the_same_beside_strangers"),
        Test("operator/tests/world/access_cost.rs", "a_claim_that_nobody_shares_is_not_read_for_a_key"),
        Test(ACCESSES, "nothing_is_written_at_rest_and_consent_is_written_once"),
    ]),
    revoke: Held(&[
        Test(ACCESSES, "a_revocation_ends_every_key_at_once"),
        Test(
            "operator/tests/world/access_revocation.rs",
            "a_revocation_that_the_api_server_does_not_carry_out_says_that_the_key_works",
        ),
        Test(ACCESSES, "a_key_that_somebody_keeps_keeps_no_other_from_its_end"),
        Test(INSTALLATIONS, "a_note_that_its_owner_writes_keeps_no_key_alive"),
    ]),
    served_by: Held(&[
        Test(INSTALLATIONS, "a_note_that_its_owner_writes_keeps_no_key_alive"),
        Test(INSTALLATIONS, "an_object_tells_of_a_note_no_more_once_it_is_taken_off"),
        Test(INSTALLATIONS, "an_access_to_what_another_operator_serves_is_not_begun_with"),
        Test(AHEAD, "an_access_that_another_operator_serves_is_left_alone_and_said_to_be"),
    ]),
    takeover: Held(&[
        Test(INSTALLATIONS, "an_access_that_a_takeover_forgot_says_so_and_goes_on_once_it_is_handed_over"),
        Test(INSTALLATIONS, "the_guide_hands_over_each_kind_that_an_operator_notes_itself_on"),
        Explored("access-left-behind"),
    ]),
    metrics: Held(&[Test(
        "operator/tests/world/metrics.rs",
        "accesses_object_bucket_claims_and_what_is_left_to_another_operator_show",
    )]),
    alert: Held(&[Alert("StowageAccessNotReady"), Alert("StowageDeletionStuck")]),
    preview: Held(&[
        Test(AHEAD, "what_plan_says_comes_next_of_an_access_is_what_the_operator_then_does"),
        Test(AHEAD, "of_an_access_at_rest_nothing_is_asked_and_the_document_says_what_it_is"),
        Test(AHEAD, "why_tells_of_each_entry_that_is_closed_what_would_open_it"),
        OnServer("plan"),
    ]),
    rbac: Held(&[
        Test(RBAC, "the_operator_is_granted_what_it_does_and_nothing_else"),
        Test(RBAC, "one_that_serves_some_namespaces_is_granted_what_it_does_there_and_nothing_else"),
        Test(NAMESPACED, "an_access_in_a_namespace_that_is_not_served_is_left_alone"),
        Test("e2e/src/chart/tokens.rs", "manifests_grant_each_token_what_the_table_says"),
    ]),
    threat: Held(&[
        Threat("8.map"),
        Threat("8.sharing.silent"),
        Threat("8.map.narrow"),
        Threat("8.servedBy.leftBehind"),
        Threat("3.5.memory"),
    ]),
    uninstall: Held(&[Guide("docs/operate/uninstall.md"), Test(ACCESSES, "a_deleted_access_leaves_nothing")]),
    upgrade: Held(&[Test(ACCESSES, "a_cluster_without_the_kind_keeps_nobody_waiting_and_may_get_it_later")]),
    simulator: Held(&[
        Test(SHARED, "an_access_is_reached_by_what_env_tells_and_the_page_shows_what_it_opens"),
        Test(SHARED, "an_access_without_consent_says_so_in_place_of_its_environment"),
        Test("sim/src/up/view.rs", "an_access_is_shown_with_what_each_entry_asks_for_and_comes_to_and_with_no_secret"),
        Test("sim/src/up/recorder.rs", "an_applied_manifest_is_read_in_yaml_with_its_query"),
    ]),
    oracle: Held(&[
        Oracle(A1, "access-withdrawn"),
        Oracle(A2, "access-claim-deleted"),
        Oracle(A3, "access"),
        Oracle(A5, "access-narrowed"),
        Oracle(I12, "access-deleted"),
        Oracle(I13, "access"),
        Oracle(I16, "access-revoked"),
        Oracle(E2, "access"),
        Oracle(D1, "access"),
    ]),
    mutant: Held(&[
        Mutant("everybody-is-consented-to"),
        Mutant("records-of-accesses-stay"),
        Mutant("echo-wakes-the-access"),
        Mutant("scopes-are-read-once"),
        Mutant("a-takeover-forgets-accesses"),
        Mutant("accesses-are-not-revoked"),
        Mutant("a-revoked-access-tells-of-no-key"),
        Mutant("consent-lists-all-accesses"),
    ]),
};
