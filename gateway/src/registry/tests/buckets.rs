//! The store and the holder of a bucket.

use rstest::rstest;

use super::*;

fn main_at(url: &str, former: &[&str]) -> SeenBackend {
    backend("main", url, json!({"formerEndpoints": former}))
}

/// Returns the endpoint reached by the first key of this claim.
fn reached(tables: &Tables, uid: &str) -> Result<String, Unreachable> {
    let key = tables.key(&id(uid, 1)).expect("it is known");
    let own = key.credential().expect("a claim's");
    let scope = own.scope("photos").expect("it is its bucket");
    tables.reach_scope(own, scope).map(|backend| backend.endpoint.to_string())
}

fn there(url: &str) -> Result<String, Unreachable> {
    Ok(url.to_owned())
}

/// A key is for one store, at any address of it.
#[rstest]
#[case::where_it_was_made(Some(HERE), &[main_at(HERE, &[])], there(HERE))]
#[case::in_another_spelling(Some("HTTP://S3.example:9000/"), &[main_at(HERE, &[])], there(HERE))]
#[case::the_store_has_moved(Some(HERE), &[main_at(THERE, &[HERE])], there(THERE))]
#[case::another_store(Some(HERE), &[main_at(THERE, &[])], Err(Unreachable::Elsewhere))]
#[case::another_former_one(Some(HERE), &[main_at(THERE, &["http://x.example"])], Err(Unreachable::Elsewhere))]
#[case::by_name(None, &[main_at(THERE, &[])], there(THERE))]
#[case::without_a_backend(Some(HERE), &[], Err(Unreachable::NoBackend))]
#[case::without_a_backend_by_name(None, &[], Err(Unreachable::NoBackend))]
#[case::of_another_name(None, &[backend("other", HERE, json!({}))], Err(Unreachable::NoBackend))]
#[case::undecodable(None, &[undecodable("main")], Err(Unreachable::NoBackend))]
#[case::unreadable(None, &[backend("main", "nonsense", json!({}))], Err(Unreachable::NoBackend))]
#[case::beside_one(None, &[undecodable("a"), main_at(HERE, &[])], there(HERE))]
#[case::template(None, &[backend("main", HERE, json!({"bucketNameTemplate": "{{ x }}"}))], there(HERE))]
fn a_key_opens_a_bucket_at_one_store(
    #[case] noted: Option<&str>,
    #[case] backends: &[SeenBackend],
    #[case] expected: Result<String, Unreachable>,
) {
    let tables = whole([credential("u-1", 1, noted)], backends.iter().cloned());
    assert_eq!(reached(&tables, "u-1"), expected);
}

/// The key's endpoint, the store's former endpoint, and the records: holder and endpoint.
#[rstest]
#[case::its_own(Some(HERE), HERE, &[("u-1", HERE)], Ok(()))]
#[case::nobodys(Some(HERE), HERE, &[], Ok(()))]
#[case::anothers(Some(HERE), HERE, &[("u-2", HERE)], Err(Unreachable::Held))]
#[case::anothers_by_name(None, HERE, &[("u-2", HERE)], Err(Unreachable::Held))]
#[case::nobodys_by_name(None, HERE, &[], Ok(()))]
#[case::anothers_elsewhere(Some(HERE), HERE, &[("u-2", THERE)], Ok(()))]
#[case::anothers_at_the_new_address(Some(HERE), THERE, &[("u-1", HERE), ("u-2", THERE)], Ok(()))]
#[case::the_same_by_name(None, THERE, &[("u-1", HERE), ("u-2", THERE)], Ok(()))]
#[case::by_name_without_a_record(None, THERE, &[("u-2", THERE)], Err(Unreachable::Held))]
#[case::anothers_at_the_new_address_alone(Some(HERE), THERE, &[("u-2", THERE)], Err(Unreachable::Held))]
#[case::its_own_at_a_third_place(None, HERE, &[("u-1", "http://x.example")], Ok(()))]
#[case::and_anothers_here(None, HERE, &[("u-1", "http://x.example"), ("u-2", HERE)], Err(Unreachable::Held))]
#[case::its_own_while_it_moves(None, THERE, &[("u-1", "http://x.example"), ("u-1", THERE)], Ok(()))]
fn a_record_of_another_claim_closes_a_scope_and_a_missing_one_does_not(
    #[case] noted: Option<&str>,
    #[case] url: &str,
    #[case] records: &[(&str, &str)],
    #[case] expected: Result<(), Unreachable>,
) {
    let records = records.iter().map(|(uid, at)| record(uid, "main", at, None));
    let secrets = records.chain([credential("u-1", 1, noted)]);
    let tables = whole(secrets, [main_at(url, &[HERE])]);
    assert_eq!(reached(&tables, "u-1").map(drop), expected);
}

#[test]
fn a_scope_is_open_again_once_the_other_record_is_gone() {
    let other = || record("u-2", "main", HERE, None);
    let mut tables = whole([credential("u-1", 1, Some(HERE)), other()], [main_at(HERE, &[])]);
    assert_eq!(reached(&tables, "u-1"), Err(Unreachable::Held));
    tables.apply(Event::Delete(other()));
    assert_eq!(reached(&tables, "u-1"), there(HERE));
    tables.apply(Event::Apply(other()));
    tables.apply(Event::Apply(record("u-1", "main", HERE, None)));
    assert_eq!(reached(&tables, "u-1"), there(HERE), "the record has changed hands");
    let held = |uid| tables.is_held_by_another(&endpoint(HERE), &bucket("photos"), &ClaimUid::new(uid));
    assert_eq!([held("u-1"), held("u-2")], [false, true]);
}

/// Returns the claim whose binding counts.
fn public(secrets: &[Secret], backends: &[&str]) -> Option<String> {
    let backends = backends.iter().zip([HERE, THERE]).map(|(name, url)| backend(name, url, json!({})));
    let tables = whole(secrets.iter().cloned(), backends);
    tables.binding("photos").map(|binding| binding.uid.to_string())
}

const BOTH: &[&str] = &["main", "second"];

#[rstest]
#[case::alone(&[binding("u-1", "main", None)], Some("u-1"))]
#[case::alone_with_a_record(&[binding("u-1", "main", Some(HERE)), record("u-1", "main", HERE, Some(5))], Some("u-1"))]
#[case::nobody(&[record("u-1", "main", HERE, Some(5))], None)]
#[case::older_first(
    &[binding("u-1", "main", Some(HERE)), binding("u-2", "second", Some(THERE)),
      record("u-1", "main", HERE, Some(5)), record("u-2", "second", THERE, Some(6))], Some("u-1"))]
#[case::older_last(
    &[binding("u-1", "main", Some(HERE)), binding("u-2", "second", Some(THERE)),
      record("u-1", "main", HERE, Some(7)), record("u-2", "second", THERE, Some(6))], Some("u-2"))]
#[case::by_name(
    &[binding("u-1", "main", None), binding("u-2", "second", None),
      record("u-1", "main", HERE, Some(7)), record("u-2", "second", THERE, Some(6))], Some("u-2"))]
#[case::a_record_is_missing(
    &[binding("u-1", "main", Some(HERE)), binding("u-2", "second", Some(THERE)),
      record("u-1", "main", HERE, Some(7))], None)]
#[case::a_time_is_missing(
    &[binding("u-1", "main", Some(HERE)), binding("u-2", "second", Some(THERE)),
      record("u-1", "main", HERE, Some(7)), record("u-2", "second", THERE, None)], None)]
#[case::a_private_one_is_older(
    &[binding("u-1", "main", Some(HERE)),
      record("u-1", "main", HERE, Some(7)), record("u-2", "second", THERE, Some(6))], Some("u-1"))]
#[case::another_holds_it(&[binding("u-1", "main", Some(HERE)), record("u-2", "main", HERE, Some(7))], None)]
#[case::the_holder_of_one_bucket(
    &[binding("u-1", "main", Some(HERE)), binding("u-2", "main", Some(HERE)),
      record("u-2", "main", HERE, Some(7))], Some("u-2"))]
#[case::two_of_one_store_without_a_record(
    &[binding("u-1", "main", Some(HERE)), binding("u-2", "main", Some(HERE))], Some("u-1"))]
#[case::who_does_not_hold_it_is_no_rival(
    &[binding("u-1", "main", Some(HERE)), binding("u-3", "second", Some(THERE)),
      record("u-2", "main", HERE, Some(1)), record("u-3", "second", THERE, Some(7))], Some("u-3"))]
fn the_oldest_record_decides_whose_a_public_name_is(#[case] secrets: &[Secret], #[case] expected: Option<&str>) {
    let mut secrets = secrets.to_vec();
    assert_eq!(public(&secrets, BOTH).as_deref(), expected);
    secrets.reverse();
    assert_eq!(public(&secrets, BOTH).as_deref(), expected, "whatever the order");
}

/// A backend that is gone for a while doesn't pass a public name on to another claim.
#[test]
fn a_public_name_stays_with_its_claim_without_a_backend() {
    let secrets = [
        binding("u-1", "second", None),
        binding("u-2", "main", None),
        record("u-1", "second", THERE, Some(5)),
        record("u-2", "main", HERE, Some(6)),
    ];
    assert_eq!(public(&secrets, &["main"]).as_deref(), Some("u-1"));
    let tables = whole(secrets, [main_at(HERE, &[])]);
    let binding = tables.binding("photos").expect("it is known");
    assert_eq!(tables.reach_binding(binding), Err(Unreachable::NoBackend));
}

/// Two records of the same second: every replica has to choose the same one.
#[test]
fn of_one_second_the_name_of_the_record_decides() {
    let records = [record("u-1", "main", HERE, Some(5)), record("u-2", "second", THERE, Some(5))];
    let bindings = [binding("u-1", "main", Some(HERE)), binding("u-2", "second", Some(THERE))];
    let lower = records.iter().min_by_key(|secret| secret.metadata.name.clone()).expect("two");
    let winner = lower.data.as_ref().and_then(|data| data.get("claim_uid")).map(|uid| uid.0.clone());
    let secrets: Vec<Secret> = bindings.into_iter().chain(records.iter().cloned()).collect();
    assert_eq!(public(&secrets, BOTH).map(String::into_bytes), winner);
}
