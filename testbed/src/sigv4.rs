//! Signature Version 4 by Amazon's crate, without any code of the gateway, so that client and
//! gateway can't share a mistake.
//!
//! The crate signs requests in their headers, and computes every key and signature. This module
//! implements two things that it can't do. Presigned URLs: the crate requires a UTF-8 query, and
//! queries here may hold any bytes. Policies of forms, which the crate doesn't support.
//!
//! Sources: "Authenticating Requests: Using Query Parameters" and "Browser-Based Uploads Using
//! POST" in Amazon S3's API reference.

use std::collections::BTreeMap;
use std::time::SystemTime;

use anyhow::{Context as _, Result};
use aws_sdk_s3::config::Credentials;
use aws_sigv4::http_request::{
    PayloadChecksumKind, PercentEncodingMode, SignableBody, SignableRequest, SigningSettings, UriPathNormalizationMode,
    sign,
};
use aws_sigv4::sign::v4::{SigningParams, calculate_signature, generate_signing_key};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::ByteString;
use ring::digest::{SHA256, digest};
use serde_json::json;

use crate::ask::Ask;
use crate::store::Key;

const ALGORITHM: &str = "AWS4-HMAC-SHA256";
const UNSIGNED: &str = "UNSIGNED-PAYLOAD";
/// Lifetime of a presigned URL and of a form's policy.
const GOOD_FOR: SignedDuration = SignedDuration::from_mins(5);
/// Boundary between the parts of a form.
const BOUNDARY: &str = "stowage-e2e-form";

/// Key, region and time of a signature.
pub struct Signer<'a> {
    /// The key.
    pub key: &'a Key,
    /// The region in the signature's scope.
    pub region: &'a str,
    /// The time of the signature.
    pub now: Timestamp,
}

impl Signer<'_> {
    /// Signs a request to this host in its headers, including the body.
    ///
    /// # Errors
    /// Fails if a header or the target is invalid.
    pub fn in_headers(&self, mut ask: Ask, host: &str) -> Result<Ask> {
        let failed = "a request can't be signed";
        let identity = Credentials::new(&self.key.id, &self.key.secret, None, None, "testbed").into();
        let parameters = SigningParams::builder().identity(&identity).region(self.region).name("s3");
        let parameters = parameters.time(self.time()).settings(settings()).build().context(failed)?.into();
        let (path, query) = ask.target.split_once('?').unwrap_or((&ask.target, ""));
        let target = format!("{}?{}", encoded(&decoded(path), "/"), canonical_query(query));
        let headers = signed_headers(&ask, host).into_iter();
        let signable = SignableRequest::new(ask.method, target, headers, SignableBody::Bytes(&ask.body));
        let signed = sign(signable.context(failed)?, &parameters).context(failed)?;
        let (headers, _) = signed.into_parts().0.into_parts();
        ask.headers.extend(headers.iter().map(|header| (header.name(), header.value().to_owned())));
        Ok(ask)
    }

    /// Signs a request to this host in its query, like a presigned URL: the body is not signed.
    pub fn in_query(&self, ask: Ask, host: &str) -> Ask {
        self.presigned(ask, host, GOOD_FOR)
    }

    fn presigned(&self, mut ask: Ask, host: &str, good_for: SignedDuration) -> Ask {
        let names = signed_headers(&ask, host).into_keys().collect::<Vec<_>>().join(";");
        let parameters = [
            ("X-Amz-Algorithm", ALGORITHM.to_owned()),
            ("X-Amz-Credential", self.credential()),
            ("X-Amz-Date", self.stamp()),
            ("X-Amz-Expires", good_for.as_secs().to_string()),
            ("X-Amz-SignedHeaders", names),
        ];
        for (name, value) in parameters {
            add_parameter(&mut ask.target, name, &value);
        }
        let signature = self.signature(&ask, host);
        add_parameter(&mut ask.target, "X-Amz-Signature", &signature);
        ask
    }

    /// Creates an upload by a form with a policy that allows every key of the bucket.
    pub fn form(&self, bucket: &str, key: &str, filename: &str, file: &str) -> Ask {
        let expiration = self.now + GOOD_FOR;
        let policy = json!({
            "expiration": expiration.strftime("%Y-%m-%dT%H:%M:%S.000Z").to_string(),
            "conditions": [
                {"bucket": bucket},
                ["starts-with", "$key", ""],
                {"x-amz-algorithm": ALGORITHM},
                {"x-amz-credential": self.credential()},
                {"x-amz-date": self.stamp()},
            ],
        });
        let (policy, signature) = self.policy(policy.to_string().as_bytes());
        let fields: [(&str, &str); 6] = [
            ("key", key),
            ("x-amz-algorithm", ALGORITHM),
            ("x-amz-credential", &self.credential()),
            ("x-amz-date", &self.stamp()),
            ("policy", &policy),
            ("x-amz-signature", &signature),
        ];
        let part = |name: &str| format!("--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"{name}\"");
        let mut body: String = fields.map(|(name, value)| format!("{}\r\n\r\n{value}\r\n", part(name))).concat();
        body.push_str(&format!("{}; filename=\"{filename}\"\r\n", part("file")));
        body.push_str(&format!("Content-Type: text/plain\r\n\r\n{file}\r\n--{BOUNDARY}--\r\n"));
        let content_type = ("content-type", format!("multipart/form-data; boundary={BOUNDARY}"));
        Ask { headers: vec![content_type], body: body.into_bytes(), ..Ask::new("POST", format!("/{bucket}")) }
    }

    /// Returns a form's policy in Base64, and its signature.
    pub fn policy(&self, policy: &[u8]) -> (String, String) {
        let policy = base64(policy);
        let signature = calculate_signature(self.signing_key(), policy.as_bytes());
        (policy, signature)
    }

    /// Returns the time in the format of `x-amz-date`.
    pub fn stamp(&self) -> String {
        self.now.strftime("%Y%m%dT%H%M%SZ").to_string()
    }

    fn scope(&self) -> String {
        format!("{}/{}/s3/aws4_request", self.now.strftime("%Y%m%d"), self.region)
    }

    /// Returns the credential: key id and scope.
    pub fn credential(&self) -> String {
        format!("{}/{}", self.key.id, self.scope())
    }

    fn time(&self) -> SystemTime {
        self.now.into()
    }

    fn signing_key(&self) -> impl AsRef<[u8]> {
        generate_signing_key(&self.key.secret, self.time(), self.region, "s3")
    }

    /// Returns the signature of a request with an unsigned body.
    fn signature(&self, ask: &Ask, host: &str) -> String {
        let (path, query) = ask.target.split_once('?').unwrap_or((&ask.target, ""));
        let headers = signed_headers(ask, host);
        let lines: String = headers.iter().map(|(name, value)| format!("{name}:{value}\n")).collect();
        let names = headers.into_keys().collect::<Vec<_>>().join(";");
        let path = encoded(&decoded(path), "/");
        let request = [ask.method, &path, &canonical_query(query), &lines, &names, UNSIGNED].join("\n");
        let hash = hex::encode(digest(&SHA256, request.as_bytes()));
        let text = [ALGORITHM, &self.stamp(), &self.scope(), &hash].join("\n");
        calculate_signature(self.signing_key(), text.as_bytes())
    }
}

/// Returns the settings for S3: paths are not normalized, and a header has the hash of the body.
fn settings() -> SigningSettings {
    let mut settings = SigningSettings::default();
    settings.percent_encoding_mode = PercentEncodingMode::Single;
    settings.payload_checksum_kind = PayloadChecksumKind::XAmzSha256;
    settings.uri_path_normalization_mode = UriPathNormalizationMode::Disabled;
    settings
}

fn signed_headers<'a>(ask: &'a Ask, host: &'a str) -> BTreeMap<&'a str, &'a str> {
    let host = ask.host.as_deref().unwrap_or(host);
    ask.headers.iter().map(|(name, value)| (*name, value.as_str())).chain([("host", host)]).collect()
}

fn canonical_query(query: &str) -> String {
    let pairs = query.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        (encoded(&decoded(name), ""), encoded(&decoded(value), ""))
    });
    let mut pairs: Vec<_> = pairs.collect();
    pairs.sort();
    pairs.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("&")
}

fn add_parameter(target: &mut String, name: &str, value: &str) {
    let before = if target.contains('?') { '&' } else { '?' };
    target.push_str(&format!("{before}{name}={}", encoded(value.as_bytes(), "")));
}

/// Percent-encodes all bytes but unreserved characters and those in `besides`.
pub fn encoded(text: &[u8], besides: &str) -> String {
    let is_plain =
        |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) || besides.as_bytes().contains(&byte);
    let one = |byte: &u8| if is_plain(*byte) { char::from(*byte).to_string() } else { format!("%{byte:02X}") };
    text.iter().map(one).collect()
}

/// Decodes a percent-encoded text.
fn decoded(text: &str) -> Vec<u8> {
    let mut rest = text.as_bytes();
    let mut bytes = Vec::new();
    while let Some((first, behind)) = rest.split_first() {
        let digits = behind.get(..2).filter(|_| *first == b'%').and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &behind[2..];
            }
            None => {
                bytes.push(*first);
                rest = behind;
            }
        }
    }
    bytes
}

/// Returns the SHA-256 of `bytes` in Base64, as in the header `x-amz-checksum-sha256`.
pub fn checksum(bytes: &[u8]) -> String {
    base64(digest(&SHA256, bytes).as_ref())
}

/// Encodes bytes in Base64, by Kubernetes' `ByteString`.
fn base64(bytes: &[u8]) -> String {
    let written = serde_json::to_value(ByteString(bytes.to_vec()));
    written.ok().and_then(|text| Some(text.as_str()?.to_owned())).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The key of the examples in Amazon's documents.
    fn example() -> Key {
        Key { id: "AKIAIOSFODNN7EXAMPLE".to_owned(), secret: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY".to_owned() }
    }

    fn signer(key: &Key) -> Signer<'_> {
        Signer { key, region: "us-east-1", now: "2013-05-24T00:00:00Z".parse().unwrap() }
    }

    fn authorization(signed: Ask) -> String {
        let mut headers = signed.headers.into_iter();
        headers.find_map(|(name, value)| (name == "authorization").then_some(value)).unwrap()
    }

    const HOST: &str = "examplebucket.s3.amazonaws.com";

    /// "GET Object" and "Get Bucket (List Objects)" of the first document.
    #[test]
    fn signatures_in_headers_are_those_of_the_documents() {
        let range = vec![("range", "bytes=0-9".to_owned())];
        let get = Ask { headers: range, ..Ask::new("GET", "/test.txt".to_owned()) };
        let list = Ask::new("GET", "/?max-keys=2&prefix=J".to_owned());
        let expected = [
            (get, "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"),
            (list, "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"),
        ];
        for (ask, signature) in expected {
            let value = authorization(signer(&example()).in_headers(ask, HOST).unwrap());
            assert!(value.ends_with(&format!("Signature={signature}")), "{value}");
        }
    }

    /// "PUT Object" of the same document, with a path that has to be encoded.
    #[test]
    fn a_path_is_signed_as_what_it_stands_for() {
        let headers = vec![
            ("date", "Fri, 24 May 2013 00:00:00 GMT".to_owned()),
            ("x-amz-storage-class", "REDUCED_REDUNDANCY".to_owned()),
        ];
        let body = b"Welcome to Amazon S3.".to_vec();
        let put = Ask { headers, body, ..Ask::new("PUT", "/test$file.text".to_owned()) };
        let value = authorization(signer(&example()).in_headers(put, HOST).unwrap());
        assert!(value.ends_with("98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"), "{value}");
    }

    /// The example of the document on query parameters.
    #[test]
    fn a_presigned_url_is_that_of_the_documents() {
        let day = SignedDuration::from_hours(24);
        let presigned = signer(&example()).presigned(Ask::new("GET", "/test.txt".to_owned()), HOST, day);
        let expected = "X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404";
        assert!(presigned.target.ends_with(expected), "{}", presigned.target);
    }

    #[test]
    fn what_is_encoded_is_decoded_to_what_it_was() {
        for text in ["a/../b c%2F", "ä%", "%4", "%zz", ""] {
            assert_eq!(decoded(&encoded(text.as_bytes(), "/")), text.as_bytes());
        }
        assert_eq!(decoded("a%2f%2E%zz%4"), b"a/.%zz%4");
    }

    #[test]
    fn a_checksum_is_in_base64() {
        assert_eq!(checksum(b""), "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=");
    }
}
