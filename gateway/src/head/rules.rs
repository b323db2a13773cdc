//! The table of headers: the treatment of each, by operation.

use super::operation::Operation as O;
use crate::body::checksum::Checksum;

/// The treatment of a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rule {
    /// Forwarded with operations that create an object, with which the store keeps it. Dropped with
    /// others.
    Kept,
    /// Forwarded with these operations.
    Of(&'static [O], Elsewhere),
    /// Never forwarded: it is hop-by-hop, or meaningless to a store.
    Drop,
    /// Parsed elsewhere, and written again for the store by that code.
    Consume,
    /// `Content-Encoding`: kept with an object, without the transfer framing.
    Encoding,
    /// `COPY` or `REPLACE`, of a CopyObject.
    Directive,
    /// `x-amz-copy-source-range` of an UploadPartCopy, written from the parsed numbers. Refused
    /// with other operations: there a store copies the whole source.
    Range,
    /// `x-amz-tagging`: kept with an object, written from the parsed tags.
    Tags,
    /// An account's name, compared with the owner shown by ListBuckets. A store would compare it
    /// with the gateway's own account, and so reveal the account's name to a client that guesses
    /// it.
    Owner,
    /// `x-amz-acl`: dropped if it grants access to the owner alone.
    Acl,
    /// Denied: it would open, lock or redirect something that a tenant may not configure.
    Deny,
    /// A session token, which the gateway doesn't support.
    Token,
    /// A header of S3 that the gateway doesn't know.
    Unknown,
}

/// The treatment of a header with operations other than its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Elsewhere {
    /// Dropped: S3 ignores it there.
    Dropped,
    /// `NotImplemented`: it requests something that the operation doesn't do.
    Refused,
}

use Elsewhere::{Dropped, Refused};

/// Operations that create an object from the request, or begin to.
pub(super) const MAKE: &[O] = &[O::CopyObject, O::CreateMultipartUpload, O::PostObject, O::PutObject];
const COPY: &[O] = &[O::CopyObject, O::UploadPartCopy];
const READ: &[O] = &[O::GetObject, O::HeadObject];
const ATTRIBUTES: &[O] = &[O::GetObjectAttributes];
const LIST: &[O] = &[O::ListObjects, O::ListObjectsV2, O::ListObjectVersions];
/// Operations with a body, for which a digest may be given.
const BODY: &[O] =
    &[O::CompleteMultipartUpload, O::DeleteObjects, O::PostObject, O::PutObject, O::PutObjectTagging, O::UploadPart];
/// Operations that read or write content with an encryption key provided by the client.
const CUSTOMER_KEY: &[O] = &[
    O::CompleteMultipartUpload,
    O::CopyObject,
    O::CreateMultipartUpload,
    O::GetObject,
    O::GetObjectAttributes,
    O::HeadObject,
    O::ListParts,
    O::PostObject,
    O::PutObject,
    O::UploadPart,
    O::UploadPartCopy,
];
/// Operations that may be conditional on an object's ETag or absence.
const IF_MATCH: &[O] = &[
    O::CompleteMultipartUpload,
    O::CopyObject,
    O::CreateMultipartUpload,
    O::DeleteObject,
    O::GetObject,
    O::HeadObject,
    O::PutObject,
];

/// Headers by exact name.
const EXACT: [(&str, Rule); 54] = [
    ("cache-control", Rule::Kept),
    ("content-disposition", Rule::Kept),
    ("content-encoding", Rule::Encoding),
    ("content-language", Rule::Kept),
    ("content-length", Rule::Consume),
    ("content-md5", Rule::Of(BODY, Dropped)),
    ("content-type", Rule::Kept),
    ("expires", Rule::Kept),
    ("if-match", Rule::Of(IF_MATCH, Refused)),
    ("if-modified-since", Rule::Of(READ, Refused)),
    ("if-none-match", Rule::Of(IF_MATCH, Refused)),
    ("if-unmodified-since", Rule::Of(READ, Refused)),
    ("range", Rule::Of(READ, Dropped)),
    ("x-amz-acl", Rule::Acl),
    // Amazon's SDK for C++ sends the version of the S3 API, of which there is only one.
    ("x-amz-api-version", Rule::Drop),
    ("x-amz-bypass-governance-retention", Rule::Deny),
    ("x-amz-checksum-algorithm", Rule::Of(MAKE, Dropped)),
    ("x-amz-checksum-mode", Rule::Of(READ, Dropped)),
    ("x-amz-checksum-type", Rule::Of(&[O::CompleteMultipartUpload, O::CreateMultipartUpload], Dropped)),
    ("x-amz-content-sha256", Rule::Consume),
    ("x-amz-copy-source", Rule::Consume),
    ("x-amz-copy-source-if-match", Rule::Of(COPY, Refused)),
    ("x-amz-copy-source-if-modified-since", Rule::Of(COPY, Refused)),
    ("x-amz-copy-source-if-none-match", Rule::Of(COPY, Refused)),
    ("x-amz-copy-source-if-unmodified-since", Rule::Of(COPY, Refused)),
    ("x-amz-copy-source-range", Rule::Range),
    ("x-amz-date", Rule::Consume),
    ("x-amz-decoded-content-length", Rule::Consume),
    ("x-amz-expected-bucket-owner", Rule::Owner),
    ("x-amz-if-match-initiated-time", Rule::Of(&[O::AbortMultipartUpload], Refused)),
    ("x-amz-if-match-last-modified-time", Rule::Of(&[O::DeleteObject], Refused)),
    ("x-amz-if-match-size", Rule::Of(&[O::DeleteObject], Refused)),
    ("x-amz-max-parts", Rule::Of(ATTRIBUTES, Dropped)),
    ("x-amz-metadata-directive", Rule::Directive),
    ("x-amz-mfa", Rule::Deny),
    ("x-amz-mp-object-size", Rule::Of(&[O::CompleteMultipartUpload], Dropped)),
    ("x-amz-object-attributes", Rule::Of(ATTRIBUTES, Dropped)),
    ("x-amz-object-ownership", Rule::Deny),
    ("x-amz-optional-object-attributes", Rule::Of(LIST, Dropped)),
    ("x-amz-part-number-marker", Rule::Of(ATTRIBUTES, Dropped)),
    ("x-amz-request-payer", Rule::Drop),
    ("x-amz-sdk-checksum-algorithm", Rule::Of(BODY, Dropped)),
    ("x-amz-security-token", Rule::Token),
    ("x-amz-server-side-encryption", Rule::Kept),
    // It concerns keys of a key management service, which are denied.
    ("x-amz-server-side-encryption-bucket-key-enabled", Rule::Drop),
    ("x-amz-source-expected-bucket-owner", Rule::Owner),
    ("x-amz-storage-class", Rule::Kept),
    ("x-amz-tagging", Rule::Tags),
    ("x-amz-tagging-directive", Rule::Directive),
    // Amazon's common runtime (CRT) requests a trailing checksum of the response with it.
    ("x-amz-te", Rule::Drop),
    ("x-amz-trailer", Rule::Consume),
    ("x-amz-user-agent", Rule::Drop),
    ("x-amz-website-redirect-location", Rule::Deny),
    ("x-amzn-trace-id", Rule::Drop),
];

/// Headers by prefix.
const PREFIXES: [(&str, Rule); 9] = [
    ("x-amz-copy-source-server-side-encryption-customer-", Rule::Of(COPY, Refused)),
    ("x-amz-grant-", Rule::Deny),
    // MinIO and its forks unpack the body as an archive into objects of any name.
    ("x-amz-meta-minio-snowball-", Rule::Deny),
    ("x-amz-meta-snowball-auto-extract", Rule::Deny),
    ("x-amz-meta-", Rule::Kept),
    ("x-amz-object-lock-", Rule::Deny),
    ("x-amz-server-side-encryption-customer-", Rule::Of(CUSTOMER_KEY, Dropped)),
    // Keys of a key management service belong to the store's account, not to the tenant.
    ("x-amz-server-side-encryption-", Rule::Deny),
    ("x-amz-", Rule::Unknown),
];

/// Returns the rule for a header by its name in lower case.
pub(super) fn rule(name: &str) -> Rule {
    if let Ok(at) = EXACT.binary_search_by_key(&name, |(exact, _)| exact) {
        return EXACT[at].1;
    }
    if Checksum::ALL.iter().any(|checksum| checksum.header() == name) {
        return Rule::Of(BODY, Dropped);
    }
    let of_prefix = PREFIXES.iter().find(|(prefix, _)| name.starts_with(prefix));
    of_prefix.map_or(Rule::Drop, |(_, rule)| *rule)
}

/// Returns all names of the table, to try each of them: the exact ones, those of checksums, and one
/// for each prefix.
pub fn header_names() -> impl Iterator<Item = String> {
    let exact = EXACT.iter().map(|(name, _)| (*name).to_owned());
    let checksums = Checksum::ALL.iter().map(|checksum| checksum.header().to_owned());
    let of_prefix = PREFIXES.iter().map(|(prefix, _)| match prefix.strip_suffix('-') {
        Some(prefix) => format!("{prefix}-key"),
        None => (*prefix).to_owned(),
    });
    exact.chain(checksums).chain(of_prefix)
}

/// Returns true if the table forwards a header of this name, in lower case, with this operation.
/// [`super::forwarded`] decides about its value.
#[must_use]
pub fn reaches_store(operation: O, name: &str) -> bool {
    match rule(name) {
        Rule::Kept | Rule::Encoding | Rule::Tags => MAKE.contains(&operation),
        Rule::Of(operations, _) => operations.contains(&operation),
        Rule::Directive => operation == O::CopyObject,
        Rule::Range => operation == O::UploadPartCopy,
        Rule::Acl | Rule::Consume | Rule::Deny | Rule::Drop | Rule::Owner | Rule::Token | Rule::Unknown => false,
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderName, HeaderValue};

    use super::*;
    use crate::head::forwarded;

    #[test]
    fn the_table_is_in_order() {
        assert!(EXACT.is_sorted_by_key(|(name, _)| name));
    }

    /// Returns a valid value for the header of this name.
    fn value(name: &str) -> &'static str {
        match rule(name) {
            Rule::Directive => "COPY",
            Rule::Range => "bytes=0-1",
            Rule::Tags => "a=b",
            _ => "v",
        }
    }

    // covers: 6.headers
    #[test]
    fn what_reaches_a_store_is_what_is_forwarded() {
        let others: &[O] = &[O::AbortMultipartUpload, O::DeleteObjectTagging, O::HeadBucket, O::ListMultipartUploads];
        let operations = [MAKE, COPY, READ, ATTRIBUTES, LIST, BODY, CUSTOMER_KEY, IF_MATCH, others].concat();
        let names: Vec<String> = header_names().collect();
        assert!(names.len() > EXACT.len() + PREFIXES.len());
        let mut reached = 0;
        for operation in operations {
            for name in &names {
                let header = HeaderName::try_from(name).expect("a name");
                let headers = HeaderMap::from_iter([(header, HeaderValue::from_static(value(name)))]);
                let goes = forwarded(operation, &headers).is_ok_and(|forwarded| forwarded.contains_key(name));
                assert_eq!(reaches_store(operation, name), goes, "{name} with {operation:?}");
                reached += usize::from(goes);
            }
        }
        assert!(reached > 100, "{reached}");
    }
}
