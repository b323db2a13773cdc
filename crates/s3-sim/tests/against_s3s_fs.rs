//! Comparison of the simulated store with s3s-fs, an independent implementation of the protocol:
//! random operations with the real SDK must get the same responses.
//!
//! Known differences of s3s-fs 0.14 from Amazon S3 are excluded from the operations:
//! - Keys are paths of files, so `a` and `a/b` cannot both exist, and a key cannot end in `/`: in
//!   [`PLAIN_KEYS`] no key is a directory of another.
//! - After a multipart upload to a key that was written by PutObject, reads return the checksum of
//!   the old content, and a copy of a multipart object keeps its entity tag: keys for multipart
//!   uploads ([`PART_KEYS`]) are neither put nor copied.
//! - A copy of an object onto itself is allowed: not generated.
//! - A suffix range longer than the object is `InternalError`, and for an empty object the
//!   `Content-Range` is malformed: objects have at least [`LEAST_BODY`] bytes, suffixes at most
//!   that; empty objects are only read whole.
//! - Objects without a content type have none: all are given one.
//! - Entries of ListObjectsV2 have no entity tag, and parts in ListParts have no entity tag, order
//!   or pages: keys and sizes are compared, and entity tags by reads.
//! - Part numbers must be consecutive from one, unknown uploads are `AccessDenied`, and conditional
//!   reads are not supported: not generated.
//! - Owners, versions, tags of buckets and objects, ListObjectVersions, ListMultipartUploads and
//!   object lock are not supported, and DeleteBucket deletes the content: not compared.

use std::sync::Arc;

use aws_sdk_s3::Client;
use aws_sdk_s3::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_s3::primitives::ByteStream;
use aws_sdk_s3::types::{CompletedMultipartUpload, CompletedPart, Delete, ObjectIdentifier};
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use proptest::test_runner::RngSeed;
use s3_sim::{Dialect, InProcess, Store};
use s3s::Body;
use s3s::auth::SimpleAuth;
use s3s::service::S3ServiceBuilder;
use tower::BoxError;

const BUCKET: &str = "photos";
const PLAIN_KEYS: [&str; 8] = ["a", "b-1", "b-2", "dir/sub/z", "dir/x", "dir/y z+%", "e.f", "ü/ö"];
const PART_KEYS: [&str; 2] = ["dir/film", "parts"];
const LEAST_BODY: usize = 8;
const PREFIXES: [&str; 6] = ["", "b", "b-1", "dir/", "dir/s", "nothing"];

/// An operation of a client.
#[derive(Clone, Debug)]
enum Operation {
    Put { key: &'static str, body: Vec<u8> },
    PutIfAbsent { key: &'static str, body: Vec<u8> },
    Get { key: &'static str },
    GetRange { key: &'static str, range: ByteRange },
    Head { key: &'static str },
    Copy { from: &'static str, to: &'static str },
    Delete { key: &'static str },
    DeleteMany { keys: Vec<&'static str> },
    List { prefix: &'static str, delimiter: Option<&'static str>, page: i32, start_after: Option<&'static str> },
    InParts { key: &'static str, body: Vec<u8>, ending: Ending },
}

/// End of a multipart upload.
#[derive(Clone, Copy, Debug)]
enum Ending {
    Completed,
    Aborted,
}

#[derive(Clone, Copy, Debug)]
enum ByteRange {
    From(u64),
    Between(u64, u64),
    Last(u64),
}

impl ByteRange {
    fn header(self) -> String {
        match self {
            Self::From(first) => format!("bytes={first}-"),
            Self::Between(first, length) => format!("bytes={first}-{}", first + length),
            Self::Last(length) => format!("bytes=-{length}"),
        }
    }
}

fn any_key() -> impl Strategy<Value = &'static str> {
    select([PLAIN_KEYS.as_slice(), &PART_KEYS].concat())
}

fn plain_key() -> impl Strategy<Value = &'static str> {
    select(PLAIN_KEYS.to_vec())
}

fn body() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), LEAST_BODY..40)
}

fn range() -> impl Strategy<Value = ByteRange> {
    prop_oneof![
        (0..50u64).prop_map(ByteRange::From),
        (0..50u64, 0..50u64).prop_map(|(first, length)| ByteRange::Between(first, length)),
        (1..=LEAST_BODY as u64).prop_map(ByteRange::Last),
    ]
}

fn operation() -> impl Strategy<Value = Operation> {
    let list = (
        select(PREFIXES.to_vec()),
        select(vec![None, Some("/"), Some("-")]),
        select(vec![1, 2, 3, 1000]),
        prop::option::of(any_key()),
    );
    let ending = select(vec![Ending::Completed, Ending::Completed, Ending::Aborted]);
    let all_keys = [PLAIN_KEYS.as_slice(), &PART_KEYS].concat();
    prop_oneof![
        6 => (plain_key(), body()).prop_map(|(key, body)| Operation::Put { key, body }),
        1 => (plain_key(), body()).prop_map(|(key, body)| Operation::PutIfAbsent { key, body }),
        2 => any_key().prop_map(|key| Operation::Get { key }),
        3 => (any_key(), range()).prop_map(|(key, range)| Operation::GetRange { key, range }),
        1 => any_key().prop_map(|key| Operation::Head { key }),
        2 => (plain_key(), plain_key())
            .prop_filter("a copy onto itself", |(from, to)| from != to)
            .prop_map(|(from, to)| Operation::Copy { from, to }),
        1 => any_key().prop_map(|key| Operation::Delete { key }),
        1 => subsequence(all_keys, 1..4).prop_map(|keys| Operation::DeleteMany { keys }),
        3 => list.prop_map(|(prefix, delimiter, page, start_after)| {
            Operation::List { prefix, delimiter, page, start_after }
        }),
        2 => (select(PART_KEYS.to_vec()), body(), ending)
            .prop_map(|(key, body, ending)| Operation::InParts { key, body, ending }),
    ]
}

/// Formats an error as code and HTTP status. The messages differ between stores.
fn refusal<E: ProvideErrorMetadata>(error: &SdkError<E>) -> String {
    let status = error.raw_response().map(|response| response.status().as_u16());
    format!("refused: {} {}", error.code().unwrap_or("no code"), status.unwrap_or_default())
}

/// Executes an operation and describes the result.
async fn perform(client: &Client, operation: &Operation) -> String {
    match operation {
        Operation::Put { key, body } => put(client, key, body, false).await,
        Operation::PutIfAbsent { key, body } => put(client, key, body, true).await,
        Operation::Get { key } => get(client, key, None).await,
        Operation::GetRange { key, range } => get(client, key, Some(range.header())).await,
        Operation::Head { key } => head(client, key).await,
        Operation::Copy { from, to } => copy(client, from, to).await,
        Operation::Delete { key } => match client.delete_object().bucket(BUCKET).key(*key).send().await {
            Ok(_) => "deleted".to_owned(),
            Err(error) => refusal(&error),
        },
        Operation::DeleteMany { keys } => delete_many(client, keys).await,
        Operation::List { prefix, delimiter, page, start_after } => {
            list(client, prefix, *delimiter, *page, *start_after).await
        }
        Operation::InParts { key, body, ending } => in_parts(client, key, &[body], *ending).await,
    }
}

async fn put(client: &Client, key: &str, body: &[u8], only_if_absent: bool) -> String {
    let put = client.put_object().bucket(BUCKET).key(key).body(ByteStream::from(body.to_vec()));
    let put = put.content_type("text/plain").metadata("length", body.len().to_string());
    let put = put.set_if_none_match(only_if_absent.then(|| "*".to_owned()));
    match put.send().await {
        Ok(output) => format!("stored {:?}", output.e_tag()),
        Err(error) => refusal(&error),
    }
}

async fn get(client: &Client, key: &str, range: Option<String>) -> String {
    match client.get_object().bucket(BUCKET).key(key).set_range(range).send().await {
        Err(error) => refusal(&error),
        Ok(output) => {
            let head = (
                output.e_tag().map(str::to_owned),
                output.content_type().map(str::to_owned),
                output.content_range().map(str::to_owned),
                output.content_length(),
                output.metadata().and_then(|metadata| metadata.get("length")).cloned(),
            );
            let body = output.body.collect().await.map(aws_sdk_s3::primitives::AggregatedBytes::to_vec);
            format!("{head:?} {:?}", body.map_err(|error| error.to_string()))
        }
    }
}

async fn head(client: &Client, key: &str) -> String {
    match client.head_object().bucket(BUCKET).key(key).send().await {
        Err(error) => refusal(&error),
        Ok(output) => {
            let length = output.metadata().and_then(|metadata| metadata.get("length"));
            format!("{:?}", (output.e_tag(), output.content_type(), output.content_length(), length))
        }
    }
}

async fn copy(client: &Client, from: &str, to: &str) -> String {
    // The SDK leaves the encoding of this header to the caller.
    let source = from.replace('%', "%25").replace('+', "%2B").replace(' ', "%20");
    let source = source.replace('ü', "%C3%BC").replace('ö', "%C3%B6");
    let copy = client.copy_object().bucket(BUCKET).key(to).copy_source(format!("{BUCKET}/{source}"));
    match copy.send().await {
        Ok(output) => format!("copied {:?}", output.copy_object_result().and_then(|result| result.e_tag())),
        Err(error) => refusal(&error),
    }
}

async fn delete_many(client: &Client, keys: &[&str]) -> String {
    let one = |key: &&str| ObjectIdentifier::builder().key(*key).build().expect("a key is all it needs");
    let delete = Delete::builder().set_objects(Some(keys.iter().map(one).collect()));
    let delete = delete.build().expect("objects are all it needs");
    match client.delete_objects().bucket(BUCKET).delete(delete).send().await {
        Ok(output) => {
            let deleted: Vec<_> = output.deleted().iter().map(|deleted| deleted.key()).collect();
            format!("deleted {deleted:?}, {} errors", output.errors().len())
        }
        Err(error) => refusal(&error),
    }
}

/// Lists all pages. Tokens are specific to a store, so each listing follows its own.
async fn list(client: &Client, prefix: &str, delimiter: Option<&str>, page: i32, start_after: Option<&str>) -> String {
    let list = client.list_objects_v2().bucket(BUCKET).prefix(prefix).max_keys(page);
    let list = list.set_delimiter(delimiter.map(str::to_owned)).set_start_after(start_after.map(str::to_owned));
    let mut told = String::new();
    let mut pages = list.into_paginator().send();
    while let Some(page) = pages.next().await {
        match page {
            Err(error) => return refusal(&error),
            Ok(page) => {
                let objects: Vec<_> = page.contents().iter().map(|object| (object.key(), object.size())).collect();
                let prefixes: Vec<_> = page.common_prefixes().iter().map(|common| common.prefix()).collect();
                told += &format!("{objects:?} {prefixes:?} {:?} {:?}\n", page.key_count(), page.is_truncated());
            }
        }
    }
    told
}

async fn in_parts(client: &Client, key: &str, bodies: &[&Vec<u8>], ending: Ending) -> String {
    let create = client.create_multipart_upload().bucket(BUCKET).key(key).content_type("text/plain");
    let created = create.metadata("length", "in parts").send().await.expect("an upload");
    let id = created.upload_id().expect("an id");
    let mut parts = Vec::new();
    for (number, body) in (1..).zip(bodies) {
        let part = client.upload_part().bucket(BUCKET).key(key).upload_id(id).part_number(number);
        let output = part.body(ByteStream::from((*body).clone())).send().await.expect("a part");
        let tag = output.e_tag().map(str::to_owned);
        parts.push(CompletedPart::builder().part_number(number).set_e_tag(tag).build());
    }
    let listed = client.list_parts().bucket(BUCKET).key(key).upload_id(id).send().await.expect("parts");
    let mut sizes: Vec<_> = listed.parts().iter().map(|part| (part.part_number(), part.size())).collect();
    sizes.sort_unstable();
    let tags: Vec<_> = parts.iter().map(|part| part.e_tag().map(str::to_owned)).collect();
    let end = match ending {
        Ending::Completed => {
            let upload = CompletedMultipartUpload::builder().set_parts(Some(parts)).build();
            let call = client.complete_multipart_upload().bucket(BUCKET).key(key).upload_id(id);
            let result = call.multipart_upload(upload).send().await;
            result.map_or_else(|error| refusal(&error), |output| format!("{:?}", output.e_tag()))
        }
        Ending::Aborted => {
            let call = client.abort_multipart_upload().bucket(BUCKET).key(key).upload_id(id);
            call.send().await.map_or_else(|error| refusal(&error), |_| "aborted".to_owned())
        }
    };
    format!("{sizes:?} {tags:?} {end}")
}

/// The two stores, each with an SDK client and an empty bucket.
struct Pair {
    ours: Client,
    theirs: Client,
    /// Removes the files of s3s-fs when dropped.
    _directory: tempfile::TempDir,
}

impl Pair {
    fn new() -> Self {
        let store = Store::new(Arc::new(|| jiff::Timestamp::UNIX_EPOCH), Dialect::default());
        store.add_account("acme", "AKIAACME", "secret");
        store.put_bucket("acme", BUCKET);
        let ours = InProcess::new(store.http()).client("AKIAACME", "secret", "us-east-1");

        let directory = tempfile::tempdir().expect("a directory for files");
        std::fs::create_dir(directory.path().join(BUCKET)).expect("a bucket is a directory");
        let files = s3s_fs::FileSystem::new(directory.path()).expect("the directory exists");
        let mut builder = S3ServiceBuilder::new(files);
        builder.set_auth(SimpleAuth::from_single("AKIAACME", "secret"));
        let service = builder.build();
        let service = tower::service_fn(move |request: http::Request<Body>| {
            let service = service.clone();
            async move { service.call(request).await.map_err(BoxError::from) }
        });
        let theirs = InProcess::new(service).client("AKIAACME", "secret", "us-east-1");
        Self { ours, theirs, _directory: directory }
    }

    /// Returns the responses of both stores, the simulated one first.
    async fn both(&self, operation: &Operation) -> (String, String) {
        (perform(&self.ours, operation).await, perform(&self.theirs, operation).await)
    }
}

/// Runs a future with real time, because s3s-fs accesses files on other threads.
fn block_on<F: Future>(future: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(future)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 48,
        rng_seed: RngSeed::Fixed(3),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn both_answer_alike(operations in prop::collection::vec(operation(), 1..25)) {
        let pair = Pair::new();
        for operation in &operations {
            let (ours, theirs) = block_on(pair.both(operation));
            prop_assert_eq!(ours, theirs, "{:?}", operation);
        }
        let everything = Operation::List { prefix: "", delimiter: None, page: 1000, start_after: None };
        let (ours, theirs) = block_on(pair.both(&everything));
        prop_assert_eq!(ours, theirs);
    }
}

#[test]
fn empty_objects() {
    let pair = Pair::new();
    for operation in [
        Operation::Put { key: "a", body: Vec::new() },
        Operation::Get { key: "a" },
        Operation::Head { key: "a" },
        Operation::Copy { from: "a", to: "e.f" },
        Operation::List { prefix: "", delimiter: Some("/"), page: 1, start_after: None },
    ] {
        let (ours, theirs) = block_on(pair.both(&operation));
        assert_eq!(ours, theirs, "{operation:?}");
        assert!(!ours.contains("refused"), "{ours}");
    }
}

/// Uses parts of the minimum size that both stores require. It runs once, because signing megabytes
/// takes time.
#[test]
fn uploads_in_several_parts() {
    const LEAST: usize = 5 * 1024 * 1024;
    let (whole, tail, short) = (vec![b'w'; LEAST], b"tail".to_vec(), b"too short".to_vec());
    let pair = Pair::new();
    block_on(async {
        for (key, bodies) in [("parts", [&whole, &tail]), ("dir/film", [&short, &tail])] {
            let ours = in_parts(&pair.ours, key, &bodies, Ending::Completed).await;
            let theirs = in_parts(&pair.theirs, key, &bodies, Ending::Completed).await;
            assert_eq!(ours, theirs, "{key}");
        }
        let across = ByteRange::Between(LEAST as u64 - 2, 3).header();
        let ours = get(&pair.ours, "parts", Some(across.clone())).await;
        assert_eq!(ours, get(&pair.theirs, "parts", Some(across)).await);
        assert!(ours.contains("[119, 119, 116, 97]"), "{ours}");
    });
}
