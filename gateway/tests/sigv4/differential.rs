//! The gateway's signatures compared with AWS's Rust library, over generated heads.
//! `PROPTEST_CASES` sets their number.

use std::borrow::Cow;
use std::time::Duration;

use aws_sigv4::http_request::{
    PayloadChecksumKind, PercentEncodingMode, SignableBody, SignableRequest, SignatureLocation, SigningSettings,
    UriPathNormalizationMode, sign,
};
use aws_sigv4::sign::v4;
use jiff::Timestamp;
use proptest::prelude::*;
use proptest::test_runner::Config;
use stowage_api::SecretKey;
use stowage_gateway::sigv4::{How, Outgoing, Signer};
use stowage_gateway::uri::{encode, encode_path, parse_query};

use super::Head;

#[derive(Clone, Debug)]
struct Given {
    method: &'static str,
    path: String,
    query: Vec<(String, String)>,
    headers: Vec<(String, String)>,
    payload: String,
    secret: String,
    id: String,
    region: String,
    second: i64,
    expires: Option<u64>,
}

impl Given {
    fn target(&self) -> String {
        let pairs =
            self.query.iter().map(|(name, value)| format!("{}={}", encode(name.as_bytes()), encode(value.as_bytes())));
        let query = pairs.collect::<Vec<_>>().join("&");
        format!("{}{}{query}", encode_path(self.path.as_bytes()), if query.is_empty() { "" } else { "?" })
    }

    fn host(&self) -> &'static str {
        if self.second % 2 == 0 { "s3.example.org" } else { "b.s3.example.org:8000" }
    }

    /// Returns the head as signed by AWS's library.
    fn signed(&self) -> (String, Vec<(String, String)>) {
        let identity = aws_sigv4_identity(&self.id, &self.secret);
        let mut settings = SigningSettings::default();
        settings.percent_encoding_mode = PercentEncodingMode::Single;
        settings.uri_path_normalization_mode = UriPathNormalizationMode::Disabled;
        settings.payload_checksum_kind = PayloadChecksumKind::XAmzSha256;
        settings.excluded_headers = Some(vec![Cow::Borrowed("user-agent")]);
        if let Some(expires) = self.expires {
            settings.signature_location = SignatureLocation::QueryParams;
            settings.expires_in = Some(Duration::from_secs(expires));
        }
        let time = std::time::UNIX_EPOCH + Duration::from_secs(self.second.unsigned_abs());
        let params = v4::SigningParams::builder()
            .identity(&identity)
            .region(&self.region)
            .name("s3")
            .time(time)
            .settings(settings)
            .build()
            .expect("all is given")
            .into();
        let mut headers = self.headers.clone();
        headers.push(("host".into(), self.host().into()));
        let uri = format!("http://{}{}", self.host(), self.target());
        let borrowed = headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let body = SignableBody::Precomputed(self.payload.clone());
        let request = SignableRequest::new(self.method, &uri, borrowed, body).expect("a request");
        let (instructions, _) = sign(request, &params).expect("it can be signed").into_parts();
        headers.extend(instructions.headers().map(|(name, value)| (name.to_owned(), value.to_owned())));
        let added = instructions.params().iter().map(|(name, value)| format!("{name}={}", encode(value.as_bytes())));
        let mut target = self.target();
        for pair in added {
            target.push(if target.contains('?') { '&' } else { '?' });
            target.push_str(&pair);
        }
        (target, headers)
    }

    fn head(&self) -> Head {
        let (target, headers) = self.signed();
        Head::read(self.method, &target, &headers)
    }
}

fn aws_sigv4_identity(id: &str, secret: &str) -> aws_smithy_runtime_api::client::identity::Identity {
    aws_sdk_s3::config::Credentials::new(id, secret, None, None, "test").into()
}

/// Visible ASCII, blanks and a few multi-byte characters. No tabs, which only the gateway treats as
/// blanks.
const VALUE: &str = "[ -~éß漢🦀]{0,24}";

fn header() -> impl Strategy<Value = (String, String)> {
    let known = ["content-type", "content-md5", "range", "cache-control", "x-amz-tagging", "x-amz-copy-source"];
    let hop = ["accept-encoding", "connection", "expect", "transfer-encoding", "te", "user-agent"];
    let name = prop_oneof![
        proptest::sample::select(known.to_vec()).prop_map(str::to_owned),
        proptest::sample::select(hop.to_vec()).prop_map(str::to_owned),
        "x-amz-meta-[a-c0-9_.]{0,8}",
        "[a-z][a-z0-9-]{0,8}z",
    ];
    (name, VALUE)
}

fn given() -> impl Strategy<Value = Given> {
    let method = proptest::sample::select(vec!["GET", "PUT", "HEAD", "POST", "DELETE"]);
    let any_path = any::<String>().prop_map(|path| format!("/{path}"));
    let path = prop_oneof!["/[ -~é漢🦀]{0,40}", "/[a-z]{3,8}/[a-z/.%+ ]{0,20}", any_path];
    let names = ["prefix", "delimiter", "list-type", "uploadId", "partNumber", "x-amz-checksum-crc32", "uploads"];
    let name = prop_oneof![proptest::sample::select(names.to_vec()).prop_map(str::to_owned), "[ -~é漢]{0,8}"];
    let query = proptest::collection::vec((name, any::<String>()), 0..6);
    let payload = prop_oneof![
        "[0-9a-f]{64}",
        Just("UNSIGNED-PAYLOAD".to_owned()),
        Just("STREAMING-AWS4-HMAC-SHA256-PAYLOAD".to_owned())
    ];
    let identity = ("[A-Za-z0-9/+é]{1,120}", "[A-Za-z0-9_-]{1,60}", "[a-z]{2}-[a-z]{1,8}-[0-9]");
    let when = (0i64..4_102_444_800, proptest::option::of(1u64..=604_800));
    (method, path, query, proptest::collection::vec(header(), 0..10), payload, identity, when).prop_map(
        |(method, path, query, headers, payload, (secret, id, region), (second, expires))| {
            let query = query.into_iter().filter(|(name, _)| name != "Signature").collect();
            Given { method, path, query, headers, payload, secret, id, region, second, expires }
        },
    )
}

proptest! {
    #![proptest_config(Config { cases: Config::default().cases.max(1_000), ..Config::default() })]

    #[test]
    fn what_aws_signs_is_verified(given in given()) {
        let head = given.head();
        let claim = head.claim();
        prop_assert_eq!(claim.time, Timestamp::from_second(given.second).expect("a time"));
        prop_assert_eq!(&claim.access_key_id, &given.id);
        let how = given.expires.map_or(How::Header, |s| How::Query { expires: Duration::from_secs(s) });
        prop_assert_eq!(claim.how, how);
        let verified = head.verify(&given.payload, &given.secret, &given.region);
        prop_assert!(verified.is_ok(), "{:?}", verified);
    }

    #[test]
    fn we_sign_as_aws_does(mut given in given()) {
        given.expires = None;
        given.headers.retain(|(name, _)| {
            ["range", "content-type", "content-md5"].contains(&name.as_str()) || name.starts_with("x-amz-")
        });
        let theirs = given.head();
        let mut ours = Head::read("GET", "/", &given.headers).headers;
        let signer = Signer::new(given.id.clone(), &SecretKey::new(given.secret.clone()), given.region.clone());
        let query = parse_query(given.target().split_once('?').map_or("", |(_, query)| query)).expect("a query");
        let (method, host, path) = (given.method, given.host(), given.path.as_bytes());
        let outgoing = Outgoing { method, host, path, query: &query, payload: &given.payload };
        let now = Timestamp::from_second(given.second).expect("a time");
        signer.sign(&outgoing, &mut ours, now).expect("it can be signed");
        prop_assert_eq!(ours, theirs.headers);
    }

    #[test]
    fn what_is_changed_is_refused(given in given(), what in 0..8, at: prop::sample::Index) {
        let mut head = given.head();
        let (mut payload, mut secret) = (given.payload.clone(), given.secret.clone());
        match what {
            0 => head.method.push('X'),
            1 => head.path.insert(at.index(head.path.len()) + 1, b'x'),
            2 => head.query.push(parse_query("acl").expect("a query").remove(0)),
            3 => { head.headers.insert("host", "s3.example.com".parse().expect("a value")); }
            4 => { head.headers.append("x-amz-meta-added", "1".parse().expect("a value")); }
            5 => { head.headers.remove("host"); }
            6 => secret.push('x'),
            _ => payload.push('0'),
        }
        prop_assert!(head.verify(&payload, &secret, &given.region).is_err());
    }
}
