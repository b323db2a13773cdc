//! Requests of tenants to gateways: valid and invalid ones, with keys that change, at two gateways
//! of which one lags.

use std::time::Duration;

use jiff::SignedDuration;
use serde_json::{Value, json};
use stowage_operator::api::wire::Role;
use stowage_world::Options;
use stowage_world::effects::GatewayPlan;
use stowage_world::history::facts::expires_at;
use stowage_world::history::{Facts, Right};
use stowage_world::scenes::{CLAIM, Goal, NAMESPACE, StoreStep};

use super::super::scenario::{Scenario, ScenarioPhase, ScenarioStep, WorldStep};
use super::super::script::{Attempt, Holder, beyond_quota, looks, of_length, public, tricks, uploads, with};
use super::words::{
    BASE, BOUND, BUCKET, ask_to_rotate, at_work, check_bound, claim_with, give_claim, no_other, pass, patch, revoke,
};

/// Namespace and name of another tenant's claim, whose bucket the first tenant must not reach.
const OTHER: (&str, &str) = ("team-b", "films");
const OTHERS_BUCKET: &str = "team-b-films";
/// Seconds after which every gateway knows of a change, even if its watch met a fault.
const HEARD: u64 = 60;
/// Lag of one of two gateways.
const BEHIND: Duration = Duration::from_secs(20);

fn world() -> Options {
    Options { gateway_plan: Some(GatewayPlan::default()), ..Options::default() }
}

/// Returns the steps after which two tenants have an object each and faults may begin.
fn two_tenants(spec: &str) -> Vec<ScenarioStep> {
    let other = Goal::new("the other claim is bound", |facts| facts.is_bound(OTHER.0, OTHER.1));
    let bound = vec![
        give_claim(spec),
        ScenarioStep::Apply(claim_with(OTHER.0, OTHER.1, "")),
        ScenarioStep::Until(BOUND),
        ScenarioStep::Until(other),
        ScenarioStep::Tenant(NAMESPACE, CLAIM),
        ScenarioStep::Store(StoreStep::PutObject { bucket: BUCKET, key: "data" }),
        ScenarioStep::Store(StoreStep::PutObject { bucket: OTHERS_BUCKET, key: "data" }),
        pass(HEARD),
        ScenarioStep::Begin,
        WorldStep::Keep(NAMESPACE, CLAIM).into(),
    ];
    [at_work(BASE), bound].concat()
}

fn requests(what: &'static str, gateway: usize, attempts: fn() -> Vec<Attempt>) -> ScenarioStep {
    WorldStep::Requests { what, gateway, attempts }.into()
}

fn now() -> Vec<Attempt> {
    with(Holder::Claim(NAMESPACE, CLAIM), Right::Good)
}

fn kept() -> Vec<Attempt> {
    with(Holder::Kept, Right::Good)
}

fn over() -> Vec<Attempt> {
    with(Holder::Kept, Right::Over)
}

fn one_key(facts: &Facts) -> bool {
    facts.is_bound(NAMESPACE, CLAIM) && facts.internal(Role::VirtualCredential, NAMESPACE, CLAIM).len() == 1
}

const ROTATED: Goal = Goal::new("the key is replaced and the old one gone", |facts| {
    facts.claim(NAMESPACE, CLAIM)["status"]["handledRotateRequest"].is_string() && one_key(facts)
});

/// The old key has ended, and its Secret still exists.
///
/// The Secret is deleted a minute after the end of the key. Until then only the expiry shows that
/// the key has ended, also to a gateway whose clock is behind by less than 48 s.
const ENDED: Goal = Goal::new("the key is replaced and the old one has ended", |facts| {
    let has_ended = |key: &Value| match expires_at(key) {
        Some(end) => facts.at.duration_since(end) >= SignedDuration::from_secs(48),
        None => true,
    };
    facts.is_bound(NAMESPACE, CLAIM)
        && facts.claim(NAMESPACE, CLAIM)["status"]["handledRotateRequest"].is_string()
        && facts.current_keys(NAMESPACE, CLAIM).len() == 1
        && facts.internal(Role::VirtualCredential, NAMESPACE, CLAIM).into_iter().all(|(_, key)| has_ended(key))
});

/// All permitted and all forbidden requests for objects.
pub(in super::super) static OBJECTS: Scenario = Scenario {
    name: "objects",
    about: "tenants write, read, copy and remove objects through the gateway, others try what they may not; then the key is replaced",
    phase: ScenarioPhase::Rotate,
    world,
    script: || {
        let asked = vec![
            requests("objects are written", 0, uploads),
            requests("objects are read, listed and removed", 0, looks),
            requests("somebody tries what nobody may", 0, tricks),
            ask_to_rotate("now"),
            ScenarioStep::Until(ENDED),
            requests("a key that has ended is used", 0, over),
            ScenarioStep::Until(ROTATED),
            pass(HEARD),
            requests("the next key is used", 0, now),
            requests("the old key is used", 0, over),
        ];
        [two_tenants("rotationPolicy: {overlapSeconds: 60}"), asked].concat()
    },
    goal: ROTATED,
    otherwise: no_other,
    ends_alike: false,
    check: check_bound,
};

const CLOSED: Goal = Goal::new("the claim is bound and public access is gone", |facts| {
    facts.is_bound(NAMESPACE, CLAIM) && facts.internal(Role::AnonymousBinding, NAMESPACE, CLAIM).is_empty()
});

/// Requests without a key, with and without public access.
pub(in super::super) static OBJECTS_PUBLIC: Scenario = Scenario {
    name: "objects-public",
    about: "somebody without a key asks the gateway for objects while the bucket is public, and when it is so no more",
    phase: ScenarioPhase::Edit,
    world,
    script: || {
        let access = |mode| patch(json!({"spec": {"anonymousAccess": {"mode": mode}}}));
        let is_open = Goal::new("public access is given", |facts| {
            facts.is_bound(NAMESPACE, CLAIM) && !facts.internal(Role::AnonymousBinding, NAMESPACE, CLAIM).is_empty()
        });
        let asked = vec![
            access("ReadOnly"),
            ScenarioStep::Until(is_open),
            pass(HEARD),
            requests("somebody asks for what is public", 0, || public(true)),
            access("None"),
            ScenarioStep::Until(CLOSED),
            pass(HEARD),
            requests("somebody asks for what is public no more", 0, || public(false)),
        ];
        [two_tenants(""), asked].concat()
    },
    goal: CLOSED,
    otherwise: no_other,
    ends_alike: false,
    check: check_bound,
};

const REVOKED: Goal = Goal::new("the revocation is handled and one key left", |facts| {
    facts.claim(NAMESPACE, CLAIM)["status"]["handledRevokeRequest"].is_string() && one_key(facts)
});

/// Two gateways, one of which learns of keys late.
pub(in super::super) static TWO_GATEWAYS: Scenario = Scenario {
    name: "two-gateways",
    about: "a key is replaced and then revoked before two gateways, one of which hears of it 20 s late",
    phase: ScenarioPhase::Rotate,
    world: || Options { gateways: 2, ..world() },
    script: || {
        let rotated = Goal::new("the request for a new key is handled", |facts| {
            facts.is_bound(NAMESPACE, CLAIM)
                && facts.claim(NAMESPACE, CLAIM)["status"]["handledRotateRequest"].is_string()
        });
        let asked = vec![
            WorldStep::FallBehind(1, BEHIND).into(),
            WorldStep::TenantAt(NAMESPACE, CLAIM, 1).into(),
            ask_to_rotate("now"),
            ScenarioStep::Until(rotated),
            requests("the next key is used at once", 0, now),
            requests("the next key is used at once", 1, now),
            requests("the old key is used", 0, kept),
            requests("the old key is used", 1, kept),
            pass(HEARD),
            revoke("leaked"),
            ScenarioStep::Until(REVOKED),
            pass(HEARD + BEHIND.as_secs()),
            requests("the old key is used", 0, over),
            requests("the old key is used", 1, over),
            requests("the last key is used", 0, now),
            requests("the last key is used", 1, now),
        ];
        [two_tenants("rotationPolicy: {overlapSeconds: 600}"), asked].concat()
    },
    goal: REVOKED,
    otherwise: no_other,
    ends_alike: false,
    check: check_bound,
};

/// Seconds longer than the largest delay of scanning a bucket with a quota.
const SCANNED: u64 = 12 * 60;

/// A quota at two gateways, one of which learns late of the other's writes.
pub(in super::super) static OBJECTS_QUOTA: Scenario = Scenario {
    name: "objects-quota",
    about: "a bucket is filled to its hard quota by two gateways, one of which hears of the other 20 s late; then room is made",
    phase: ScenarioPhase::Edit,
    world: || Options { gateways: 2, ..world() },
    script: || {
        let asked = vec![
            requests("what fits is written", 0, || of_length("first", 2000, Right::Good)),
            WorldStep::FallBehind(1, BEHIND).into(),
            requests("more than fits is written", 0, || of_length("second", 3000, Right::TooMuch)),
            requests("what nearly fills it is written", 0, || of_length("third", 1900, Right::Good)),
            requests("much is written at once at the late one", 1, || of_length("fourth", 3000, Right::TooMuch)),
            requests("a little is written at once at the late one", 1, || of_length("fifth", 900, Right::Either)),
            pass(HEARD + BEHIND.as_secs()),
            requests("more than fits is written", 1, || of_length("sixth", 1000, Right::TooMuch)),
            requests("more than fits is written, and something removed", 0, beyond_quota),
            pass(SCANNED),
            requests("what has room again is written", 0, || of_length("second", 1000, Right::Good)),
        ];
        [two_tenants("quota: {hard: 4096}"), asked].concat()
    },
    goal: BOUND,
    otherwise: no_other,
    ends_alike: false,
    check: check_bound,
};
