use rstest::rstest;
use serde_json::json;

use super::*;

// covers: 8.prefix
#[rstest]
#[case("in/", true)]
#[case("a/b c/\u{e4}/", true)]
#[case(".../", true)]
#[case("in", false)]
#[case("/", false)]
#[case("", false)]
#[case("/in/", false)]
#[case("in//x/", false)]
#[case("in/./", false)]
#[case("../in/", false)]
#[case("a\u{1}/", false)]
#[case("a\u{7f}/", false)]
#[case("a\u{85}/", true)]
fn prefixes(#[case] text: &str, #[case] valid: bool) {
    assert_eq!(Prefix::parse(text).is_ok(), valid, "{text}");
}

#[test]
fn a_prefix_has_512_bytes_at_most() {
    assert!(Prefix::parse(&format!("{}/", "x".repeat(511))).is_ok());
    assert!(Prefix::parse(&format!("{}/", "x".repeat(512))).is_err());
}

fn agreed(mode: AccessMode, prefixes: &[&str]) -> Consent {
    let prefixes = prefixes.iter().map(|text| Prefix::parse(text).expect("a prefix")).collect();
    Consent { max_mode: mode, prefixes }
}

#[rstest]
#[case(agreed(AccessMode::ReadOnly, &[]), Consent::full(), true)]
#[case(Consent::full(), agreed(AccessMode::ReadOnly, &[]), false)]
#[case(agreed(AccessMode::ReadOnly, &[]), agreed(AccessMode::WriteOnly, &[]), false)]
#[case(agreed(AccessMode::ReadWrite, &["a/b/"]), agreed(AccessMode::ReadWrite, &["c/", "a/"]), true)]
#[case(agreed(AccessMode::ReadWrite, &["a/"]), agreed(AccessMode::ReadWrite, &["a/b/"]), false)]
#[case(agreed(AccessMode::ReadWrite, &["ab/"]), agreed(AccessMode::ReadWrite, &["a/"]), false)]
#[case(agreed(AccessMode::ReadWrite, &[]), agreed(AccessMode::ReadWrite, &["a/"]), false)]
fn one_consent_is_within_another(#[case] one: Consent, #[case] other: Consent, #[case] within: bool) {
    assert_eq!(one.is_within(&other), within);
}

// covers: 8.sharing.rules
#[test]
fn the_first_rule_that_matches_counts_and_what_can_not_be_read_lets_nobody_in() {
    let rules = json!([
        {"namespaces": {"names": ["a"]}, "maxMode": "Everything"},
        {"namespaces": {"names": ["b"]}, "maxMode": "ReadOnly"},
        {"namespaces": {"selector": {"matchLabels": {"team": "x"}}}, "maxMode": "ReadWrite", "prefixes": ["in/"]},
        {"namespaces": {"names": ["c"]}, "maxMode": "ReadWrite", "prefixes": ["in"]},
        {"namespaces": {"selector": {"matchExpressions": [{"key": "k", "operator": "Like"}]}}, "maxMode": "ReadWrite"},
    ]);
    let rules: Vec<SharingRule> = serde_json::from_value(rules).expect("rules");
    let sharing = Sharing::parse(Some(&rules));
    let labels = |team: &str| BTreeMap::from([("team".to_owned(), team.to_owned())]);
    assert_eq!(sharing.consent("a", Some(&labels("y"))), None);
    assert_eq!(sharing.consent("b", Some(&labels("x"))), Some(&agreed(AccessMode::ReadOnly, &[])));
    assert_eq!(sharing.consent("d", Some(&labels("x"))), Some(&agreed(AccessMode::ReadWrite, &["in/"])));
    assert_eq!(sharing.consent("d", None), None, "its labels aren't known");
    assert_eq!(sharing.consent("c", Some(&labels("y"))), None);
    assert_eq!(Sharing::default().consent("b", None), None);
    let (reads, writes) = (agreed(AccessMode::ReadOnly, &[]), agreed(AccessMode::ReadWrite, &["in/"]));
    assert_eq!(sharing.possible(Some("b")), [&reads], "no later rule counts, whatever its labels");
    assert_eq!(sharing.possible(Some("d")), [&writes], "it may have the label");
    assert_eq!(sharing.possible(None), [&reads, &writes]);
    assert_eq!(Sharing::default().possible(None), [] as [&Consent; 0]);
}
