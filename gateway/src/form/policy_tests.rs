use rstest::rstest;

use super::super::Field;
use super::*;

const CONDITIONS: &str = r#"{"bucket": "b"}, ["starts-with", "$key", "user/"], {"acl": "private"},
    ["starts-with", "$Content-Type", "image/"], ["content-length-range", 1, "10"]"#;

fn parse(conditions: &str) -> Result<Policy, Code> {
    parse_json(&format!(r#"{{"expiration": "2015-12-30T12:00:00.000Z", "conditions": [{conditions}]}}"#))
}

fn parse_json(json: &str) -> Result<Policy, Code> {
    Policy::parse(&STANDARD.encode(json)).map_err(|refusal| refusal.code)
}

#[test]
fn a_policy_is_read() {
    let policy = parse(CONDITIONS).expect("it can be read");
    assert_eq!(policy.expiration, "2015-12-30T12:00:00Z".parse().expect("a time"));
    let expected = [
        Condition::Equal("bucket".into(), "b".into()),
        Condition::StartsWith("key".into(), "user/".into()),
        Condition::Equal("acl".into(), "private".into()),
        Condition::StartsWith("content-type".into(), "image/".into()),
        Condition::Length(1, 10),
    ];
    assert_eq!(policy.conditions, expected);
    let two = parse(r#"{"Key": "a", "key": "b"}"#).expect("it can be read");
    assert_eq!(two.conditions.len(), 2, "neither is forgotten");
}

#[rstest]
#[case(r#"["like", "$key", "a"]"#)]
#[case(r#"["eq", "key", "a"]"#)]
#[case(r#"["eq", "$key"]"#)]
#[case(r#"["eq", "$key", 1]"#)]
#[case(r#"["eq", "$key", "a", "b"]"#)]
#[case(r#"[]"#)]
#[case(r#"{"key": 1}"#)]
#[case(r#"{"key": ["a"]}"#)]
#[case(r#""key""#)]
#[case(r#"["content-length-range", 0]"#)]
#[case(r#"["content-length-range", -1, 0]"#)]
#[case(r#"["content-length-range", 2, 1]"#)]
#[case(r#"["content-length-range", 0.5, 1]"#)]
#[case(r#"["content-length-range", "", "1"]"#)]
#[case(r#"["content-length-range", 0, "99999999999999999999"]"#)]
fn a_condition_of_another_form_is_refused(#[case] condition: &str) {
    assert_eq!(parse(condition), Err(Code::MalformedPOSTRequest));
}

#[rstest]
#[case(r#"{"conditions": []}"#)]
#[case(r#"{"expiration": "2015-12-30T12:00:00Z"}"#)]
#[case(r#"{"expiration": "2015-12-30T12:00:00Z", "CONDITIONS": []}"#)]
#[case(r#"{"expiration": "2015-12-30T12:00:00Z", "conditions": [], "conditions": []}"#)]
#[case(r#"{"expiration": "2015-12-30T12:00:00Z", "conditions": [], "more": 1}"#)]
#[case(r#"{"expiration": "2015-12-30T12:00:00+00:00", "conditions": []}"#)]
#[case(r#"{"expiration": "2015-12-30 12:00:00Z", "conditions": []}"#)]
#[case(r#"{"expiration": "2015-12-30", "conditions": []}"#)]
#[case(r#"{"expiration": 0, "conditions": []}"#)]
#[case(r#"{"expiration": "2015-12-30T12:00:00Z", "conditions": []} "#)]
#[case("")]
fn a_policy_of_another_form_is_refused(#[case] json: &str) {
    let expected = if json.ends_with("} ") { Ok(()) } else { Err(Code::MalformedPOSTRequest) };
    assert_eq!(parse_json(json).map(|_| ()), expected);
    assert_eq!(Policy::parse(json).map_err(|refusal| refusal.code), Err(Code::MalformedPOSTRequest));
}

#[test]
fn a_policy_has_a_longest_length_and_depth() {
    let text = |length: usize| Policy::parse(&"A".repeat(length)).map_err(|refusal| refusal.code);
    assert_eq!(text(MAX_POLICY), Err(Code::MalformedPOSTRequest));
    assert_eq!(text(MAX_POLICY + 4), Err(Code::EntityTooLarge));
    assert_eq!(parse(&"[".repeat(10_000)), Err(Code::MalformedPOSTRequest));
}

fn check(conditions: &str, fields: &[(&str, &str)]) -> Result<(), String> {
    let field = |(name, value): &(&str, &str)| Field { name: (*name).into(), value: (*value).into() };
    let form = Form { fields: fields.iter().map(field).collect(), filename: "a.png".into() };
    let key = form.key().expect("it has a key");
    let checked = parse(conditions).expect("it can be read").check(&form, "b", &key);
    checked.map_err(|refusal| {
        assert_eq!(refusal.code, Code::AccessDenied);
        refusal.message.trim_start_matches("Invalid according to Policy: ").to_owned()
    })
}

const GOOD: [(&str, &str); 7] = [
    ("key", "user/1"),
    ("acl", "private"),
    ("content-type", "image/png, image/gif"),
    ("policy", "p"),
    ("x-amz-signature", "s"),
    ("x-ignore-this", "i"),
    ("file", "f"),
];

/// Returns the valid form with one field replaced or added.
fn with(name: &'static str, value: &'static str) -> Vec<(&'static str, &'static str)> {
    let kept = GOOD.into_iter().filter(|(of, _)| *of != name);
    kept.chain([(name, value)]).collect()
}

#[rstest]
#[case::good(GOOD.to_vec(), None)]
#[case::key_with_the_file(with("key", "user/${filename}"), None)]
#[case::other_key(with("key", "User/1"), Some("Policy Condition failed: [\"starts-with\", \"$key\", \"user/\"]"))]
#[case::other_value(with("acl", "private "), Some("Policy Condition failed: [\"eq\", \"$acl\", \"private\"]"))]
#[case::no_value(with("acl", ""), Some("Policy Condition failed: [\"eq\", \"$acl\", \"private\"]"))]
#[case::one_of_two(
    with("content-type", "image/png,text/html"),
    Some("Policy Condition failed: [\"starts-with\", \"$content-type\", \"image/\"]")
)]
#[case::one_more(with("x-amz-meta-a", "1"), Some("Extra input fields: x-amz-meta-a"))]
#[case::credentials_are_named(with("x-amz-credential", "1"), Some("Extra input fields: x-amz-credential"))]
fn a_form_keeps_to_its_policy(#[case] fields: Vec<(&str, &str)>, #[case] refused: Option<&str>) {
    assert_eq!(check(CONDITIONS, &fields).err().as_deref(), refused);
}

#[test]
fn bucket_and_key_are_always_named() {
    let form = [("key", "k")];
    assert_eq!(check(r#"{"key": "k"}"#, &form), Err("Extra input fields: bucket".into()));
    assert_eq!(check(r#"{"bucket": "b"}"#, &form), Err("Extra input fields: key".into()));
    assert_eq!(check(r#"{"bucket": "b", "key": "k"}"#, &form), Ok(()));
    assert!(check(r#"{"bucket": "c", "key": "k"}"#, &form).is_err());
    assert!(check(r#"{"bucket": "b"}, ["eq", "$key", "k"], ["eq", "$key", "j"]"#, &form).is_err(), "all hold");
    assert_eq!(check(r#"{"bucket": "b", "key": "k"}, ["starts-with", "$acl", ""]"#, &form), Ok(()));
}

#[rstest]
#[case(0, Some(Code::EntityTooSmall))]
#[case(1, None)]
#[case(10, None)]
#[case(11, Some(Code::EntityTooLarge))]
#[case(u64::MAX, Some(Code::EntityTooLarge))]
fn a_file_keeps_to_its_length(#[case] length: u64, #[case] refused: Option<Code>) {
    let policy = parse(CONDITIONS).expect("it can be read");
    assert_eq!(policy.check_length(length).err().map(|refusal| refusal.code), refused);
    assert_eq!(parse("").expect("it can be read").check_length(length), Ok(()));
}
