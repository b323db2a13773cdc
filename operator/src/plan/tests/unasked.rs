//! Consent for namespaces that are not served (spec §3.9), whose accesses are unknown.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use rstest::rstest;
use serde_json::{Value, json};

use crate::api::{AccessMode, AccessRef, AdoptionPolicy, BackendAccess, BucketRecord, Consent, NamespaceUid};

use super::super::{
    Act, Answer, Asker, Asking, BackendSeen, Change, ConsentSeen, Look, SecretPatch, Step, Stored, Unasked, View,
};
use super::{Given, bound, claim_in, edited_backend, live, record, record_secret, step};

const ELSEWHERE: &str = "n-2";

fn reads() -> Consent {
    Consent { max_mode: AccessMode::ReadOnly, prefixes: Vec::new() }
}

/// Returns a bound claim with this sharing, whose record grants a namespace read access.
fn open(sharing: &Value) -> Given {
    let mut given = bound();
    let status = given.claim.status.clone();
    given.claim = claim_in("team-a", &json!({"sharing": sharing}), true);
    given.claim.status = status;
    let accesses = BTreeMap::from([(NamespaceUid::new(ELSEWHERE), reads())]);
    given.put(record_secret(&BucketRecord { ending: false, accesses, ..record() }));
    given
}

/// Returns cached data without any access.
fn asking(name: Option<&str>) -> Asking {
    let unasked = [(NamespaceUid::new(ELSEWHERE), name.map(str::to_owned))].into();
    Asking { unasked, ..Asking::default() }
}

/// Returns true if a pass that has read the claim live removes consent from its record, or queries
/// whether to.
fn narrows(given: &Given, asking: Asking) -> bool {
    let mut view = given.asked(asking);
    view.learn(live(&given.claim));
    match step(&view) {
        Step::Act(Act::Patch(patch)) => patch.change == Change::Consent,
        Step::Look(look) => matches!(look, Look::Consent(_)),
        Step::Act(_) | Step::Rest(_) => false,
    }
}

/// Returns the patch of a pass after live reads show these accesses.
fn opens(view: &mut View, given: &Given, askers: Vec<Asker>, unasked: Unasked) -> SecretPatch {
    let Step::Look(Look::Consent(question)) = step(view) else { panic!("got {}", step(view)) };
    let BackendSeen::Present { backend, .. } = &given.backends["main"] else { panic!("it is there") };
    let is_record = |secret: &&Stored| secret.name() == question.record.as_str();
    let seen = ConsentSeen {
        record: given.internal.values().find(is_record).cloned(),
        own: given.labelled(),
        askers,
        unasked,
        backend: Some(backend.clone()),
        claim: Some(Box::new(given.claim.clone())),
    };
    view.learn(Answer::Consent(question, Box::new(seen)));
    let Step::Act(Act::Patch(patch)) = step(view) else { panic!("got {}", step(view)) };
    patch
}

fn to(names: &[&str]) -> Value {
    json!([{"namespaces": {"names": names}, "maxMode": "ReadWrite"}])
}

// covers: 3.9.consent
#[rstest]
#[case::shared(to(&["team-b"]), Some("team-b"), false)]
#[case::by_labels(json!([{"namespaces": {"selector": {"matchLabels": {"a": "b"}}}, "maxMode": "ReadOnly"}]), Some("team-b"), false)]
#[case::with_somebody(to(&["team-x"]), None, false)]
#[case::with_another(to(&["team-x"]), Some("team-b"), true)]
#[case::with_nobody(json!([]), None, true)]
#[case::for_writing(json!([{"namespaces": {"names": ["team-b"]}, "maxMode": "WriteOnly"}]), Some("team-b"), true)]
#[case::a_trusted_one(to(&["vault"]), Some("vault"), true)]
fn consent_goes_where_sharing_can_not_mean_the_namespace_any_more(
    #[case] sharing: Value,
    #[case] name: Option<&str>,
    #[case] goes: bool,
) {
    assert_eq!(narrows(&open(&sharing), asking(name)), goes);
}

// covers: 3.9.consent
#[test]
fn it_goes_where_the_backend_can_not_mean_it_any_more() {
    let mut given = open(&to(&["team-b"]));
    let backend = edited_backend(AdoptionPolicy::Owned, |backend| {
        backend.access = BackendAccess::Some { names: vec!["team-a".to_owned()], selector: None };
    });
    given.backends.insert("main".to_owned(), backend);
    assert!(narrows(&given, asking(Some("team-b"))));
    assert!(!narrows(&open(&to(&["team-b"])), asking(Some("team-b"))));
}

/// A served namespace that the cache does not show was deleted.
#[test]
fn a_namespace_that_is_served_loses_what_it_had_with_itself() {
    assert!(narrows(&open(&to(&["team-b"])), Asking::default()));
}

/// An access created during a pass is unknown to it until the live read.
// covers: 8.map.raise
#[test]
fn what_a_pass_opens_to_somebody_who_came_meanwhile_it_does_not_take_back() {
    let mut given = bound();
    let asker = |name: &str, uid: &str| Asker {
        namespace: name.to_owned(),
        uid: NamespaceUid::new(uid),
        labels: BTreeMap::new(),
    };
    let status = given.claim.status.clone();
    given.claim = claim_in("team-a", &json!({"sharing": to(&["team-b"])}), true);
    given.claim.status = status;
    given.put(record_secret(&BucketRecord { ending: false, ..record() }));
    let own = asker("team-a", "n-1");
    let asking = Asking {
        accesses: [AccessRef { namespace: "team-a".to_owned(), name: "reader".to_owned() }].into(),
        namespaces: [(own.uid.clone(), own.clone())].into(),
        ..Asking::default()
    };
    let mut view = given.asked(asking);
    let patch = opens(&mut view, &given, vec![own, asker("team-b", ELSEWHERE)], Unasked::new());
    assert_eq!(patch.change, Change::Consent);
    let consent = |uid: &str, word: Consent| (NamespaceUid::new(uid), word);
    let shared = Consent { max_mode: AccessMode::ReadWrite, prefixes: Vec::new() };
    let accesses = [consent("n-1", Consent::full()), consent(ELSEWHERE, shared)].into();
    let written = record_secret(&BucketRecord { ending: false, accesses, ..record() });
    view.learn(Answer::Patched(patch.change, written));
    view.learn(live(&given.claim));
    let next = step(&view);
    assert!(!matches!(&next, Step::Act(Act::Patch(patch)) if patch.change == Change::Consent), "{next}");
}

// covers: 3.9.consent
#[test]
fn what_is_opened_to_others_leaves_it_as_it_is() {
    let given = open(&to(&["team-b"]));
    let own = Asker { namespace: "team-a".to_owned(), uid: NamespaceUid::new("n-1"), labels: BTreeMap::new() };
    let reader = AccessRef { namespace: "team-a".to_owned(), name: "reader".to_owned() };
    let asking = Asking {
        accesses: [reader].into(),
        namespaces: [(own.uid.clone(), own.clone())].into(),
        ..asking(Some("team-b"))
    };
    let mut view = given.asked(asking.clone());
    let patch = opens(&mut view, &given, vec![own], asking.unasked);
    let both = [(NamespaceUid::new("n-1"), Consent::full()), (NamespaceUid::new(ELSEWHERE), reads())];
    let text = ByteString(BucketRecord::accesses_text(&both.into()).into_bytes());
    let written = serde_json::to_value(text).expect("it is JSON");
    assert_eq!(patch.change, Change::Consent);
    assert!(patch.json().to_string().contains(&written.to_string()), "{}", patch.json());
}
