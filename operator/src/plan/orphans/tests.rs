//! Decisions of sweeps on prepared answers.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::jiff::Timestamp;
use rstest::rstest;

use crate::api::{
    AccessCredentialFacts, AccessKeyId, AccessRecord, AccessRef, AccessUid, BucketName, BucketRecord, ClaimRef,
    ClaimUid, Endpoint, SecretContent, SecretKey, wire,
};

use super::super::reach::Reach;
use super::super::secret::Stored;
use super::{Arrival, Kind, OfAccess, OfClaim, Reconciliation, Sweep, SweepAnswer, SweepEnd, SweepStep};

const NAMESPACE: &str = "stowage-system";

fn uid() -> ClaimUid {
    ClaimUid::new("u-1")
}

fn claim() -> ClaimRef {
    ClaimRef { namespace: "team-a".into(), name: "photos".into() }
}

fn bucket() -> BucketName {
    BucketName::parse("photos").unwrap()
}

fn stored(content: &SecretContent) -> Stored {
    let mut secret = content.to_secret();
    secret.metadata.uid = Some(format!("uid of {}", content.name));
    secret.metadata.resource_version = Some("7".into());
    Stored(Arc::new(secret))
}

fn record(absence: bool, generation: u64) -> Stored {
    stored(&bucket_record(absence, generation).content(NAMESPACE))
}

fn bucket_record(absence: bool, generation: u64) -> BucketRecord {
    BucketRecord {
        claim: claim(),
        uid: uid(),
        endpoint: endpoint(),
        bucket: bucket(),
        absence,
        settled: false,
        generation,
        ending: true,
        ..BucketRecord::fixture()
    }
}

fn endpoint() -> Endpoint {
    Endpoint::parse("http://s3.example").unwrap()
}

fn credential(generation: u64) -> Stored {
    let facts = bucket_record(false, 1).key_fixture(generation);
    stored(&facts.content(NAMESPACE, Some(&SecretKey::new("s".into()))))
}

fn binding() -> Stored {
    let binding = bucket_record(false, 1).binding_fixture(0);
    stored(&binding.content(NAMESPACE))
}

fn edited(secret: &Stored, edit: impl Fn(&mut Secret)) -> Stored {
    let mut secret = secret.0.as_ref().clone();
    edit(&mut secret);
    Stored(Arc::new(secret))
}

fn without_labels(secret: &Stored) -> Stored {
    edited(secret, |secret| secret.metadata.labels = None)
}

/// Drives a sweep to its end.
fn hold(mut sweep: Sweep, mut answer: impl FnMut(SweepStep) -> SweepAnswer) -> SweepEnd {
    for _ in 0..5000 {
        match sweep.next(Timestamp::UNIX_EPOCH) {
            ControlFlow::Break(end) => return end,
            ControlFlow::Continue(step) => sweep.learn(answer(step), Arrival::Prompt),
        }
    }
    panic!("the sweep does not come to an end")
}

/// Returns the Secret with this name.
fn named(secrets: &[Stored], name: String) -> SweepAnswer {
    let secret = secrets.iter().find(|secret| secret.name() == name).cloned();
    SweepAnswer::Internal(name, secret)
}

/// Runs a sweep on a namespace with these Secrets. `claim` is the UID of the live claim. Returns
/// the names of the deleted Secrets in order, and the end.
fn run(sweep: Sweep, mut secrets: Vec<Stored>, claim: Option<&str>, listed: bool) -> (Vec<String>, SweepEnd) {
    let mut deleted = Vec::new();
    let end = hold(sweep, |step| match step {
        SweepStep::Owner(asked) => SweepAnswer::Owner(asked, claim.map(ClaimUid::new)),
        SweepStep::Owners => SweepAnswer::Owners(listed),
        SweepStep::Own => {
            let labelled = |secret: &&Stored| secret.label(wire::CLAIM_UID) == Some("u-1");
            SweepAnswer::Own(secrets.iter().filter(labelled).cloned().collect())
        }
        SweepStep::Internal(name) => named(&secrets, name),
        SweepStep::End(patch) => panic!("ends {}", patch.target.name),
        SweepStep::Delete(reference) => {
            assert_eq!(reference.id.resource_version, "7", "bound to what was read");
            secrets.retain(|secret| secret.name() != reference.name);
            deleted.push(reference.name.clone());
            SweepAnswer::Deleted(reference, None)
        }
    });
    (deleted, end)
}

fn sweep(seen: &[Stored]) -> Sweep {
    Sweep::new(uid(), seen, BTreeSet::new(), false, Reach::Cluster)
}

#[rstest]
#[case(None)]
#[case(Some("u-2"))]
fn everything_of_a_claim_that_is_gone_goes_the_record_last(#[case] live: Option<&str>) {
    let secrets = vec![record(true, 2), credential(1), credential(2), binding()];
    let (deleted, end) = run(sweep(&secrets), secrets.clone(), live, false);
    let (mut credentials, ends) = (deleted[1..3].to_vec(), [&deleted[0], &deleted[3]]);
    credentials.sort();
    let mut expected = [1, 2].map(|generation| AccessKeyId::of(&uid(), generation).secret_name());
    expected.sort();
    assert_eq!(ends, [binding().name(), record(true, 2).name()]);
    assert_eq!((credentials, end), (expected.to_vec(), SweepEnd::Done));
}

#[test]
fn nothing_of_a_living_claim_is_touched() {
    let secrets = vec![record(true, 1), credential(1)];
    assert_eq!(run(sweep(&secrets), secrets, Some("u-1"), true), (Vec::new(), SweepEnd::Alive));
}

#[rstest]
#[case(record(true, 1))]
#[case::without_a_record(without_labels(&credential(1)))]
fn nothing_is_deleted_on_one_answer_of_a_server_that_shows_its_past(#[case] secret: Stored) {
    let mut shown = false;
    let end = hold(sweep(std::slice::from_ref(&secret)), |step| match step {
        SweepStep::Owner(asked) => SweepAnswer::Owner(asked, shown.then(uid)),
        SweepStep::Owners => SweepAnswer::Owners(shown),
        SweepStep::Own => {
            shown = true;
            SweepAnswer::Own(vec![secret.clone()])
        }
        SweepStep::Internal(name) => SweepAnswer::Internal(name, None),
        SweepStep::End(patch) => panic!("ends {}", patch.target.name),
        SweepStep::Delete(secret) => panic!("deletes {}", secret.name),
    });
    assert_eq!((end, shown), (SweepEnd::Alive, true));
}

// covers: 2.labels.noProof
#[test]
fn labels_alone_do_not_prove_a_claim_gone() {
    let other = edited(&credential(1), |secret| {
        secret.metadata.labels.get_or_insert_default().insert(wire::CLAIM_NAME.into(), "other".into());
    });
    for seen in [other, without_labels(&credential(1))] {
        let alive = run(sweep(std::slice::from_ref(&seen)), vec![seen.clone()], None, true);
        assert_eq!(alive, (Vec::new(), SweepEnd::Alive), "another claim's absence says nothing");
        let gone = run(sweep(std::slice::from_ref(&seen)), vec![seen.clone()], None, false);
        assert_eq!(gone, (vec![seen.name().to_owned()], SweepEnd::Done));
    }
}

// covers: 3.4.orphans.error
#[test]
fn an_error_ends_the_sweep_whatever_was_asked() {
    let secrets = [record(true, 1), without_labels(&credential(1))];
    let mut steps = 0;
    let mut fine = sweep(&secrets);
    while let ControlFlow::Continue(step) = fine.next(Timestamp::UNIX_EPOCH) {
        let mut broken = fine.clone();
        broken.learn(SweepAnswer::Failed(step.clone(), "no answer".into()), Arrival::Prompt);
        let end = broken.next(Timestamp::UNIX_EPOCH);
        assert_eq!(end, ControlFlow::Break(SweepEnd::Retry(format!("can't {step}: no answer"))));
        let answer = match step {
            SweepStep::Owner(asked) => SweepAnswer::Owner(asked, None),
            SweepStep::Own => SweepAnswer::Own(vec![secrets[0].clone()]),
            SweepStep::Internal(name) => named(&secrets, name),
            SweepStep::End(patch) => panic!("ends {}", patch.target.name),
            SweepStep::Delete(secret) => SweepAnswer::Deleted(secret, None),
            other @ SweepStep::Owners => panic!("unexpected: {other}"),
        };
        fine.learn(answer, Arrival::Prompt);
        steps += 1;
    }
    assert!(steps >= 6, "{steps}");
}

// covers: 3.3.byName, 2.record.lowest
#[test]
fn no_name_is_looked_at_below_the_lowest_that_the_record_tells_of() {
    let asked = |lowest: Option<u64>| {
        let record = stored(&BucketRecord { lowest, ..bucket_record(false, 50_000) }.content(NAMESPACE));
        let mut asked = 0;
        hold(sweep(std::slice::from_ref(&record)), |step| match step {
            SweepStep::Owner(claim) => SweepAnswer::Owner(claim, None),
            SweepStep::Owners => SweepAnswer::Owners(false),
            SweepStep::Own => SweepAnswer::Own(vec![record.clone()]),
            SweepStep::Internal(name) => {
                asked += 1;
                named(std::slice::from_ref(&record), name)
            }
            SweepStep::End(patch) => panic!("ends {}", patch.target.name),
            SweepStep::Delete(reference) => SweepAnswer::Failed(SweepStep::Delete(reference), "enough".to_owned()),
        });
        asked
    };
    assert!(asked(Some(49_998)) <= 5);
    assert!(asked(None) >= 1000, "an older version made it");
}

#[test]
fn a_record_leads_to_credentials_that_nothing_else_shows() {
    let hidden = [1, 2, 3].map(|generation| without_labels(&credential(generation)));
    let seen = [record(true, 3)];
    let (deleted, end) = run(sweep(&seen), seen.iter().chain(&hidden).cloned().collect(), None, false);
    assert_eq!((deleted.len(), end), (4, SweepEnd::Done));
}

#[rstest]
#[case(bucket_record(true, 1), SweepEnd::Held)]
#[case::made_again_by_hand(bucket_record(false, 1), SweepEnd::Held)]
#[case(BucketRecord { adopted: true, ..bucket_record(false, 1) }, SweepEnd::Done)]
fn the_record_stays_while_a_call_at_its_bucket_may_still_land(#[case] held: BucketRecord, #[case] expected: SweepEnd) {
    let secrets = vec![stored(&held.content(NAMESPACE)), credential(1)];
    let pending = Sweep::new(uid(), &secrets, BTreeSet::new(), true, Reach::Cluster);
    let (deleted, end) = run(pending, secrets, None, false);
    assert_eq!(end, expected);
    assert_eq!(deleted.contains(&held.name().to_string()), end == SweepEnd::Done);
    assert!(deleted.contains(&credential(1).name().to_owned()), "credentials don't wait");
}

#[test]
fn what_is_minted_during_the_sweep_goes_before_the_record() {
    let mut lists = 0;
    let mut deleted = Vec::new();
    let end = hold(sweep(&[record(true, 1)]), |step| match step {
        SweepStep::Owner(asked) => SweepAnswer::Owner(asked, None),
        SweepStep::Owners => panic!("a record names the claim"),
        SweepStep::Own => {
            lists += 1;
            let late = [binding(), credential(1)];
            SweepAnswer::Own(late.into_iter().take(lists).chain([record(true, 1)]).skip(deleted.len()).collect())
        }
        SweepStep::Internal(name) => SweepAnswer::Internal(name, None),
        SweepStep::End(patch) => panic!("ends {}", patch.target.name),
        SweepStep::Delete(secret) => {
            deleted.push(secret.name.clone());
            SweepAnswer::Deleted(secret, None)
        }
    });
    assert_eq!(end, SweepEnd::Done);
    assert_eq!(deleted, [binding(), credential(1), record(true, 1)].map(|secret| secret.name().to_owned()));
}

#[test]
fn a_name_and_the_uid_in_the_data_prove_whose_a_secret_is() {
    for secret in [record(true, 1), credential(4), binding()] {
        assert_eq!(OfClaim::owner(&secret), Some(uid()), "{secret:?}");
        assert_eq!(OfClaim::owner(&without_labels(&secret)), Some(uid()), "{secret:?}");
        let renamed = edited(&secret, |secret| secret.metadata.name = Some("something-else".into()));
        assert_eq!(OfClaim::owner(&renamed), None, "{secret:?}");
    }
}

#[test]
fn where_the_data_are_damaged_only_a_name_that_follows_from_the_uid_proves_it() {
    let damaged = |secret: &Stored| edited(secret, |secret| secret.data = None);
    assert_eq!(OfClaim::owner(&damaged(&credential(4))), Some(uid()));
    assert_eq!(OfClaim::owner(&damaged(&binding())), Some(uid()));
    assert_eq!(OfClaim::owner(&damaged(&record(true, 1))), None);
    assert_eq!(OfClaim::owner(&without_labels(&damaged(&credential(4)))), None);
}

#[rstest]
#[case("")]
#[case("../../secrets/x")]
#[case("u 1")]
fn what_is_no_uid_is_nobodys(#[case] text: &str) {
    let secret = edited(&without_labels(&credential(1)), |secret| {
        let text = ByteString(text.as_bytes().to_vec());
        secret.data.get_or_insert_default().insert("claim_uid".into(), text);
    });
    assert_eq!(OfClaim::owner(&secret), None);
}

/// Returns a sweep of an operator that serves only this namespace.
fn sweep_within(namespace: &str, seen: &[Stored]) -> Sweep {
    let reach = Reach::Namespaces(BTreeSet::from([namespace.to_owned()]));
    Sweep::new(uid(), seen, BTreeSet::new(), false, reach)
}

// covers: 3.9.orphans
#[test]
fn what_names_a_claim_of_a_namespace_that_is_not_served_is_nothing_to_ask_about() {
    let secrets = [record(true, 1), credential(1), binding()];
    for seen in [&secrets[..], &secrets[..1], &secrets[1..2], &secrets[2..]] {
        let end = hold(sweep_within("team-b", seen), |step| panic!("unexpected: {step}"));
        assert_eq!(end, SweepEnd::Elsewhere);
    }
}

// covers: 3.9.orphans
#[test]
fn a_record_that_is_found_late_tells_that_the_claim_is_elsewhere() {
    let moved = edited(&credential(1), |secret| {
        let labels = secret.metadata.labels.get_or_insert_default();
        labels.insert(wire::CLAIM_NAMESPACE.into(), "team-b".into());
    });
    let sweep = sweep_within("team-b", std::slice::from_ref(&moved));
    let swept = run(sweep, vec![moved, record(true, 1)], None, false);
    assert_eq!(swept, (Vec::new(), SweepEnd::Elsewhere), "its label is wrong, and its record isn't");
}

// covers: 3.9.orphans
#[rstest]
#[case::labelled(credential(1))]
#[case::without_labels(without_labels(&credential(1)))]
fn without_a_record_nothing_goes_that_may_be_elsewhere(#[case] key: Stored) {
    let end = hold(sweep_within("team-a", std::slice::from_ref(&key)), |step| match step {
        SweepStep::Owner(asked) => SweepAnswer::Owner(asked, None),
        SweepStep::Own => SweepAnswer::Own(vec![key.clone()]),
        SweepStep::Internal(name) => named(std::slice::from_ref(&key), name),
        other @ (SweepStep::Owners | SweepStep::End(_) | SweepStep::Delete(_)) => panic!("unexpected: {other}"),
    });
    assert_eq!(end, SweepEnd::Elsewhere);
}

// covers: 3.9.orphans
#[test]
fn in_a_namespace_that_is_served_all_is_as_ever() {
    let secrets = vec![record(true, 1), credential(1), binding()];
    let (deleted, end) = run(sweep_within("team-a", &secrets), secrets.clone(), None, false);
    assert_eq!((deleted.len(), end), (3, SweepEnd::Done));
    let alive = run(sweep_within("team-a", &secrets), secrets, Some("u-1"), false);
    assert_eq!(alive, (Vec::new(), SweepEnd::Alive));
}

// covers: 8.ending
#[test]
fn every_access_to_the_bucket_ends_before_anything_goes() {
    let open = BucketRecord { ending: false, ..bucket_record(false, 1) };
    let (record, key) = (stored(&open.content(NAMESPACE)), credential(1));
    let mut sweep = Sweep::new(uid(), &[record.clone(), key.clone()], BTreeSet::new(), false, Reach::Cluster);
    let mut steps = Vec::new();
    while let ControlFlow::Continue(step) = sweep.next(Timestamp::UNIX_EPOCH) {
        let answer = match step {
            SweepStep::Owner(asked) => SweepAnswer::Owner(asked, None),
            SweepStep::Owners => SweepAnswer::Owners(false),
            SweepStep::Own => SweepAnswer::Own(vec![record.clone(), key.clone()]),
            SweepStep::Internal(name) => named(&[record.clone(), key.clone()], name),
            SweepStep::End(patch) => {
                steps.push(patch.target.name);
                SweepAnswer::Ended(stored(&bucket_record(false, 1).content(NAMESPACE)))
            }
            SweepStep::Delete(secret) => {
                steps.push(secret.name);
                break;
            }
        };
        sweep.learn(answer, Arrival::Prompt);
    }
    assert_eq!(steps, [record.name(), key.name()]);
}

/// Returns the Secrets of a deleted access: its record, and a key of this generation.
fn of_access(generation: u64) -> [Stored; 2] {
    let (access, uid) = (AccessRef { namespace: "team-b".into(), name: "reader".into() }, AccessUid::new("a-1"));
    let record = AccessRecord {
        access: access.clone(),
        uid: uid.clone(),
        generation,
        lowest: generation,
        ..AccessRecord::fixture()
    };
    let facts = AccessCredentialFacts { access, uid, generation, scopes: Vec::new() };
    [stored(&record.content(NAMESPACE)), stored(&facts.content(NAMESPACE, Some(&SecretKey::new("s3cr3t".into()))))]
}

// covers: 8.sweep
#[rstest]
#[case::gone(None, true)]
#[case::made_anew(Some("a-2"), true)]
#[case::alive(Some("a-1"), false)]
fn what_an_access_left_goes_key_first_once_two_reads_do_not_find_it(#[case] found: Option<&str>, #[case] goes: bool) {
    let [record, key] = of_access(3);
    // The key has no labels, so no list shows it.
    let mut secrets = vec![record.clone(), without_labels(&key)];
    let seen = std::slice::from_ref(&record);
    let mut sweep = Sweep::<OfAccess>::new(AccessUid::new("a-1"), seen, BTreeSet::new(), true, Reach::Cluster);
    let (mut deleted, mut asked) = (Vec::new(), 0);
    let end = loop {
        let answer = match sweep.next(Timestamp::UNIX_EPOCH) {
            ControlFlow::Break(end) => break end,
            ControlFlow::Continue(SweepStep::Owner(owner)) => {
                asked += 1;
                SweepAnswer::Owner(owner, found.map(AccessUid::new))
            }
            ControlFlow::Continue(SweepStep::Own) => {
                SweepAnswer::Own(secrets.iter().filter(|it| it.0.metadata.labels.is_some()).cloned().collect())
            }
            ControlFlow::Continue(SweepStep::Internal(name)) => {
                let secret = secrets.iter().find(|it| it.name() == name).cloned();
                SweepAnswer::Internal(name, secret)
            }
            ControlFlow::Continue(SweepStep::Delete(secret)) => {
                assert_eq!(asked, 2, "nothing goes before");
                secrets.retain(|it| it.name() != secret.name);
                deleted.push(secret.name.clone());
                SweepAnswer::Deleted(secret, None)
            }
            ControlFlow::Continue(other) => panic!("unexpected: {other}"),
        };
        sweep.learn(answer, Arrival::Prompt);
    };
    let all = [key.name().to_owned(), record.name().to_owned()];
    assert_eq!((deleted.as_slice(), end), if goes { (&all[..], SweepEnd::Done) } else { (&[][..], SweepEnd::Alive) });
}

#[test]
fn secrets_of_accesses_and_of_claims_are_told_apart() {
    for secret in of_access(1) {
        assert_eq!((OfAccess::owner(&secret), OfClaim::owner(&secret)), (Some(AccessUid::new("a-1")), None));
        assert_eq!(OfAccess::owner(&without_labels(&secret)), Some(AccessUid::new("a-1")), "{secret:?}");
        let renamed = edited(&secret, |secret| secret.metadata.name = Some("something-else".into()));
        assert_eq!(OfAccess::owner(&renamed), None, "{secret:?}");
    }
    for secret in [record(true, 1), credential(4), binding()] {
        assert_eq!(OfAccess::owner(&secret), None, "{secret:?}");
    }
}
