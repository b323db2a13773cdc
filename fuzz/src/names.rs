//! Names of buckets and endpoints, and names derived from them.

use std::sync::LazyLock;

use regex::Regex;
use stowage_api::wire::{self, Role};
use stowage_api::{AccessKeyId, AnonymousBinding, BucketName, ClaimUid, Endpoint, RecordName, shortened};

use super::definitions::Rules;

/// Compiles a regular expression of this crate.
pub(crate) fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("it is a regular expression")
}

static BUCKET: LazyLock<Rules> = LazyLock::new(|| Rules::of_claim("bucketName"));
static ENDPOINT: LazyLock<Regex> = LazyLock::new(|| pattern(r"^https?://[!-~--[/?#@\\A-Z]]+$"));
static RECORD: LazyLock<Regex> = LazyLock::new(|| pattern("^br-[0-9a-f]{40}$"));
static KEY_ID: LazyLock<Regex> = LazyLock::new(|| pattern("^AKIA[A-Z2-7]{16}$"));
static LABEL: LazyLock<Regex> = LazyLock::new(|| pattern("^([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$"));

/// Parses a text as each kind of name.
pub(crate) fn play(input: &[u8]) {
    let Ok(text) = str::from_utf8(input) else { return };
    bucket(text);
    endpoint(text);
    derived(text);
    cut(text);
}

/// Checks that exactly the bucket names that the definition allows are accepted.
fn bucket(text: &str) {
    let parsed = BucketName::parse(text);
    let allowed = (3..=63).contains(&text.chars().count()) && BUCKET.allow(text);
    assert_eq!(parsed.is_ok(), allowed, "{text:?}: {parsed:?}");
    if let Ok(name) = parsed {
        assert_eq!(name.as_str(), text);
        assert!(name.reserved_ending().is_none_or(|ending| text.ends_with(ending)));
    }
}

/// Checks that an endpoint has one canonical form, which is parsed as itself and has only scheme,
/// host and port.
fn endpoint(text: &str) {
    let Ok(endpoint) = Endpoint::parse(text) else { return };
    let told = endpoint.as_str();
    assert!(ENDPOINT.is_match(told), "{text:?} is {told:?}");
    for same in [told.to_owned(), format!("{told}/"), told.replacen("http", "HTTP", 1)] {
        assert_eq!(Endpoint::parse(&same).as_ref(), Ok(&endpoint), "{text:?} is {told:?}");
    }
    for more in ["/x", "?x", "#x", "/?"] {
        let more = format!("{told}{more}");
        assert!(Endpoint::parse(&more).is_err(), "{more:?}");
    }
    let bucket = BucketName::parse("photos").expect("a name");
    assert!(RECORD.is_match(RecordName::of(&endpoint, &bucket).as_str()));
}

/// Checks that names derived from any UID are valid names of Secrets.
fn derived(text: &str) {
    let uid = ClaimUid::new(text);
    for generation in [1, text.len() as u64, u64::MAX] {
        let id = AccessKeyId::of(&uid, generation);
        assert!(KEY_ID.is_match(id.as_str()), "{id}");
        assert_eq!(id.secret_name(), format!("vc-{}", id.as_str().to_lowercase()));
        assert_eq!(Role::of_internal(&id.secret_name()), Some(Role::VirtualCredential));
        assert_ne!(id, AccessKeyId::of(&uid, generation ^ 1));
    }
    assert_eq!(Role::of_internal(&AnonymousBinding::name(&uid)), Some(Role::AnonymousBinding));
}

/// Checks that values are cut to their maximum length, that shorter ones stay unchanged, and that
/// cutting is idempotent.
fn cut(text: &str) {
    let label = wire::label_value(text);
    let tag = wire::tag_value(text);
    for (cut, most) in [(&label, 63), (&tag, 256)] {
        assert!(cut.len() <= most, "{cut:?}");
        assert_eq!(cut == text, text.len() <= most, "{text:?} is cut to {cut:?}");
    }
    assert_eq!((wire::label_value(&label), wire::tag_value(&tag)), (label.clone(), tag.clone()));
    if text.chars().all(|c| matches!(c, 'a'..='z' | '0'..='9' | '-' | '.')) && LABEL.is_match(text) {
        assert!(LABEL.is_match(&label), "{text:?} is no label as {label:?}");
    }
    let receipt = wire::receipt(text);
    assert!(receipt.len() <= 64, "{receipt:?}");
    assert_eq!(receipt == text, text.len() <= 63, "{text:?} is {receipt:?}");
    for most in [3, 64, 1024] {
        let short = shortened(text, most);
        assert!(short.len() <= most, "{short:?}");
        assert_eq!(shortened(&short, most), short);
        assert!(text.starts_with(short.trim_end_matches('\u{2026}')), "{text:?} is cut to {short:?}");
    }
}
