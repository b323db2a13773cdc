use rstest::rstest;
use serde_json::json;

use super::*;

/// A name that is not a valid object name is rejected, because in a URL path it could change the
/// request.
// covers: 8.entry.name
#[rstest]
#[case("photos", None, true)]
#[case("photos.of-a", Some("team-a"), true)]
#[case("?watch=true&timeoutSeconds=99999999", None, false)]
#[case("photos", Some("team-a/secrets/x?y="), false)]
#[case("../../secrets", None, false)]
#[case("photos%2f", None, false)]
#[case("", None, false)]
fn only_what_can_be_a_name_is_a_claims(#[case] name: &str, #[case] namespace: Option<&str>, #[case] valid: bool) {
    let raw = json!({"claimRef": {"name": name, "namespace": namespace}});
    let raw: AccessEntry = serde_json::from_value(raw).expect("an entry");
    assert_eq!(Entry::parse(&raw, "team-b").of.is_ok(), valid);
}

// covers: 8.entry
#[test]
fn what_can_not_be_read_of_an_entry_closes_that_entry_alone() {
    let raw = json!({"metadata": {"name": "reader", "namespace": "team-b"}, "spec": {
        "writeConnectionSecretToRef": {"name": "s"},
        "buckets": [
            {"claimRef": {"name": "photos"}},
            {"claimRef": {"name": "photos", "namespace": "team-a"}, "mode": "Unheard", "prefix": "in"},
            {"bucketRef": {"backend": "main", "name": "Wrong"}},
            {"bucketRef": {"backend": "main", "name": "archive"}, "mode": "ReadOnly", "prefix": "in/"},
            {},
        ],
    }});
    let access = Access::parse(&serde_json::from_value(raw).expect("an access"));
    let of = |at: usize| access.entries[at].of.as_ref().ok();
    let claim = |namespace: &str| EntryOf::Claim(ClaimRef { namespace: namespace.into(), name: "photos".into() });
    assert_eq!((of(0), of(1)), (Some(&claim("team-b")), Some(&claim("team-a"))));
    assert_eq!(access.entries[0].wants, Ok((AccessMode::ReadWrite, None)));
    assert!(access.entries[1].wants.is_err());
    assert_eq!((of(2), of(4)), (None, None));
    let archive = BucketName::parse("archive").expect("a name");
    assert_eq!(of(3), Some(&EntryOf::Bucket("main".into(), archive)));
    assert_eq!(access.entries[3].wants, Ok((AccessMode::ReadOnly, Prefix::parse("in/").ok())));
}
