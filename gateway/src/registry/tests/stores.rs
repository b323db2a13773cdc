//! The credentials and trust of a store.

use rstest::rstest;
use store_tls::Trust;
use stowage_api::{AddressingStyle, Lack};

use super::*;

fn access(tables: &Tables, name: &str) -> Result<(String, String), Unusable> {
    let access = &tables.backend(name).expect("it is known").access;
    access.as_ref().map(|access| (access.key.id.clone(), format!("{:?}", access.trust))).map_err(Clone::clone)
}

/// Returns tables after the Secret was listed, or was found to be absent.
fn with_secret(backend: SeenBackend, at: &SecretName, secret: Option<Secret>, unlabelled: Unlabelled) -> Tables {
    let mut tables = Tables::new(setting(unlabelled));
    list([backend]).for_each(|event| tables.apply_backend(event));
    list(secret).for_each(|event| tables.apply_store_secret(at, event));
    tables
}

fn admin() -> SecretName {
    name("vault", "admin")
}

fn gateway_reference(namespace: &str, name: &str) -> Value {
    json!({"gatewayCredentialsSecretRef": {"name": name, "namespace": namespace}})
}

fn plain(secret: Secret) -> Secret {
    Secret { metadata: Default::default(), ..secret }
}

// covers: 1.backend.gatewayCredentials
#[test]
fn requests_are_signed_with_the_gateways_key_or_else_the_admins() {
    let tables = whole([], [backend("main", HERE, json!({}))]);
    assert_eq!(access(&tables, "main").map(|(key, _)| key), Ok("AKADMIN".to_owned()));
    let own = name(NAMESPACE, "gateway");
    let mut reference = gateway_reference(NAMESPACE, "gateway");
    reference["gatewayCredentialsSecretRef"]["accessKeyField"] = "id".into();
    let mut secret = store_secret(&own, "AKGATEWAY", HERE);
    set(&mut secret, "id", " AKOTHER\n");
    let tables = with_secret(backend("main", HERE, reference), &own, Some(secret), Unlabelled::Refused);
    assert_eq!(tables.wanted(), BTreeSet::from([own]), "the admin's is not even watched");
    assert_eq!(access(&tables, "main").map(|(key, _)| key), Ok("AKOTHER".to_owned()));
}

/// The operator's rules apply to both keys.
// covers: 1.backend.gatewayCredentials.rules
#[rstest]
#[case::opted_in(Some(store_secret(&admin(), "AK", HERE)), "ok")]
#[case::among_others(Some(store_secret(&admin(), "AK", "http://a.example, http://S3.EXAMPLE:9000/")), "ok")]
#[case::for_another_endpoint(Some(store_secret(&admin(), "AK", THERE)), "not opted in")]
#[case::silent(Some(plain(store_secret(&admin(), "AK", HERE))), "not opted in")]
#[case::empty(Some(store_secret(&admin(), " ", HERE)), "no field")]
#[case::absent(None, "no Secret")]
fn a_key_is_used_where_its_owner_lets_it(#[case] secret: Option<Secret>, #[case] expected: &str) {
    for more in [json!({}), gateway_reference("vault", "admin")] {
        let backend = backend("main", HERE, more);
        let tables = with_secret(backend, &admin(), secret.clone(), Unlabelled::Refused);
        let said = match access(&tables, "main") {
            Ok(_) => "ok",
            Err(Unusable::NotOptedIn(at, _)) if at == admin() => "not opted in",
            Err(Unusable::NoField(at, field)) if at == admin() && field == "AWS_ACCESS_KEY_ID" => "no field",
            Err(Unusable::NoSecret(at)) if at == admin() => "no Secret",
            Err(other) => panic!("{other}"),
        };
        assert_eq!(said, expected);
    }
}

#[test]
fn a_secret_whose_owner_says_nothing_can_be_accepted() {
    let silent = || Some(plain(store_secret(&admin(), "AK", HERE)));
    let backend = || backend("main", HERE, json!({}));
    let accepted = with_secret(backend(), &admin(), silent(), Unlabelled::Accepted);
    let lack = |tables: &Tables| -> Option<Lack> {
        let access = &tables.backend("main").expect("it is known").access;
        access.as_ref().ok().and_then(|access| access.key.lack.clone())
    };
    assert!(lack(&accepted).is_some());
    let elsewhere = Some(store_secret(&admin(), "AK", THERE));
    let refused = with_secret(backend(), &admin(), elsewhere, Unlabelled::Accepted);
    assert!(matches!(access(&refused, "main"), Err(Unusable::NotOptedIn(..))));
}

/// Secrets that may not be read aren't even watched.
// covers: 1.backend.gatewayCredentials.rules
#[rstest]
#[case::foreign_namespace("team-a", "admin", Unusable::Untrusted(name("team-a", "admin")))]
#[case::a_key_of_ours(NAMESPACE, "vc-akia", Unusable::Internal(name(NAMESPACE, "vc-akia")))]
#[case::in_a_trusted_namespace("vault", "br-0", Unusable::Internal(name("vault", "br-0")))]
fn no_other_secret_is_read(#[case] namespace: &str, #[case] of: &str, #[case] why: Unusable) {
    let at = name(namespace, of);
    for more in [
        gateway_reference(namespace, of),
        json!({"adminCredentialsSecretRef": {"name": of, "namespace": namespace}}),
        json!({"tls": {"caBundleSecretRef": {"name": of, "namespace": namespace}}}),
    ] {
        let mut tables = tables();
        list([backend("main", HERE, more)]).for_each(|event| tables.apply_backend(event));
        assert!(!tables.wanted().contains(&at));
        for secret in [at.clone(), admin()] {
            let found = store_secret(&secret, "AK", HERE);
            list([found]).for_each(|event| tables.apply_store_secret(&secret, event));
        }
        assert_eq!(access(&tables, "main"), Err(why.clone()));
    }
}

/// An internal Secret under another name is recognised by its role.
#[test]
fn a_secret_of_ours_is_no_stores_whatever_it_is_called() {
    let mut own = store_secret(&admin(), "AK", HERE);
    own.metadata.labels.get_or_insert_default().insert(wire::ROLE.to_owned(), "bucket-record".to_owned());
    let tables = with_secret(backend("main", HERE, json!({})), &admin(), Some(own), Unlabelled::Accepted);
    assert_eq!(access(&tables, "main"), Err(Unusable::Internal(admin())));
}

#[rstest]
#[case(json!({}), Ok(Trust::System))]
#[case(json!({"tls": {"insecureSkipVerify": true}}), Ok(Trust::Anything))]
#[case(json!({"tls": {"caBundleSecretRef": {"name": "ca", "namespace": "vault"}}}), Ok(Trust::Bundle(b"PEM".to_vec())))]
#[case(
    json!({"tls": {"insecureSkipVerify": true, "caBundleSecretRef": {"name": "ca", "namespace": "x"}}}),
    Ok(Trust::Anything)
)]
#[case(
    json!({"tls": {"caBundleSecretRef": {"name": "ca", "namespace": "vault", "key": "x"}}}),
    Err(Unusable::NoField(name("vault", "ca"), "x".to_owned()))
)]
fn certificates_are_believed_as_the_backend_says(#[case] more: Value, #[case] expected: Result<Trust, Unusable>) {
    let mut tables = tables();
    list([backend("main", HERE, more)]).for_each(|event| tables.apply_backend(event));
    let bundle = name("vault", "ca");
    let mut secret = Secret::default();
    set(&mut secret, "ca.crt", "PEM");
    list([secret]).for_each(|event| tables.apply_store_secret(&bundle, event));
    list([store_secret(&admin(), "AK", HERE)]).for_each(|event| tables.apply_store_secret(&admin(), event));
    let backend = tables.backend("main").expect("it is known");
    assert_eq!(backend.access.as_ref().map(|access| access.trust.clone()).map_err(Clone::clone), expected);
}

fn revision(tables: &Tables, name: &str) -> u64 {
    tables.backend(name).expect("it is known").revision
}

/// An edit, and true if an existing client can still be used after it.
#[rstest]
#[case::nothing(HERE, json!({}), true)]
#[case::what_is_the_operators(HERE, json!({"adoptionPolicy": "Any", "bucketNameTemplate": "x-{{ .Name }}"}), true)]
#[case::former(HERE, json!({"formerEndpoints": [THERE]}), true)]
#[case::endpoint(THERE, json!({}), false)]
#[case::region(HERE, json!({"region": "eu-central-1"}), false)]
#[case::addressing(HERE, json!({"addressingStyle": "virtual"}), false)]
#[case::trust(HERE, json!({"tls": {"insecureSkipVerify": true}}), false)]
#[case::key(HERE, gateway_reference(NAMESPACE, "gateway"), false)]
fn a_client_at_hand_is_told_by_its_revision(#[case] url: &str, #[case] more: Value, #[case] same: bool) {
    let mut tables = whole([], [backend("main", HERE, json!({})), backend("other", HERE, json!({}))]);
    let before = [revision(&tables, "main"), revision(&tables, "other")];
    tables.apply_backend(Event::Apply(backend("main", url, more.clone())));
    assert_eq!(revision(&tables, "main") == before[0], same);
    assert_eq!(revision(&tables, "other"), before[1]);
    let edited = tables.backend("main").expect("it is known").clone();
    assert_eq!(edited.is_at(&endpoint(THERE)), url == THERE || more.get("formerEndpoints").is_some());
    assert_eq!(edited.addressing == AddressingStyle::Virtual, more.get("addressingStyle").is_some());
    let again = [backend("main", url, more), backend("other", HERE, json!({}))];
    list(again).for_each(|event| tables.apply_backend(event));
    assert!(Arc::ptr_eq(&edited, tables.backend("main").expect("it is known")), "a list that shows the same");
}

#[test]
fn a_changed_secret_makes_another_client_and_touches_no_other() {
    let other = json!({"adminCredentialsSecretRef": {"name": "other", "namespace": "vault"}});
    let mut tables = whole([], [backend("main", HERE, json!({})), backend("other", HERE, other)]);
    let mut seen = vec![revision(&tables, "main")];
    let untouched = revision(&tables, "other");
    let mut apply = |event: Event<Secret>, tables: &mut Tables| {
        tables.apply_store_secret(&admin(), event);
        seen.push(revision(tables, "main"));
    };
    apply(Event::Apply(store_secret(&admin(), "AKNEW", HERE)), &mut tables);
    let mut touched = store_secret(&admin(), "AKNEW", HERE);
    touched.metadata.resource_version = Some("8".to_owned());
    set(&mut touched, "unrelated", "x");
    apply(Event::Apply(touched), &mut tables);
    apply(Event::Apply(store_secret(&admin(), "AKNEW", THERE)), &mut tables);
    apply(Event::Delete(store_secret(&admin(), "AKNEW", THERE)), &mut tables);
    apply(Event::Init, &mut tables);
    apply(Event::InitApply(store_secret(&admin(), "AKNEW", HERE)), &mut tables);
    apply(Event::InitDone, &mut tables);
    apply(Event::Init, &mut tables);
    apply(Event::InitDone, &mut tables);
    let begin = seen[0];
    let rises: Vec<u64> = seen.iter().map(|revision| revision - begin).collect();
    let first: Vec<bool> = rises.windows(2).map(|pair| pair[0] != pair[1]).collect();
    assert_eq!(first, [true, false, true, true, false, false, true, false, true]);
    assert!(rises.is_sorted());
    assert_eq!(access(&tables, "main"), Err(Unusable::NoSecret(admin())), "the last list does not show it");
    assert_eq!(revision(&tables, "other"), untouched);
}

#[test]
fn a_backend_made_anew_has_a_higher_revision() {
    let mut tables = whole([], [backend("main", HERE, json!({}))]);
    let before = revision(&tables, "main");
    tables.apply_backend(Event::Delete(backend("main", HERE, json!({}))));
    assert!(tables.backend("main").is_none() && tables.wanted().is_empty());
    tables.apply_backend(Event::Apply(backend("main", HERE, json!({}))));
    assert_eq!(access(&tables, "main"), Err(Unusable::NotSeen(admin())), "its Secret is to be seen again");
    assert!(revision(&tables, "main") > before);
}

#[test]
fn a_watch_that_fails_leaves_what_was_seen() {
    let mut tables = whole([], [backend("main", HERE, json!({}))]);
    tables.store_secret_failed(&admin(), Failure::Silence);
    assert!(access(&tables, "main").is_ok());
    let unseen = json!({"adminCredentialsSecretRef": {"name": "new", "namespace": "vault"}});
    tables.apply_backend(Event::Apply(backend("main", HERE, unseen)));
    let new = name("vault", "new");
    for why in [Failure::Silence, Failure::Refused(403)] {
        tables.store_secret_failed(&new, why);
        assert_eq!(access(&tables, "main"), Err(Unusable::Unwatched(new.clone(), why)));
    }
}

#[test]
fn nothing_that_can_be_shown_has_a_secret_in_it() {
    let tables = whole([credential("u-1", 1, None)], [backend("main", HERE, json!({}))]);
    let registry = Registry::new(setting(Unlabelled::Refused));
    let shown = format!("{:?} {:?} {registry:?}", tables.backend("main"), tables.key(&id("u-1", 1)));
    assert!(shown.contains("AKADMIN") && !shown.contains("secret of") && !shown.contains("s3cr3t"), "{shown}");
}
