use rstest::rstest;
use stowage_api::SecretKey;

use super::super::Field;
use super::*;

/// The example from Amazon S3's reference, "Browser-based upload using HTTP POST (using AWS
/// Signature Version 4)".
const POLICY: &str = concat!(
    "eyAiZXhwaXJhdGlvbiI6ICIyMDE1LTEyLTMwVDEyOjAwOjAwLjAwMFoiLA0KICAiY29uZGl0aW9ucyI6IFsNCiAgICB7ImJ1Y2tldCI6ICJzaWd2",
    "NGV4YW1wbGVidWNrZXQifSwNCiAgICBbInN0YXJ0cy13aXRoIiwgIiRrZXkiLCAidXNlci91c2VyMS8iXSwNCiAgICB7ImFjbCI6ICJwdWJsaWMt",
    "cmVhZCJ9LA0KICAgIHsic3VjY2Vzc19hY3Rpb25fcmVkaXJlY3QiOiAiaHR0cDovL3NpZ3Y0ZXhhbXBsZWJ1Y2tldC5zMy5hbWF6b25hd3MuY29t",
    "L3N1Y2Nlc3NmdWxfdXBsb2FkLmh0bWwifSwNCiAgICBbInN0YXJ0cy13aXRoIiwgIiRDb250ZW50LVR5cGUiLCAiaW1hZ2UvIl0sDQogICAgeyJ4",
    "LWFtei1tZXRhLXV1aWQiOiAiMTQzNjUxMjM2NTEyNzQifSwNCiAgICB7IngtYW16LXNlcnZlci1zaWRlLWVuY3J5cHRpb24iOiAiQUVTMjU2In0s",
    "DQogICAgWyJzdGFydHMtd2l0aCIsICIkeC1hbXotbWV0YS10YWciLCAiIl0sDQoNCiAgICB7IngtYW16LWNyZWRlbnRpYWwiOiAiQUtJQUlPU0ZP",
    "RE5ON0VYQU1QTEUvMjAxNTEyMjkvdXMtZWFzdC0xL3MzL2F3czRfcmVxdWVzdCJ9LA0KICAgIHsieC1hbXotYWxnb3JpdGhtIjogIkFXUzQtSE1B",
    "Qy1TSEEyNTYifSwNCiAgICB7IngtYW16LWRhdGUiOiAiMjAxNTEyMjlUMDAwMDAwWiIgfQ0KICBdDQp9",
);
const SIGNATURE: &str = "8afdbf4008c03f22c2cd3cdb72e4afbb1f6a588f3255ac628749a66d7f09699e";
const NOW: &str = "2015-12-29T00:00:00Z";

const FIELDS: [(&str, &str); 12] = [
    ("key", "user/user1/${filename}"),
    ("acl", "public-read"),
    ("success_action_redirect", "http://sigv4examplebucket.s3.amazonaws.com/successful_upload.html"),
    ("content-type", "image/jpeg"),
    ("x-amz-meta-uuid", "14365123651274"),
    ("x-amz-server-side-encryption", "AES256"),
    ("x-amz-credential", "AKIAIOSFODNN7EXAMPLE/20151229/us-east-1/s3/aws4_request"),
    ("x-amz-algorithm", "AWS4-HMAC-SHA256"),
    ("x-amz-date", "20151229T000000Z"),
    ("x-amz-meta-tag", ""),
    ("policy", POLICY),
    ("x-amz-signature", SIGNATURE),
];

/// Returns the example's form with one field replaced, added, or omitted if the value is `None`.
fn form(name: &str, value: Option<&str>) -> Form {
    let kept = FIELDS.into_iter().filter(|(of, _)| *of != name);
    let field = |(name, value): (&str, &str)| Field { name: name.into(), value: value.into() };
    Form { fields: kept.chain(value.map(|value| (name, value))).map(field).collect(), filename: "a.jpg".into() }
}

fn verify(form: &Form, bucket: &str, secret: &str, now: &str) -> Result<Policy, Code> {
    let secret = SigningSecret::new(&SecretKey::new(secret.into()));
    let claim = claim(form).map_err(|refusal| refusal.code)?.expect("it is signed");
    let now = now.parse().expect("a time");
    claim.verify(form, bucket, &secret, "us-east-1", now).map_err(|refusal| refusal.code)
}

const SECRET: &str = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";

#[rstest]
#[case(NOW, None)]
#[case("2015-12-28T23:45:00Z", None)]
#[case("2015-12-28T23:44:59Z", Some(Code::AccessDenied))]
#[case("2015-12-30T12:00:00Z", None)]
#[case("2015-12-30T12:00:01Z", Some(Code::AccessDenied))]
fn the_example_holds_until_it_expires(#[case] now: &str, #[case] refused: Option<Code>) {
    let verified = verify(&form("", None), "sigv4examplebucket", SECRET, now);
    assert_eq!(verified.as_ref().err().copied(), refused);
    assert!(verified.is_err() || verified.is_ok_and(|policy| policy.conditions.len() == 11));
}

#[test]
fn a_signing_key_is_good_for_a_week() {
    use base64::Engine as _;
    let json = r#"{"expiration": "2030-01-01T00:00:00Z", "conditions": [{"bucket": "b"}, {"key": "k"},
        ["starts-with", "$x-amz-credential", ""], ["starts-with", "$x-amz-algorithm", ""],
        ["starts-with", "$x-amz-date", ""]]}"#;
    let policy = base64::engine::general_purpose::STANDARD.encode(json);
    let good = form("", None);
    let kept = ["x-amz-credential", "x-amz-algorithm", "x-amz-date"];
    let mut fields: Vec<_> = good.fields.into_iter().filter(|field| kept.contains(&&*field.name)).collect();
    let signature = "c5eb2a4a1d9c9a5d1c6f0b9ff5a3a3ee5f7f2d0a0c6f5c8b7e6d5c4b3a291807";
    for (name, value) in [("key", "k"), ("policy", &policy), ("x-amz-signature", signature)] {
        fields.push(Field { name: name.into(), value: value.into() });
    }
    let form = Form { fields, ..Form::default() };
    // A client that has only the signature gets the same response before and after, but for the
    // week.
    assert_eq!(verify(&form, "b", SECRET, "2016-01-05T00:00:00Z"), Err(Code::SignatureDoesNotMatch));
    assert_eq!(verify(&form, "b", SECRET, "2016-01-05T00:00:01Z"), Err(Code::AccessDenied));
}

#[rstest]
#[case::another_key("", None, "other", Code::SignatureDoesNotMatch)]
#[case::another_policy("policy", Some("e30="), SECRET, Code::SignatureDoesNotMatch)]
#[case::another_day("x-amz-date", Some("20151230T000000Z"), SECRET, Code::InvalidArgument)]
#[case::another_time("x-amz-date", Some("20151229T000001Z"), SECRET, Code::AccessDenied)]
#[case::another_region(
    "x-amz-credential",
    Some("AKIAIOSFODNN7EXAMPLE/20151229/r/s3/aws4_request"),
    SECRET,
    Code::InvalidArgument
)]
#[case::another_service(
    "x-amz-credential",
    Some("AKIAIOSFODNN7EXAMPLE/20151229/us-east-1/sts/aws4_request"),
    SECRET,
    Code::InvalidArgument
)]
#[case::another_signature("x-amz-signature", Some("00"), SECRET, Code::InvalidArgument)]
#[case::another_algorithm("x-amz-algorithm", Some("AWS4-HMAC-SHA1"), SECRET, Code::InvalidArgument)]
#[case::another_acl("acl", Some("private"), SECRET, Code::AccessDenied)]
#[case::one_more("x-amz-meta-more", Some("1"), SECRET, Code::AccessDenied)]
#[case::another_bucket("bucket", Some("other"), SECRET, Code::MalformedPOSTRequest)]
#[case::a_token("x-amz-security-token", Some("t"), SECRET, Code::InvalidToken)]
#[case::version_2("awsaccesskeyid", Some("AK"), SECRET, Code::InvalidRequest)]
#[case::version_2_signature("signature", Some("c2ln"), SECRET, Code::InvalidRequest)]
#[case::no_key("key", None, SECRET, Code::InvalidArgument)]
#[case::no_policy("policy", None, SECRET, Code::InvalidArgument)]
#[case::no_algorithm("x-amz-algorithm", None, SECRET, Code::InvalidArgument)]
#[case::no_credential("x-amz-credential", None, SECRET, Code::InvalidArgument)]
#[case::no_date("x-amz-date", None, SECRET, Code::InvalidArgument)]
#[case::no_signature("x-amz-signature", None, SECRET, Code::InvalidArgument)]
fn what_was_not_signed_is_refused(
    #[case] name: &str,
    #[case] value: Option<&str>,
    #[case] secret: &str,
    #[case] expected: Code,
) {
    assert_eq!(verify(&form(name, value), "sigv4examplebucket", secret, NOW), Err(expected));
}

#[test]
fn the_bucket_is_the_policys() {
    assert_eq!(verify(&form("", None), "other", SECRET, NOW), Err(Code::AccessDenied));
}

#[test]
fn nobody_learns_whether_there_is_such_a_key() {
    let form = form("acl", Some("private"));
    let claim = claim(&form).expect("it can be read").expect("it is signed");
    let refuse = |now: &str| claim.refuse_unknown(&form, "us-east-1", now.parse().expect("a time")).code;
    assert_eq!(refuse(NOW), Code::InvalidAccessKeyId);
    assert_eq!(refuse("2015-12-28T00:00:00Z"), Code::AccessDenied);
    assert!(!format!("{claim:?} {form:?}").contains(SIGNATURE));
}

#[test]
fn a_form_may_be_unsigned() {
    let fields = vec![Field { name: "key".into(), value: "k".into() }];
    assert!(claim(&Form { fields, ..Form::default() }).expect("it can be read").is_none());
}
