//! Bodies of uploads, received completely and then compared with the client's headers.

use std::io;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::{Bytes, BytesMut};
use futures::StreamExt as _;
use http::HeaderMap;
use s3s::checksum::ChecksumHasher;
use s3s::crypto::{Checksum as _, Md5};
use s3s::dto::{Checksum, PutObjectInput, StreamingBlob, UploadPartInput};
use s3s::{S3ErrorCode, S3Request, S3Result};

use super::blob::Home;
use super::data::{Data, unreadable};
use super::errors::{refuse, refuse_because};

/// A received body.
pub(super) struct Payload {
    pub(super) data: Data,
    /// The entity tag without quotes: the MD5 digest in hexadecimal.
    pub(super) etag: String,
    /// Checksums given by the client, or the one that Amazon S3 adds by default.
    pub(super) checksum: Checksum,
}

/// An input with a body.
pub(super) trait Upload {
    /// Takes the body from the input.
    fn take_body(&mut self) -> Option<StreamingBlob>;
    /// Returns the properties of the body in the headers.
    fn claims(&self) -> Claims;
}

/// Properties of a body, as given by the client.
#[derive(Default)]
pub(super) struct Claims {
    length: Option<i64>,
    md5: Option<String>,
    checksum: Checksum,
}

macro_rules! upload_input {
    ($input:ty) => {
        impl Upload for $input {
            fn take_body(&mut self) -> Option<StreamingBlob> {
                self.body.take()
            }

            fn claims(&self) -> Claims {
                let checksum = Checksum {
                    checksum_crc32: self.checksum_crc32.clone(),
                    checksum_crc32c: self.checksum_crc32c.clone(),
                    checksum_crc64nvme: self.checksum_crc64nvme.clone(),
                    checksum_sha1: self.checksum_sha1.clone(),
                    checksum_sha256: self.checksum_sha256.clone(),
                    ..Checksum::default()
                };
                Claims { length: self.content_length, md5: self.content_md5.clone(), checksum }
            }
        }
    };
}

upload_input!(PutObjectInput);
upload_input!(UploadPartInput);

impl Payload {
    /// Receives and checks the body of a request.
    ///
    /// # Errors
    /// `IncompleteBody` if it ends early or does not have the announced length; `InvalidDigest` and
    /// `BadDigest` if a checksum in a header or trailer is malformed or does not match.
    pub(super) async fn receive<I: Upload>(request: &mut S3Request<I>, home: Option<&Arc<Home>>) -> S3Result<Self> {
        let body = request.input.take_body();
        let data = match home {
            None => Data::Memory(collect(body).await?),
            Some(home) => Data::receive(home, body).await?,
        };
        let mut claims = request.input.claims();
        if let Some(trailers) = &request.trailing_headers {
            trailers.read(|trailers| claims.add_trailers(trailers));
        }
        if home.is_none() {
            return Self::check(data, &claims);
        }
        // Reading the data back may take a while.
        let checked = tokio::task::spawn_blocking(move || Self::check(data, &claims)).await;
        checked.map_err(|error| unreadable(io::Error::other(error)))?
    }

    /// Returns a body that comes from the store itself, without properties to check.
    ///
    /// # Errors
    /// `InternalError` if its bytes cannot be read.
    pub(super) fn trusted(data: Data) -> S3Result<Self> {
        let (md5, checksum) = digests(&data, &Checksum::default())?;
        Ok(Self { data, etag: hex::encode(md5), checksum })
    }

    fn check(data: Data, claims: &Claims) -> S3Result<Self> {
        if let Some(length) = claims.length
            && usize::try_from(length) != Ok(data.len())
        {
            return Err(refuse(S3ErrorCode::IncompleteBody));
        }
        let (md5, checksum) = digests(&data, &claims.checksum)?;
        if let Some(claimed) = &claims.md5 {
            let claimed = STANDARD.decode(claimed).ok().filter(|claimed| claimed.len() == md5.len());
            let Some(claimed) = claimed else { return Err(refuse(S3ErrorCode::InvalidDigest)) };
            if claimed != md5 {
                let message = "The Content-MD5 you specified did not match what we received.";
                return Err(refuse_because(S3ErrorCode::BadDigest, message));
            }
        }
        for (algorithm, claimed, actual) in pairs(&claims.checksum, &checksum) {
            if claimed.is_some() && claimed != actual {
                let message = format!("The {algorithm} you specified did not match the calculated checksum.");
                return Err(refuse_because(S3ErrorCode::BadDigest, message));
            }
        }
        Ok(Self { data, etag: hex::encode(md5), checksum })
    }
}

impl Claims {
    fn add_trailers(&mut self, trailers: &HeaderMap) {
        let read = |name: &str| trailers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let checksum = &mut self.checksum;
        for (slot, name) in [
            (&mut checksum.checksum_crc32, "x-amz-checksum-crc32"),
            (&mut checksum.checksum_crc32c, "x-amz-checksum-crc32c"),
            (&mut checksum.checksum_crc64nvme, "x-amz-checksum-crc64nvme"),
            (&mut checksum.checksum_sha1, "x-amz-checksum-sha1"),
            (&mut checksum.checksum_sha256, "x-amz-checksum-sha256"),
        ] {
            if let Some(value) = read(name) {
                *slot = Some(value);
            }
        }
    }
}

async fn collect(body: Option<StreamingBlob>) -> S3Result<Bytes> {
    let Some(mut body) = body else { return Ok(Bytes::new()) };
    let mut bytes = BytesMut::new();
    while let Some(chunk) = body.next().await {
        let chunk = chunk.map_err(|source| {
            let mut error = refuse(S3ErrorCode::IncompleteBody);
            error.set_source(source);
            error
        })?;
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes.freeze())
}

/// Computes MD5 and the wanted checksums, or CRC64NVME if none is wanted, like Amazon S3.
///
/// # Errors
/// `InternalError` if the bytes cannot be read.
fn digests(data: &Data, wanted: &Checksum) -> S3Result<([u8; 16], Checksum)> {
    let mut md5 = Md5::new();
    let mut hasher = ChecksumHasher {
        crc32: wanted.checksum_crc32.as_ref().map(|_| Default::default()),
        crc32c: wanted.checksum_crc32c.as_ref().map(|_| Default::default()),
        sha1: wanted.checksum_sha1.as_ref().map(|_| Default::default()),
        sha256: wanted.checksum_sha256.as_ref().map(|_| Default::default()),
        crc64nvme: wanted.checksum_crc64nvme.as_ref().map(|_| Default::default()),
    };
    let none = hasher.crc32.is_none() && hasher.crc32c.is_none() && hasher.sha1.is_none() && hasher.sha256.is_none();
    if none {
        hasher.crc64nvme = Some(Default::default());
    }
    let read = data.read(|chunk| {
        md5.update(chunk);
        hasher.update(chunk);
    });
    read.map_err(unreadable)?;
    Ok((md5.finalize(), hasher.finalize()))
}

type Pair<'a> = (&'static str, Option<&'a str>, Option<&'a str>);

fn pairs<'a>(left: &'a Checksum, right: &'a Checksum) -> [Pair<'a>; 5] {
    [
        ("CRC32", left.checksum_crc32.as_deref(), right.checksum_crc32.as_deref()),
        ("CRC32C", left.checksum_crc32c.as_deref(), right.checksum_crc32c.as_deref()),
        ("CRC64NVME", left.checksum_crc64nvme.as_deref(), right.checksum_crc64nvme.as_deref()),
        ("SHA1", left.checksum_sha1.as_deref(), right.checksum_sha1.as_deref()),
        ("SHA256", left.checksum_sha256.as_deref(), right.checksum_sha256.as_deref()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(claims: &Claims) -> Option<S3ErrorCode> {
        let checked = Payload::check(Data::Memory(Bytes::from_static(b"hello")), claims);
        checked.err().map(|error| error.code().clone())
    }

    #[test]
    fn a_body_of_another_length_is_incomplete() {
        let claims = Claims { length: Some(6), ..Claims::default() };
        assert_eq!(code(&claims), Some(S3ErrorCode::IncompleteBody));
    }

    #[test]
    fn digests_are_compared() {
        let md5 = |value: &str| Claims { md5: Some(value.to_owned()), ..Claims::default() };
        assert_eq!(code(&md5("XUFAKrxLKna5cZ2REBfFkg==")), None);
        assert_eq!(code(&md5("AAAAAAAAAAAAAAAAAAAAAA==")), Some(S3ErrorCode::BadDigest));
        assert_eq!(code(&md5("short")), Some(S3ErrorCode::InvalidDigest));
    }

    #[test]
    fn checksums_from_trailers_are_compared() {
        let trailing = |value: &str| {
            let mut trailers = HeaderMap::new();
            trailers.insert("x-amz-checksum-crc32", value.parse().expect("a header value"));
            let mut claims = Claims::default();
            claims.add_trailers(&trailers);
            claims
        };
        assert_eq!(code(&trailing("NhCmhg==")), None);
        assert_eq!(code(&trailing("AAAAAA==")), Some(S3ErrorCode::BadDigest));
    }

    #[test]
    fn a_body_without_claims_gets_the_checksum_of_the_store() {
        let payload = Payload::trusted(Data::Memory(Bytes::from_static(b"hello"))).expect("it is in memory");
        assert_eq!(payload.etag, "5d41402abc4b2a76b9719d911017c592");
        assert!(payload.checksum.checksum_crc64nvme.is_some());
        assert!(payload.checksum.checksum_crc32.is_none());
    }
}
