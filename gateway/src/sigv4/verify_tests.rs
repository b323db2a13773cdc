use http::{HeaderMap, HeaderValue};
use rstest::rstest;
use stowage_api::SecretKey;

use super::super::raw::AMZ_DATE;
use super::super::secret;
use super::*;
use crate::uri::{Pair, parse_query};

const REGION: &str = "us-east-1";
const PAYLOAD: &str = "UNSIGNED-PAYLOAD";
const TIME: &str = "2013-05-24T00:00:00Z";

fn time(text: &str) -> Timestamp {
    text.parse().expect("a time")
}

fn secret() -> SigningSecret {
    SigningSecret::new(&SecretKey::new("s3cr3t".into()))
}

/// A client that signs its requests as configured.
#[derive(Clone)]
struct Client {
    query: Vec<Pair>,
    headers: HeaderMap,
    claim: Claim,
    payload: &'static str,
}

impl Client {
    fn new(how: How, signed: &[&'static str]) -> Self {
        let pairs: [(&'static str, HeaderValue); 4] = [
            ("host", HeaderValue::from_static("s3.example.org")),
            ("connection", HeaderValue::from_static("close, te")),
            ("x-amz-meta-a", HeaderValue::from_bytes(b"caf\xc3\xa9  \xff").expect("a value")),
            ("x-amz-meta-a", HeaderValue::from_static("")),
        ];
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(name, value);
        }
        if how == How::Header {
            headers.insert(AMZ_DATE, HeaderValue::from_static("20130524T000000Z"));
            headers.insert(AMZ_CONTENT_SHA256, HeaderValue::from_static(PAYLOAD));
        }
        let mut signed_headers: Vec<_> = signed.iter().map(|name| HeaderName::from_static(name)).collect();
        signed_headers.sort_unstable_by(|a, b| a.as_str().cmp(b.as_str()));
        let scope = Scope { date: Day::of(time(TIME)), region: REGION.into() };
        let signature = Signature::parse(&"0".repeat(64)).expect("digits");
        let claim = Claim { access_key_id: "AK".into(), scope, time: time(TIME), how, signed_headers, signature };
        let query = parse_query("x-amz-meta-b=1&X-Amz-Signature=0").expect("a query");
        Self { query, headers, claim, payload: PAYLOAD }
    }

    fn raw(&self) -> Raw<'_> {
        Raw { method: "PUT", path: b"/bucket/a//b/../\xff", query: &self.query, headers: &self.headers }
    }

    fn sign(mut self) -> Self {
        let Raw { method, path, query, headers } = self.raw();
        let signed = &self.claim.signed_headers;
        let canonical = Canonical { method, path, query, headers, signed, payload: self.payload };
        let text = canonical.string_to_sign(self.claim.time, &self.claim.scope);
        self.claim.signature = secret::sign(&secret().key(&self.claim.scope), &text);
        self
    }

    fn at(&self, now: &str) -> Result<Verified, Refusal> {
        verify(&self.raw(), &self.claim, self.payload, &secret(), REGION, time(now))
    }

    fn code(&self, now: &str) -> Option<Code> {
        let code = self.at(now).err().map(|refusal| refusal.code);
        let unknown = refuse_unknown(&self.raw(), &self.claim, self.payload, REGION, time(now)).code;
        assert!(
            code == Some(unknown) || unknown == Code::InvalidAccessKeyId,
            "one without a key learns the same: {code:?}, {unknown:?}"
        );
        code
    }
}

const SIGNED: &[&str] = &["host", "x-amz-date", "x-amz-meta-a"];
const QUERY: How = How::Query { expires: std::time::Duration::from_secs(3600) };

#[test]
fn what_is_signed_is_believed() {
    let all = [SIGNED, &["connection", "x-amz-content-sha256"]].concat();
    for signed in [SIGNED, &all] {
        assert_eq!(Client::new(How::Header, signed).sign().code(TIME), None);
    }
    assert_eq!(Client::new(QUERY, &["host", "x-amz-meta-a"]).sign().code(TIME), None);
}

#[rstest]
#[case("2013-05-23T23:45:00Z", None, None)]
#[case("2013-05-23T23:44:59Z", Some(Code::RequestTimeTooSkewed), Some(Code::AccessDenied))]
#[case("2013-05-24T00:15:00Z", None, None)]
#[case("2013-05-24T00:15:01Z", Some(Code::RequestTimeTooSkewed), None)]
#[case("2013-05-24T01:00:00Z", Some(Code::RequestTimeTooSkewed), None)]
#[case("2013-05-24T01:00:01Z", Some(Code::RequestTimeTooSkewed), Some(Code::AccessDenied))]
fn a_signature_has_its_time(#[case] now: &str, #[case] header: Option<Code>, #[case] query: Option<Code>) {
    assert_eq!(Client::new(How::Header, SIGNED).sign().code(now), header);
    assert_eq!(Client::new(QUERY, &["host", "x-amz-meta-a"]).sign().code(now), query);
}

#[rstest]
#[case(How::Header, Code::AuthorizationHeaderMalformed)]
#[case(QUERY, Code::AuthorizationQueryParametersError)]
fn a_scope_is_of_our_region_and_of_the_day(#[case] how: How, #[case] expected: Code) {
    let mut elsewhere = Client::new(how, SIGNED);
    elsewhere.claim.scope.region = "eu-west-1".into();
    let refusal = elsewhere.sign().at(TIME).expect_err("another region");
    assert_eq!((refusal.code, refusal.details), (expected, vec![("Region", REGION.to_owned())]));
    assert!(refusal.message.ends_with("the region 'eu-west-1' is wrong; expecting 'us-east-1'"));

    let mut yesterday = Client::new(how, SIGNED);
    yesterday.claim.scope.date = Day::of(time("2013-05-23T23:59:59Z"));
    assert_eq!(yesterday.sign().code(TIME), Some(expected));
}

#[rstest]
#[case(How::Header, &["x-amz-date", "x-amz-meta-a"], "host")]
#[case(How::Header, &["host", "x-amz-meta-a"], "x-amz-date")]
#[case(How::Header, &["connection"], "host, x-amz-date, x-amz-meta-a")]
#[case(QUERY, &["host"], "x-amz-meta-a")]
fn every_header_with_a_meaning_is_signed(#[case] how: How, #[case] signed: &[&'static str], #[case] missing: &str) {
    let refusal = Client::new(how, signed).sign().at(TIME).expect_err("not all is signed");
    assert_eq!(refusal.code, Code::AccessDenied);
    assert_eq!(refusal.details, [("HeadersNotSigned", missing.to_owned())]);
}

#[test]
fn a_hash_in_a_header_is_bound_in_header_auth_alone() {
    let mut other = Client::new(How::Header, SIGNED);
    other.headers.insert(AMZ_CONTENT_SHA256, HeaderValue::from_static("STREAMING-UNSIGNED-PAYLOAD-TRAILER"));
    assert_eq!(other.sign().code(TIME), Some(Code::SignatureDoesNotMatch), "the last line says something else");

    let mut presigned = Client::new(QUERY, &["host", "x-amz-meta-a"]);
    presigned.headers.insert(AMZ_CONTENT_SHA256, HeaderValue::from_static(PAYLOAD));
    assert_eq!(presigned.sign().code(TIME), Some(Code::AccessDenied));
    let pinned = Client::new(QUERY, &["host", "x-amz-meta-a", "x-amz-content-sha256"]);
    let pin = |mut client: Client| {
        client.headers.insert(AMZ_CONTENT_SHA256, HeaderValue::from_static("0f"));
        client.sign()
    };
    assert_eq!(pin(pinned.clone()).code(TIME), None, "signed with the word on the last line");
    assert_eq!(pin(Client { payload: "0f", ..pinned }).code(TIME), None, "signed with the hash there");
}

#[test]
fn a_signed_header_is_there() {
    let mut client = Client::new(How::Header, &["host", "x-amz-date", "x-amz-meta-a", "te"]);
    assert_eq!(client.clone().sign().code(TIME), Some(Code::SignatureDoesNotMatch));
    client.headers.insert("te", HeaderValue::from_static(""));
    assert_eq!(client.sign().code(TIME), None, "an empty one is there");
}

#[test]
fn what_was_signed_otherwise_is_refused() {
    let good = Client::new(How::Header, SIGNED).sign();
    let mut changed: Vec<Client> = (0..5).map(|_| good.clone()).collect();
    if let [header, order, name, value, scope] = &mut changed[..] {
        header.headers.append("x-amz-meta-a", HeaderValue::from_static(""));
        order.headers.remove("x-amz-meta-a");
        order.headers.append("x-amz-meta-a", HeaderValue::from_static(""));
        order.headers.append("x-amz-meta-a", HeaderValue::from_bytes(b"caf\xc3\xa9 \xff").expect("a value"));
        name.query = parse_query("x-amz-meta-c=1").expect("a query");
        value.query = parse_query("x-amz-meta-b=2").expect("a query");
        scope.claim.time = time("2013-05-24T00:00:01Z");
    }
    for client in changed {
        assert_eq!(client.code(TIME), Some(Code::SignatureDoesNotMatch));
    }
}

#[test]
fn nobody_has_the_key_of_nobody() {
    let mut client = Client::new(How::Header, SIGNED).sign();
    let Raw { method, path, query, headers } = client.raw();
    let signed = &client.claim.signed_headers;
    let canonical = Canonical { method, path, query, headers, signed, payload: PAYLOAD };
    let text = canonical.string_to_sign(client.claim.time, &client.claim.scope);
    client.claim.signature = secret::sign(&SigningSecret::of_nobody().key(&client.claim.scope), &text);
    let refusal = refuse_unknown(&client.raw(), &client.claim, PAYLOAD, REGION, time(TIME));
    assert_eq!(refusal.code, Code::InvalidAccessKeyId);
}
