use http::{HeaderMap, HeaderName, HeaderValue};
use rstest::rstest;

use super::*;
use crate::uri::parse_query;

const HASH: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
const CREDENTIAL: &str = "AK/20130524/r/s3/aws4_request";

fn read(query: &str, headers: &[(&str, &str)]) -> Result<Option<Claim>, Code> {
    let query = parse_query(query).expect("a query");
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        let name = HeaderName::from_bytes(name.as_bytes()).expect("a name");
        map.append(name, HeaderValue::from_bytes(value.as_bytes()).expect("a value"));
    }
    claim(&Raw { method: "GET", path: b"/", query: &query, headers: &map }).map_err(|refusal| refusal.code)
}

/// Parses a request with this `Authorization` header and the other headers that it needs.
fn header(authorization: &str) -> Result<Option<Claim>, Code> {
    let date = ("x-amz-date", "20130524T000000Z");
    read("", &[("authorization", authorization), ("x-amz-content-sha256", HASH), date])
}

fn whole(credential: &str, signed: &str, signature: &str) -> String {
    format!("AWS4-HMAC-SHA256 Credential={credential}, SignedHeaders={signed}, Signature={signature}")
}

#[test]
fn a_header_is_read() {
    let authorization = whole(CREDENTIAL, "x-amz-date;host", HASH);
    let spellings = [
        authorization.clone(),
        authorization.replace(", ", ","),
        format!("AWS4-HMAC-SHA256   Signature={HASH} ,\tSignedHeaders=host;x-amz-date,Credential={CREDENTIAL}  "),
    ];
    for spelling in spellings {
        let claim = header(&spelling).expect("it can be read").expect("it is signed");
        assert_eq!(claim.access_key_id, "AK");
        assert_eq!((claim.scope.date.as_str(), claim.scope.region.as_str()), ("20130524", "r"));
        assert_eq!(claim.time, "2013-05-24T00:00:00Z".parse().expect("a time"));
        assert_eq!(claim.how, How::Header);
        let names: Vec<_> = claim.signed_headers.iter().map(HeaderName::as_str).collect();
        assert_eq!(names, ["host", "x-amz-date"], "in the order that is signed");
        assert!(!format!("{claim:?}").contains(HASH), "signatures are not shown");
    }
}

#[rstest]
#[case("", Code::AccessDenied)]
#[case("AWS AKIA:c2ln", Code::InvalidRequest)]
#[case("Bearer x", Code::InvalidArgument)]
#[case("AWS4-HMAC-SHA256", Code::AuthorizationHeaderMalformed)]
#[case("AWS4-HMAC-SHA256Credential=x", Code::InvalidArgument)]
#[case("aws4-hmac-sha256 Credential=x", Code::InvalidArgument)]
#[case("AWS4-ECDSA-P256-SHA256 Credential=x", Code::NotImplemented)]
#[case("AWS4-HMAC-SHA256 é", Code::AuthorizationHeaderMalformed)]
fn other_schemes_are_refused(#[case] authorization: &str, #[case] expected: Code) {
    assert_eq!(header(authorization).map(|_| ()), Err(expected));
}

#[rstest]
#[case("AK/20130524/r/ec2/aws4_request", "host", HASH)]
#[case("AK/20130524/r/s3/aws4_requests", "host", HASH)]
#[case("", "host", HASH)]
#[case(CREDENTIAL, "", HASH)]
#[case(CREDENTIAL, "Host", HASH)]
#[case(CREDENTIAL, "host;", HASH)]
#[case(CREDENTIAL, "host;host", HASH)]
#[case(CREDENTIAL, "host; range", HASH)]
#[case(CREDENTIAL, "host", "")]
#[case(CREDENTIAL, "host", "00")]
#[case(CREDENTIAL, "host", &HASH.to_uppercase())]
#[case(CREDENTIAL, "host", &format!("{HASH},Signature={HASH}"))]
#[case(CREDENTIAL, "host", &format!("{HASH},More=1"))]
#[case(CREDENTIAL, "host", &format!("{HASH},"))]
fn a_header_of_another_form_is_refused(#[case] credential: &str, #[case] signed: &str, #[case] signature: &str) {
    let refused = header(&whole(credential, signed, signature)).map(|_| ());
    assert_eq!(refused, Err(Code::AuthorizationHeaderMalformed));
    let missing = format!("AWS4-HMAC-SHA256 Credential={CREDENTIAL}, SignedHeaders=host");
    assert_eq!(header(&missing).map(|_| ()), Err(Code::AuthorizationHeaderMalformed));
}

#[test]
fn as_many_headers_are_signed_as_there_may_be() {
    let names = |count: usize| (0..count).map(|number| format!("x-{number:03}")).collect::<Vec<_>>().join(";");
    assert!(header(&whole(CREDENTIAL, &names(128), HASH)).is_ok());
    assert!(header(&whole(CREDENTIAL, &names(129), HASH)).is_err());
}

#[rstest]
#[case(&[("x-amz-date", "20130524T000000Z")], true)]
#[case(&[("date", "Fri, 24 May 2013 00:00:00 GMT")], true)]
#[case(&[("date", "20130524T000000Z")], true)]
#[case(&[("x-amz-date", "20130524T000000Z"), ("date", "no date")], true)]
#[case(&[("x-amz-date", "no date"), ("date", "Fri, 24 May 2013 00:00:00 GMT")], false)]
#[case(&[("date", "Sat, 24 May 2013 00:00:00 GMT")], false)]
#[case(&[("x-amz-date", "é")], false)]
#[case(&[], false)]
fn either_date_counts(#[case] dates: &[(&str, &str)], #[case] valid: bool) {
    let authorization = whole(CREDENTIAL, "host", HASH);
    let auth = [("authorization", authorization.as_str()), ("x-amz-content-sha256", HASH)];
    let claim = read("", &[&auth, dates].concat());
    let expected = if valid { Ok("2013-05-24T00:00:00Z".parse().ok()) } else { Err(Code::AccessDenied) };
    assert_eq!(claim.map(|claim| claim.map(|claim| claim.time)), expected);
}

#[rstest]
#[case("authorization")]
#[case("x-amz-date")]
#[case("x-amz-content-sha256")]
#[case("host")]
fn what_counts_once_is_there_once(#[case] name: &str) {
    let authorization = whole(CREDENTIAL, "host", HASH);
    let once = [
        ("authorization", authorization.as_str()),
        ("x-amz-content-sha256", HASH),
        ("x-amz-date", "20130524T000000Z"),
        ("host", "h"),
    ];
    assert!(read("", &once).is_ok());
    let again = once.iter().find(|(of, _)| *of == name).copied().expect("one of them");
    assert_eq!(read("", &[&once[..], &[again]].concat()).map(|_| ()), Err(Code::InvalidRequest));
}

#[test]
fn a_signed_header_says_what_the_body_is() {
    let authorization = whole(CREDENTIAL, "host", HASH);
    let headers = [("authorization", authorization.as_str()), ("x-amz-date", "20130524T000000Z")];
    assert_eq!(read("", &headers).map(|_| ()), Err(Code::InvalidRequest));
}

/// Builds a presigned URL's query with one parameter replaced, or omitted if the value is `None`.
fn presigned(name: &str, value: Option<&str>) -> String {
    let all = [
        ("X-Amz-Algorithm", "AWS4-HMAC-SHA256"),
        ("X-Amz-Credential", CREDENTIAL),
        ("X-Amz-Date", "20130524T000000Z"),
        ("X-Amz-Expires", "60"),
        ("X-Amz-SignedHeaders", "host"),
        ("X-Amz-Signature", HASH),
    ];
    let value = |(of, usual)| Some((of, if of == name { value? } else { usual }));
    all.into_iter().filter_map(value).map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("&")
}

#[test]
fn a_query_is_read() {
    let claim = read(&presigned("", None), &[("host", "h")]).expect("it can be read").expect("it is signed");
    assert_eq!(claim.how, How::Query { expires: Duration::from_secs(60) });
    assert_eq!((claim.access_key_id.as_str(), claim.scope.region.as_str()), ("AK", "r"));
    let twice = read(&presigned("", None), &[("host", "h"), ("host", "h")]);
    assert_eq!(twice.map(|_| ()), Err(Code::InvalidRequest));
}

#[rstest]
#[case("X-Amz-Algorithm", "AWS4-HMAC-SHA1", Code::AuthorizationQueryParametersError)]
#[case("X-Amz-Algorithm", "AWS4-ECDSA-P256-SHA256", Code::NotImplemented)]
#[case("X-Amz-Credential", "AK", Code::AuthorizationQueryParametersError)]
#[case("X-Amz-Date", "2013-05-24T00:00:00Z", Code::AuthorizationQueryParametersError)]
#[case("X-Amz-Expires", "", Code::AuthorizationQueryParametersError)]
#[case("X-Amz-Expires", "0", Code::AuthorizationQueryParametersError)]
#[case("X-Amz-Expires", "-1", Code::AuthorizationQueryParametersError)]
#[case("X-Amz-Expires", "%2B1", Code::AuthorizationQueryParametersError)]
#[case("X-Amz-Expires", "604801", Code::AuthorizationQueryParametersError)]
#[case("X-Amz-Expires", "99999999999999999999999", Code::AuthorizationQueryParametersError)]
#[case("X-Amz-SignedHeaders", "Host", Code::AuthorizationQueryParametersError)]
#[case("X-Amz-Signature", "00", Code::AuthorizationQueryParametersError)]
#[case("X-Amz-Signature", "%ff", Code::AuthorizationQueryParametersError)]
fn a_query_of_another_form_is_refused(#[case] name: &str, #[case] value: &str, #[case] expected: Code) {
    assert_eq!(read(&presigned(name, Some(value)), &[]).map(|_| ()), Err(expected));
    assert_eq!(read(&presigned(name, None), &[]).map(|_| ()), Err(Code::AuthorizationQueryParametersError));
    let twice = format!("{}&{}=x", presigned("", None), name);
    assert_eq!(read(&twice, &[]).map(|_| ()), Err(Code::AuthorizationQueryParametersError));
    let lower = presigned("", None).replace(name, &name.to_lowercase());
    assert_eq!(read(&lower, &[]).map(|_| ()), Err(Code::AuthorizationQueryParametersError));
}

// covers: 6.expiry
#[test]
fn a_week_is_the_longest() {
    let claim = read(&presigned("X-Amz-Expires", Some("604800")), &[]).expect("it can be read").expect("it is signed");
    assert_eq!(claim.how, How::Query { expires: Duration::from_secs(604_800) });
}

#[rstest]
#[case::unsigned("prefix=x", &[("host", "h")], Ok(()))]
#[case::version_2("AWSAccessKeyId=AK&Expires=1&Signature=x", &[], Err(Code::InvalidRequest))]
#[case::half_of_version_2("Signature=x", &[], Err(Code::InvalidRequest))]
#[case::both_versions("Signature=x&X-Amz-Signature=x", &[], Err(Code::InvalidRequest))]
#[case::both_places("X-Amz-Date=x", &[("authorization", "AWS4-HMAC-SHA256 x")], Err(Code::InvalidRequest))]
#[case::old_query("AWSAccessKeyId=x", &[("authorization", "AWS4-HMAC-SHA256 x")], Err(Code::InvalidRequest))]
#[case::token("", &[("x-amz-security-token", "x")], Err(Code::InvalidToken))]
#[case::token_in_query("X-Amz-Security-Token=x", &[], Err(Code::InvalidToken))]
#[case::token_of_any_case("x-amz-security-TOKEN=x", &[], Err(Code::InvalidToken))]
#[case::one_of_six("X-Amz-Signature=x", &[], Err(Code::AuthorizationQueryParametersError))]
fn unsigned_or_signed_in_one_way(
    #[case] query: &str,
    #[case] headers: &[(&str, &str)],
    #[case] expected: Result<(), Code>,
) {
    assert_eq!(read(query, headers).map(|claim| assert!(claim.is_none())), expected);
}
