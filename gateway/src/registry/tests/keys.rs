//! Keys follow their Secrets.

use rstest::rstest;

use super::*;

fn known(tables: &Tables, generations: impl IntoIterator<Item = u64>) -> Vec<bool> {
    generations.into_iter().map(|generation| tables.key(&id("u-1", generation)).is_some()).collect()
}

#[test]
fn a_new_list_takes_the_place_of_the_old_one_when_it_is_whole() {
    let mut tables = tables();
    tables.apply(Event::Apply(credential("u-1", 1, None)));
    tables.apply(Event::Init);
    tables.apply(Event::InitApply(credential("u-1", 2, None)));
    assert_eq!(known(&tables, [1, 2]), [true, false]);
    tables.apply(Event::InitDone);
    assert_eq!(known(&tables, [1, 2]), [false, true]);
}

#[test]
fn half_a_list_is_forgotten_when_another_begins() {
    let mut tables = tables();
    tables.apply(Event::Init);
    tables.apply(Event::InitApply(credential("u-1", 1, None)));
    list([credential("u-1", 2, None)]).for_each(|event| tables.apply(event));
    assert_eq!(known(&tables, [1, 2]), [false, true]);
}

#[test]
fn a_secret_that_gets_damaged_or_goes_stops_counting() {
    let mut tables = tables();
    tables.apply(Event::Apply(credential("u-1", 1, None)));
    let mut damaged = credential("u-1", 1, None);
    damaged.data = None;
    tables.apply(Event::Apply(damaged));
    assert_eq!(known(&tables, [1]), [false]);
    tables.apply(Event::Apply(credential("u-1", 1, None)));
    assert_eq!(known(&tables, [1]), [true]);
    tables.apply(Event::Delete(credential("u-1", 1, None)));
    assert_eq!(known(&tables, [1]), [false]);
}

#[test]
fn a_secret_of_another_role_is_no_key_any_more() {
    let mut tables = tables();
    tables.apply(Event::Apply(credential("u-1", 1, None)));
    let mut other = credential("u-1", 1, None);
    other.metadata.labels.get_or_insert_default().insert(wire::ROLE.to_owned(), "consumer-secret".to_owned());
    tables.apply(Event::Apply(other));
    assert_eq!(known(&tables, [1]), [false]);
}

#[test]
fn the_case_of_a_key_matters() {
    let tables = whole([credential("u-1", 1, None)], []);
    let id = id("u-1", 1);
    assert!(tables.key(&id).is_some());
    assert!(tables.key(&id.to_lowercase()).is_none());
    assert!(tables.key("").is_none() && tables.key(&"A".repeat(1 << 20)).is_none());
}

/// Values derived from a key are cached in it.
#[test]
fn a_key_that_has_not_changed_is_the_same_one() {
    let mut tables = whole([credential("u-1", 1, None), credential("u-1", 2, None)], []);
    let get = |tables: &Tables, generation| tables.key(&id("u-1", generation)).cloned().expect("it is known");
    let (first, second) = (get(&tables, 1), get(&tables, 2));
    let mut annotated = credential("u-1", 1, None);
    annotated.metadata.annotations = Some([("theirs".to_owned(), "x".to_owned())].into());
    tables.apply(Event::Apply(annotated));
    assert!(Arc::ptr_eq(&first, &get(&tables, 1)));
    let mut ending = credential("u-1", 2, None);
    ending.metadata.annotations = Some([(wire::EXPIRES_AT.to_owned(), "2030-01-01T00:00:00Z".to_owned())].into());
    list([credential("u-1", 1, None), ending]).for_each(|event| tables.apply(event));
    assert!(Arc::ptr_eq(&first, &get(&tables, 1)), "also after a list");
    assert!(!Arc::ptr_eq(&second, &get(&tables, 2)), "but for what has changed");
    assert!(get(&tables, 2).credential().expect("a claim's").expires_at.is_some());
}

#[test]
fn it_is_counted_what_says_no_endpoint() {
    let secrets = [
        credential("u-1", 1, None),
        credential("u-1", 2, Some(HERE)),
        binding("u-1", "main", None),
        record("u-1", "main", HERE, None),
    ];
    let counts = whole(secrets, []).counts();
    assert_eq!(counts, Counts { keys: 2, without_endpoint: 2, bindings: 1, records: 1 });
}

/// The lists that are complete, and the expected readiness.
#[rstest]
#[case(true, true, true, true)]
#[case(false, true, true, false)]
#[case(true, false, true, false)]
#[case(true, true, false, false)]
fn ready_means_that_all_of_it_was_known(
    #[case] secrets: bool,
    #[case] backends: bool,
    #[case] of_store: bool,
    #[case] ready: bool,
) {
    let mut tables = tables();
    let admin = name("vault", "admin");
    if secrets {
        list([]).for_each(|event| tables.apply(event));
    }
    let seen = backend("main", HERE, json!({}));
    if backends {
        list([seen]).for_each(|event| tables.apply_backend(event));
    } else {
        // An event during the list adds its Secret, too.
        tables.apply_backend(Event::Apply(seen));
    }
    if of_store {
        list([store_secret(&admin, "AK", HERE)]).for_each(|event| tables.apply_store_secret(&admin, event));
    }
    assert_eq!(tables.is_ready(), ready);
}

#[test]
fn nothing_that_comes_later_takes_readiness_back() {
    let mut tables = whole([], [backend("main", HERE, json!({}))]);
    assert!(tables.is_ready());
    let elsewhere = json!({"adminCredentialsSecretRef": {"name": "new", "namespace": "vault"}});
    tables.apply_backend(Event::Apply(backend("other", HERE, elsewhere)));
    assert!(tables.is_ready());
    tables.apply(Event::Init);
    tables.apply_backend(Event::Init);
    assert!(tables.is_ready());
}

/// A namespace that can't be read must not close all stores.
#[test]
fn a_secret_whose_watch_fails_is_not_waited_for() {
    let mut tables = tables();
    list([]).for_each(|event| tables.apply(event));
    list([backend("main", HERE, json!({}))]).for_each(|event| tables.apply_backend(event));
    assert!(!tables.is_ready());
    tables.store_secret_failed(&name("vault", "admin"), Failure::Refused(403));
    assert!(tables.is_ready());
}
