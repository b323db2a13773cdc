//! Cells of the Leases.

use stowage_proof::oracles::Promise::{E2, G7, I17, L3};

use super::Row;
use super::evidence::Cell::{Exempt, Held};
use super::evidence::Proof::{Explored, OnServer, Test};
use super::evidence::{Alert, Mutant, Oracle, Threat};

const CANDIDATE: &str = "operator/src/election/candidate_tests.rs";
const QUOTAS: &str = "gateway/tests/front/quotas.rs";
const PEERS: &str = "gateway/src/quota/peers.rs";
const EXCHANGE: &str = "gateway/src/quota/exchange_tests.rs";
const RBAC: &str = "proof/tests/tables/rbac.rs";

pub(super) static LEADER: Row = Row {
    memory: Exempt("There is one, of which the election keeps a name, a duration and two versions."),
    schema: Held(&[Test(
        "operator/src/election/lease.rs",
        "a_lease_is_waited_for_no_longer_than_this_program_ever_asks_for",
    )]),
    pace: Held(&[
        Test(CANDIDATE, "after_a_try_that_failed_the_lease_is_read_and_not_at_once"),
        Test("proof/src/explorer/outlast.rs", "who_leads_renews_and_does_nothing_in_vain_by_that"),
    ]),
    requests: Exempt("There is one, and it is asked for by its name."),
    revoke: Exempt("It has no key."),
    served_by: Exempt("It has no such note: it names the operator that leads."),
    takeover: Held(&[
        Test("operator/tests/world/elections.rs", "whoever_is_told_to_end_hands_over_within_a_second"),
        Test(
            "operator/tests/world/elections.rs",
            "a_leader_that_could_not_renew_the_lease_goes_on_with_the_caches_that_it_has",
        ),
        Test(CANDIDATE, "a_lease_that_asks_for_long_is_not_waited_for_once_it_was_deleted"),
        Test(CANDIDATE, "a_leader_makes_its_lease_anew"),
        OnServer("election"),
        Explored("lease-deleted"),
    ]),
    metrics: Held(&[Test("operator/tests/world/elections.rs", "whoever_is_told_to_end_hands_over_within_a_second")]),
    alert: Held(&[Alert("StowageNoLeader")]),
    preview: Exempt("`plan` and `why` tell what any operator would do, whichever leads."),
    rbac: Held(&[
        Test(RBAC, "the_operator_is_granted_what_it_does_and_nothing_else"),
        Test("e2e/src/chart/tokens.rs", "manifests_grant_each_token_what_the_table_says"),
    ]),
    threat: Held(&[Threat("3.6.elect.one"), Threat("take or delete the Lease of the operators")]),
    uninstall: Exempt("It has no finalizer, and whoever led lets it go."),
    upgrade: Exempt("No version that is kept elects a leader."),
    simulator: Held(&[Test("sim/src/up/recorder.rs", "what_is_no_step_is_known")]),
    oracle: Held(&[Oracle(I17, "elected"), Oracle(I17, "lease-deleted"), Oracle(E2, "elected"), Oracle(L3, "elected")]),
    mutant: Held(&[
        Mutant("standby-does-not-wait"),
        Mutant("cluster-is-not-fenced"),
        Mutant("store-is-not-fenced"),
        Mutant("lease-goes-before-its-calls"),
    ]),
};

pub(super) static GATEWAY: Row = Row {
    memory: Held(&[
        Test("gateway/tests/memory.rs", "what_is_known_of_an_object_takes_no_more_than_its_share"),
        Test(PEERS, "of_forged_leases_no_more_are_remembered_than_a_bound"),
    ]),
    schema: Held(&[Test(EXCHANGE, "names_and_numbers_of_any_length_are_no_sign_of_life")]),
    pace: Held(&[Test(EXCHANGE, "a_lease_is_renewed_at_a_pace_whatever_the_api_server_answers")]),
    requests: Exempt("Each gateway has one, and watches those of the others."),
    revoke: Exempt("It has no key."),
    served_by: Exempt("It has no such note: only gateways read it."),
    takeover: Held(&[
        Test(QUOTAS, "a_gateway_that_ends_leaves_its_words_and_no_lease"),
        Test(QUOTAS, "a_gateway_is_ready_once_it_has_heard_of_the_others"),
        Test(QUOTAS, "a_lease_that_was_deleted_while_nobody_watched_counts_no_more"),
        Test(PEERS, "a_view_is_as_old_as_the_last_own_sign_that_came_back"),
        Test(PEERS, "a_lease_that_a_list_does_not_show_is_gone"),
    ]),
    metrics: Held(&[Test(QUOTAS, "gateways_that_come_and_go_are_measured")]),
    alert: Exempt(
        "A gateway that lost sight of the others keeps to its share, and `StowageGatewayStale` tells of its view.",
    ),
    preview: Exempt("`plan` and `why` tell what the operator would do, which doesn't read it."),
    rbac: Held(&[
        Test("testbed/src/rights.rs", "the_gateway_reads_secrets_and_backends_and_writes_what_it_counts"),
        Test("e2e/src/chart/tokens.rs", "manifests_grant_each_token_what_the_table_says"),
    ]),
    threat: Held(&[Threat("forge what buckets hold")]),
    uninstall: Held(&[Test(QUOTAS, "a_gateway_that_ends_leaves_its_words_and_no_lease")]),
    upgrade: Exempt("No version that is kept has quotas over several gateways."),
    simulator: Held(&[Test("sim/src/up/recorder.rs", "what_is_no_step_is_known")]),
    oracle: Held(&[Oracle(G7, "objects-quota")]),
    mutant: Held(&[Mutant("quota-of-one-replica")]),
};
