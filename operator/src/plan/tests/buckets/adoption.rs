//! Adoption of buckets that existed before the claim.

use crate::api::{AdoptionProof, BucketOrigin, PinnedBackend};

use super::super::super::OwnerSeen;

use super::*;

/// Tags by an earlier claim of the same name.
const EARLIER_LIFE: &[(&str, &str)] =
    &[(wire::TAG_INSTALLATION, "cluster-1"), (wire::TAG_CLAIM, "team-a/photos"), (wire::TAG_CLAIM_UID, "u-0")];
/// Tags by a claim of the same name in another installation.
const OTHER_CLUSTER: &[(&str, &str)] =
    &[(wire::TAG_INSTALLATION, "cluster-2"), (wire::TAG_CLAIM, "team-a/photos"), (wire::TAG_CLAIM_UID, "u-0")];
/// Tags by another claim of this installation.
const ANOTHER: &[(&str, &str)] =
    &[(wire::TAG_INSTALLATION, "cluster-1"), (wire::TAG_CLAIM, "team-b/x"), (wire::TAG_CLAIM_UID, "u-2")];
/// Tags that no operator wrote.
const STRANGERS: &[(&str, &str)] = &[("owner", "finance")];

/// Decision about an existing bucket.
#[derive(Debug, PartialEq)]
enum Fate {
    Taken,
    Refused,
}

// covers: 3.2.adoption, 3.2.adoption.first
#[rstest]
#[case(AdoptionPolicy::Never, EARLIER_LIFE, Fate::Refused)]
#[case(AdoptionPolicy::Never, &[], Fate::Refused)]
#[case(AdoptionPolicy::Owned, EARLIER_LIFE, Fate::Taken)]
#[case(AdoptionPolicy::Owned, OTHER_CLUSTER, Fate::Refused)]
#[case(AdoptionPolicy::Owned, ANOTHER, Fate::Refused)]
#[case(AdoptionPolicy::Owned, STRANGERS, Fate::Refused)]
#[case(AdoptionPolicy::Owned, &[], Fate::Refused)]
#[case(AdoptionPolicy::Any, EARLIER_LIFE, Fate::Taken)]
#[case(AdoptionPolicy::Any, OTHER_CLUSTER, Fate::Refused)]
#[case(AdoptionPolicy::Any, ANOTHER, Fate::Refused)]
#[case(AdoptionPolicy::Any, STRANGERS, Fate::Taken)]
#[case(AdoptionPolicy::Any, &[], Fate::Taken)]
fn the_adoption_policy_decides_on_buckets_that_were_there(
    #[case] policy: AdoptionPolicy,
    #[case] found: &[(&str, &str)],
    #[case] fate: Fate,
) {
    let mut given = holding(|_| {});
    given.backends.insert("main".into(), backend(policy));
    let mut view = given.read();
    view.learn(tagged(found));
    view.learn(given.answer(Look::Owner(at())));
    view.learn(given.answer(Look::CredentialsFor(at())));
    let seen = match step(&view) {
        Step::Act(Act::Patch(patch)) if patch.change == Change::Adopt => Fate::Taken,
        Step::Act(Act::WriteStatus(..)) if verdict(&view) == "BucketExists" => Fate::Refused,
        other => panic!("{other}"),
    };
    assert_eq!(seen, fate);
}

/// Returns the decision about an existing bucket with this owner. After an interrupted create, the
/// bucket is empty and has no tags.
fn by_its_owner(owner: OwnerSeen, proof: AdoptionProof, interrupted: bool) -> Fate {
    let mut given = holding(|record| record.absence = interrupted);
    given.backends.insert("main".into(), edited_backend(AdoptionPolicy::Any, |backend| backend.proof = proof));
    let mut view = given.read();
    view.learn(tagged(if interrupted { &[] } else { EARLIER_LIFE }));
    if interrupted {
        view.learn(Answer::Contents(at(), true));
    }
    assert_eq!(step(&view), Step::Look(Look::Owner(at())));
    view.learn(Answer::Owner(at(), owner));
    loop {
        match step(&view) {
            Step::Look(look) => view.learn(given.answer(look)),
            Step::Act(Act::Patch(patch)) if patch.change == Change::Adopt => return Fate::Taken,
            Step::Act(Act::TagBucket(..)) => return Fate::Taken,
            Step::Act(Act::WriteStatus(..)) if verdict(&view) == "BucketExists" => return Fate::Refused,
            other => panic!("{other}"),
        }
    }
}

// covers: 1.backend.adoptionProof, 3.2.adoption.account, 3.2.create.account
#[rstest]
#[case(OwnerSeen::Ours, AdoptionProof::Owner, [Fate::Taken, Fate::Taken])]
#[case(OwnerSeen::Other, AdoptionProof::Owner, [Fate::Refused, Fate::Refused])]
#[case(OwnerSeen::Other, AdoptionProof::SoleAccount, [Fate::Refused, Fate::Refused])]
#[case(OwnerSeen::Untold, AdoptionProof::Owner, [Fate::Refused, Fate::Taken])]
#[case(OwnerSeen::Untold, AdoptionProof::SoleAccount, [Fate::Taken, Fate::Taken])]
fn a_bucket_of_another_account_is_not_taken(
    #[case] owner: OwnerSeen,
    #[case] proof: AdoptionProof,
    #[case] fates: [Fate; 2],
) {
    assert_eq!([false, true].map(|interrupted| by_its_owner(owner, proof, interrupted)), fates);
}

/// The record notes an earlier adoption, and the bucket of that name now belongs to another
/// account.
// covers: 3.2.adoption.account
#[test]
fn a_bucket_that_took_the_place_of_one_that_was_taken_over_is_not_taken() {
    let mut view = holding(|record| record.adopted = true).read();
    view.learn(tagged(&[]));
    assert_eq!(step(&view), Step::Look(Look::Owner(at())));
    view.learn(Answer::Owner(at(), OwnerSeen::Other));
    assert_eq!(verdict(&view), "BucketExists");
}

// covers: 3.2.rivals
#[test]
fn a_bucket_is_taken_over_only_if_a_live_list_shows_no_credential_of_another_claim() {
    let mut view = holding(|_| {}).read();
    view.learn(tagged(EARLIER_LIFE));
    view.learn(Answer::Owner(at(), OwnerSeen::Ours));
    assert_eq!(step(&view), Step::Look(Look::CredentialsFor(at())));
    let anothers = key_secret(&CredentialFacts { uid: ClaimUid::new("u-9"), ..facts(1) });
    view.learn(Answer::CredentialsFor(at(), vec![anothers]));
    assert_eq!(verdict(&view), "BucketNameConflict");
}

// covers: 3.2.look.forbidden
#[test]
fn a_bucket_of_somebody_else_is_never_taken() {
    let mut given = holding(|_| {});
    given.backends.insert("main".into(), backend(AdoptionPolicy::Any));
    let mut view = given.read();
    view.learn(Answer::Bucket(at(), BucketSeen::Forbidden));
    assert_eq!(verdict(&view), "BucketExists");
}

// covers: 3.2.remade.adopted
#[test]
fn a_record_is_not_made_again_for_a_bucket_whose_tags_name_another_claim() {
    let mut given = unbound();
    let status = &mut given.claim.status;
    status.bucket_name = Some("team-a-photos".into());
    status.backend = Some(PinnedBackend { name: "main".into(), endpoint: "http://s3.example".into() });
    status.bucket_origin = Some(BucketOrigin::Created);
    let mut view = given.read();
    ask(&mut view, &Look::Holder(at()), &given);
    ask(&mut view, &Look::CredentialsFor(at()), &given);
    assert_eq!(step(&view), Step::Look(Look::Bucket(at())));
    view.learn(tagged(ANOTHER));
    assert_eq!(verdict(&view), "BucketExists");
    view.learn(tagged(EARLIER_LIFE));
    let Step::Act(Act::CreateRecord(record)) = step(&view) else { panic!("no record") };
    assert!(record.adopted);
}
