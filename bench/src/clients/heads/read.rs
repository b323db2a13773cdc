//! A second parser of requests, independent of the gateway's, with its own table of operations.

use stowage_gateway::head::Operation;

use super::recorder::Received;

/// Name and value of a query parameter.
type Pair = (Vec<u8>, Vec<u8>);

/// A received request.
#[derive(Clone, Debug)]
pub(super) struct Read {
    pub(super) operation: Operation,
    pub(super) bucket: String,
    pub(super) key: Option<Vec<u8>>,
    /// Names and values, decoded.
    pub(super) query: Vec<Pair>,
    /// Names in lower case.
    pub(super) headers: Vec<(String, Vec<u8>)>,
    pub(super) body: Vec<u8>,
}

/// An operation: its method, true if it has a key, required parameters, and optional parameters.
type Row = (Operation, &'static str, bool, &'static [&'static str], &'static [&'static str]);

const LIST: &[&str] = &["delimiter", "encoding-type", "marker", "max-keys", "prefix"];
const READ: &[&str] = &[
    "partNumber",
    "response-cache-control",
    "response-content-disposition",
    "response-content-encoding",
    "response-content-language",
    "response-content-type",
    "response-expires",
    "versionId",
];
const LIST_2: &[&str] =
    &["continuation-token", "delimiter", "encoding-type", "fetch-owner", "max-keys", "prefix", "start-after"];
const LIST_VERSIONS: &[&str] = &["delimiter", "encoding-type", "key-marker", "max-keys", "prefix", "version-id-marker"];
const LIST_UPLOADS: &[&str] =
    &["delimiter", "encoding-type", "key-marker", "max-uploads", "prefix", "upload-id-marker"];

/// Operations on data (Amazon S3's API reference). Operations on a bucket's configuration are left
/// out, except for the one that only a store can answer.
#[rustfmt::skip]
const ROWS: [Row; 20] = [
    (Operation::HeadBucket,              "HEAD",   false, &[],                         &[]),
    (Operation::GetBucketVersioning,     "GET",    false, &["versioning"],             &[]),
    (Operation::ListObjects,             "GET",    false, &[],                         LIST),
    (Operation::ListObjectsV2,           "GET",    false, &["list-type"],              LIST_2),
    (Operation::ListObjectVersions,      "GET",    false, &["versions"],               LIST_VERSIONS),
    (Operation::ListMultipartUploads,    "GET",    false, &["uploads"],                LIST_UPLOADS),
    (Operation::DeleteObjects,           "POST",   false, &["delete"],                 &[]),
    (Operation::GetObject,               "GET",    true,  &[],                         READ),
    (Operation::HeadObject,              "HEAD",   true,  &[],                         READ),
    (Operation::GetObjectAttributes,     "GET",    true,  &["attributes"],             &["versionId"]),
    (Operation::GetObjectTagging,        "GET",    true,  &["tagging"],                &["versionId"]),
    (Operation::PutObjectTagging,        "PUT",    true,  &["tagging"],                &["versionId"]),
    (Operation::DeleteObjectTagging,     "DELETE", true,  &["tagging"],                &["versionId"]),
    (Operation::ListParts,               "GET",    true,  &["uploadId"],               &["encoding-type", "max-parts", "part-number-marker"]),
    (Operation::PutObject,               "PUT",    true,  &[],                         &[]),
    (Operation::UploadPart,              "PUT",    true,  &["partNumber", "uploadId"], &[]),
    (Operation::CreateMultipartUpload,   "POST",   true,  &["uploads"],                &[]),
    (Operation::CompleteMultipartUpload, "POST",   true,  &["uploadId"],               &[]),
    (Operation::AbortMultipartUpload,    "DELETE", true,  &["uploadId"],               &[]),
    (Operation::DeleteObject,            "DELETE", true,  &[],                         &["versionId"]),
];

impl Read {
    /// Parses a request.
    ///
    /// # Errors
    /// Names the part that is malformed, or a parameter that no operation on data has.
    pub(super) fn of(received: &Received) -> Result<Self, String> {
        let head = String::from_utf8(received.head.clone()).or_else(|_| {
            let bytes = received.head.iter().map(|byte| char::from(*byte)).collect::<String>();
            // Header values may have bytes beyond ASCII, but not the request line.
            if bytes.lines().next().is_some_and(str::is_ascii) { Ok(bytes) } else { Err("a line that is not ASCII") }
        })?;
        let mut lines = head.split("\r\n");
        let line = lines.next().unwrap_or_default();
        let [method, target, "HTTP/1.1"] = line.split(' ').collect::<Vec<_>>()[..] else {
            return Err(format!("the line {line:?}"));
        };
        let headers = lines.map(header).collect::<Result<Vec<_>, _>>()?;
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let (bucket, key) = place(path)?;
        let query = parameters(query)?;
        let operation = operation(method, key.is_some(), &query, headers.iter().any(|(name, _)| name == SOURCE))?;
        Ok(Self { operation, bucket, key, query, headers, body: received.body.clone() })
    }

    /// Returns the values of a header.
    pub(super) fn values(&self, name: &str) -> Vec<&[u8]> {
        self.headers.iter().filter(|(found, _)| found == name).map(|(_, value)| value.as_slice()).collect()
    }

    /// Returns the value of a parameter.
    pub(super) fn parameter(&self, name: &str) -> Option<&[u8]> {
        self.query.iter().find(|(found, _)| found == name.as_bytes()).map(|(_, value)| value.as_slice())
    }
}

/// The header that turns a PUT request into a copy.
pub(super) const SOURCE: &str = "x-amz-copy-source";

fn header(line: &str) -> Result<(String, Vec<u8>), String> {
    let (name, value) = line.split_once(": ").ok_or_else(|| format!("the header line {line:?}"))?;
    let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
    if !is_name || value.contains(['\r', '\n', '\0']) {
        return Err(format!("the header line {line:?}"));
    }
    Ok((name.to_ascii_lowercase(), value.as_bytes().to_vec()))
}

/// Returns bucket and key of a path, decoded.
fn place(path: &str) -> Result<(String, Option<Vec<u8>>), String> {
    let path = unescaped(path.as_bytes()).ok_or_else(|| format!("the path {path:?}"))?;
    let (bucket, key) = split(path.strip_prefix(b"/").ok_or("a path without a slash")?);
    let bucket = String::from_utf8(bucket.to_vec()).map_err(|_| "a bucket that is no text".to_owned())?;
    Ok((bucket, key.filter(|key| !key.is_empty()).map(<[u8]>::to_vec)))
}

/// Splits a path at its first slash.
pub(super) fn split(path: &[u8]) -> (&[u8], Option<&[u8]>) {
    match path.iter().position(|byte| *byte == b'/') {
        Some(slash) => (&path[..slash], Some(&path[slash + 1..])),
        None => (path, None),
    }
}

fn parameters(query: &str) -> Result<Vec<Pair>, String> {
    let pairs = query.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let decoded = |text: &str| unescaped(text.as_bytes()).filter(|_| !text.contains('+'));
        Some((decoded(name)?, decoded(value)?))
    });
    pairs.collect::<Option<_>>().ok_or_else(|| format!("the query {query:?}"))
}

/// Decodes a percent-encoded text; `None` if a percent sign is not followed by two digits.
pub(super) fn unescaped(text: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut rest = text;
    while let [first, behind @ ..] = rest {
        if *first != b'%' {
            bytes.push(*first);
            rest = behind;
            continue;
        }
        let digits = behind.get(..2).filter(|two| two.iter().all(u8::is_ascii_hexdigit))?;
        bytes.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
        rest = &behind[2..];
    }
    Some(bytes)
}

/// Returns the operation that a store would choose: the matching row with the most required
/// parameters.
fn operation(method: &str, has_key: bool, query: &[Pair], copies: bool) -> Result<Operation, String> {
    let is_there = |name: &&str| query.iter().any(|(found, _)| found == name.as_bytes());
    let of_method = ROWS.iter().filter(|row| row.1 == method && row.2 == has_key);
    let fitting = of_method.filter(|row| row.3.iter().all(&is_there));
    let row = fitting.max_by_key(|row| row.3.len());
    let (operation, _, _, asks, may) = row.ok_or_else(|| format!("{method} of no operation"))?;
    let mut names: Vec<&[u8]> = query.iter().map(|(name, _)| name.as_slice()).collect();
    let strange = names.iter().find(|name| !asks.iter().chain(*may).any(|it| it.as_bytes() == **name));
    if let Some(name) = strange {
        return Err(format!("the parameter {:?} of {}", String::from_utf8_lossy(name), operation.name()));
    }
    names.sort_unstable();
    names.dedup();
    if names.len() < query.len() {
        return Err(format!("a parameter twice, of {}", operation.name()));
    }
    match (operation, copies) {
        (Operation::PutObject, true) => Ok(Operation::CopyObject),
        (Operation::UploadPart, true) => Ok(Operation::UploadPartCopy),
        (operation, false) => Ok(*operation),
        (operation, true) => Err(format!("a source of a copy, of {}", operation.name())),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn read(head: &str) -> Result<Read, String> {
        Read::of(&Received { head: head.as_bytes().to_vec(), body: Vec::new(), is_whole: true })
    }

    #[rstest]
    #[case("GET /photos/a%2Fb HTTP/1.1\r\nhost: a", Operation::GetObject)]
    #[case("GET /photos?versions=&prefix=a HTTP/1.1", Operation::ListObjectVersions)]
    #[case("PUT /photos/a?partNumber=1&uploadId=x HTTP/1.1", Operation::UploadPart)]
    #[case("PUT /photos/a HTTP/1.1\r\nX-Amz-Copy-Source: /photos/b", Operation::CopyObject)]
    #[case("POST /photos?delete= HTTP/1.1", Operation::DeleteObjects)]
    fn a_request_is_an_operation(#[case] head: &str, #[case] operation: Operation) {
        let read = read(head).unwrap();
        assert_eq!((read.operation, read.bucket.as_str()), (operation, "photos"));
    }

    #[rstest]
    #[case("PUT /photos HTTP/1.1", "PUT of no operation")]
    #[case("GET /photos?acl= HTTP/1.1", "the parameter \"acl\" of ListObjects")]
    #[case("GET /photos/a?versionId=1&versionId=2 HTTP/1.1", "a parameter twice, of GetObject")]
    #[case("GET /photos/a?x-id=GetObject HTTP/1.1", "the parameter \"x-id\" of GetObject")]
    #[case("DELETE /photos/a HTTP/1.1\r\nx-amz-copy-source: /photos/b", "a source of a copy, of DeleteObject")]
    #[case("GET /photos/a% HTTP/1.1", "the path \"/photos/a%\"")]
    #[case("GET /photos/a b HTTP/1.1", "the line \"GET /photos/a b HTTP/1.1\"")]
    #[case("GET /photos/a HTTP/1.1\r\nhost:a", "the header line \"host:a\"")]
    #[case("GET /photos/a HTTP/1.1\r\nhost: a\nb: c", "the header line \"host: a\\nb: c\"")]
    fn what_is_none_is_seen(#[case] head: &str, #[case] why: &str) {
        assert_eq!(read(head).unwrap_err(), why);
    }
}
