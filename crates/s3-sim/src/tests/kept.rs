//! Persistence: a store is restored from its keeper, and blobs are kept as long as they are
//! referenced.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use aws_sdk_s3::types::{CompletedMultipartUpload, CompletedPart, MetadataDirective};
use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use parking_lot::Mutex;

use super::super::{BlobReader, BlobWriter, Entry, Keeper, Sources, Versioning};
use super::*;

/// A keeper in memory. Clones share their content.
#[derive(Clone, Default)]
struct Shelf(Arc<Mutex<Shelved>>);

#[derive(Default)]
struct Shelved {
    /// Documents by place.
    documents: BTreeMap<Vec<u8>, Vec<u8>>,
    blobs: BTreeMap<u64, Bytes>,
    last: u64,
    /// Number of open blobs.
    open: usize,
    /// Maximum number of blobs that were open at once.
    most_open: usize,
}

impl Keeper for Shelf {
    fn keep(&self, changes: Vec<Entry>) {
        let documents = &mut self.0.lock().documents;
        for Entry { place, document } in changes {
            match document {
                Some(document) => drop(documents.insert(place, document)),
                None => documents.retain(|within, _| !within.starts_with(&place)),
            }
        }
    }

    fn kept(&self) -> BoxFuture<'static, ()> {
        std::future::ready(()).boxed()
    }

    fn begin(&self) -> io::Result<Box<dyn BlobWriter>> {
        Ok(Box::new(Written { shelf: self.clone(), bytes: Vec::new() }))
    }

    fn open(&self, id: u64) -> io::Result<Arc<dyn BlobReader>> {
        let mut shelved = self.0.lock();
        let bytes = shelved.blobs.get(&id).cloned().ok_or(io::ErrorKind::NotFound)?;
        shelved.open += 1;
        shelved.most_open = shelved.most_open.max(shelved.open);
        drop(shelved);
        Ok(Arc::new(Read { shelf: self.clone(), bytes }))
    }

    fn forget(&self, blobs: Vec<u64>) {
        let mut shelved = self.0.lock();
        blobs.iter().for_each(|id| drop(shelved.blobs.remove(id)));
    }
}

struct Written {
    shelf: Shelf,
    bytes: Vec<u8>,
}

impl BlobWriter for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    fn finish(self: Box<Self>) -> io::Result<u64> {
        let Self { shelf, bytes } = *self;
        let mut shelved = shelf.0.lock();
        shelved.last += 1;
        let id = shelved.last;
        shelved.blobs.insert(id, bytes.into());
        Ok(id)
    }
}

struct Read {
    shelf: Shelf,
    bytes: Bytes,
}

impl BlobReader for Read {
    fn read_at(&self, at: u64, buffer: &mut [u8]) -> io::Result<()> {
        let at = usize::try_from(at).map_err(io::Error::other)?;
        let part = self.bytes.get(at..at + buffer.len()).ok_or(io::ErrorKind::UnexpectedEof)?;
        buffer.copy_from_slice(part);
        Ok(())
    }
}

impl Drop for Read {
    fn drop(&mut self) {
        self.shelf.0.lock().open -= 1;
    }
}

/// Returns a store with the content of the shelf, read document by document as after a start.
fn started(shelf: &Shelf) -> (Store, Client) {
    let store = store_with(Dialect { minimum_part_size: 3, ..Dialect::default() });
    store.keep_with(Arc::new(shelf.clone()));
    let documents = shelf.0.lock().documents.clone();
    for document in documents.values() {
        store.restore([&document[..]]).expect("it was told");
    }
    let client = client(&store, "acme");
    (store, client)
}

/// Returns a shelf, and a client of a store on it with a bucket `photos`, where `a` contains
/// `shared`.
async fn with_an_object() -> (Shelf, Client) {
    let shelf = Shelf::default();
    let (store, client) = started(&shelf);
    store.put_bucket("acme", "photos");
    client.put_object().bucket("photos").key("a").body(body("shared")).send().await.expect("a write");
    (shelf, client)
}

async fn read(client: &Client, key: &str) -> Bytes {
    let got = client.get_object().bucket("photos").key(key).send().await.expect("an object");
    got.body.collect().await.expect("a body").into_bytes()
}

#[tokio::test]
async fn what_a_copy_shares_with_its_source_stays_when_that_is_deleted_after_a_restart() {
    let (shelf, client) = with_an_object().await;
    client.copy_object().bucket("photos").key("b").copy_source("photos/a").send().await.expect("a copy");
    let (_, client) = started(&shelf);
    client.delete_object().bucket("photos").key("a").send().await.expect("a deletion");
    assert_eq!(read(&client, "b").await, "shared");
    let (_, client) = started(&shelf);
    assert_eq!(read(&client, "b").await, "shared");
    client.delete_object().bucket("photos").key("b").send().await.expect("a deletion");
    assert!(shelf.0.lock().blobs.is_empty(), "nothing refers to it any more");
}

#[tokio::test]
async fn what_versions_and_parts_share_stays_until_the_last_of_them_goes() {
    let (shelf, _) = with_an_object().await;
    let (store, client) = started(&shelf);
    store.set_versioning("photos", Versioning::Enabled);
    let copy = client.copy_object().bucket("photos").key("a").copy_source("photos/a");
    copy.metadata_directive(MetadataDirective::Replace).send().await.expect("a copy of it onto itself");
    let created = client.create_multipart_upload().bucket("photos").key("film").send().await.expect("an upload");
    let id = created.upload_id().expect("it has one").to_owned();
    let part = client.upload_part_copy().bucket("photos").key("film").upload_id(&id).part_number(1);
    part.copy_source("photos/a").send().await.expect("a part");

    let (_, client) = started(&shelf);
    client.abort_multipart_upload().bucket("photos").key("film").upload_id(&id).send().await.expect("an end");
    client.delete_object().bucket("photos").key("a").version_id("null").send().await.expect("a deletion");
    assert_eq!(read(&client, "a").await, "shared");
    assert_eq!(shelf.0.lock().blobs.len(), 1);
}

/// An object can have 10,000 parts, each of which is a blob.
#[tokio::test]
async fn an_object_of_many_parts_is_read_with_one_blob_open_at_a_time() {
    let (shelf, client) = with_an_object().await;
    let created = client.create_multipart_upload().bucket("photos").key("film").send().await.expect("an upload");
    let id = created.upload_id().expect("it has one").to_owned();
    let mut parts = Vec::new();
    for number in 1..=4 {
        let part = client.upload_part().bucket("photos").key("film").upload_id(&id).part_number(number);
        let bytes = ByteStream::from(vec![b'x'; 300_000]);
        let tag = part.body(bytes).send().await.expect("a part").e_tag().map(str::to_owned);
        parts.push(CompletedPart::builder().part_number(number).set_e_tag(tag).build());
    }
    let parts = CompletedMultipartUpload::builder().set_parts(Some(parts)).build();
    let complete = client.complete_multipart_upload().bucket("photos").key("film").upload_id(&id);
    complete.multipart_upload(parts).send().await.expect("an object");
    assert_eq!(read(&client, "film").await.len(), 1_200_000);
    assert_eq!(shelf.0.lock().most_open, 1);
}

/// A read in progress continues to the end of the object even if it is deleted meanwhile.
#[tokio::test]
async fn an_object_that_is_deleted_while_it_is_read_is_read_to_its_end() {
    let (_, client) = with_an_object().await;
    let put = client.put_object().bucket("photos").key("film").body(ByteStream::from(vec![b'x'; 1_000_000]));
    put.send().await.expect("a write");
    let got = client.get_object().bucket("photos").key("film").send().await.expect("an object");
    client.delete_object().bucket("photos").key("film").send().await.expect("a deletion");
    assert_eq!(got.body.collect().await.expect("a body").into_bytes().len(), 1_000_000);
}

/// An invalid snapshot is rejected before anything is changed.
#[tokio::test]
async fn what_another_store_held_is_taken_whole_or_not_at_all() {
    let (other, _) = with_bucket();
    other.put_object("photos", "b", "other");
    let whole = other.whole(7);
    let documents = || whole.documents.iter().map(Vec::as_slice);
    let (shelf, _) = with_an_object().await;
    let (store, client) = started(&shelf);
    let told = shelf.0.lock().documents.clone();

    let brought = shelved(&shelf, "other");
    let (missing, short, fits) = ((8, (brought, 5)), (7, (brought, 4)), (7, (brought, 5)));
    for bad in [missing, short] {
        assert!(store.read(documents(), Sources::Renamed(&[bad].into())).is_err(), "{bad:?}");
    }
    let none = [(7, Bytes::from_static(b"other"))].into();
    assert!(store.read(documents(), Sources::Loose(&none)).is_err(), "it would be nowhere after a restart");
    assert_eq!(read(&client, "a").await, "shared");
    assert_eq!(shelf.0.lock().documents, told);

    let contents = store.read(documents(), Sources::Renamed(&[fits].into())).expect("it fits");
    assert_eq!(contents.blobs(), BTreeSet::from([brought]));
    store.replace(contents);
    let (again, _) = started(&shelf);
    for store in [store, again] {
        let holds = BTreeMap::from([("b".to_owned(), Bytes::from_static(b"other"))]);
        assert_eq!(store.objects("photos"), holds);
    }
    assert_eq!(shelf.0.lock().blobs.len(), 1, "the one before is gone");
}

/// A place is inside another only if its key begins with the other's.
#[tokio::test]
async fn what_is_removed_takes_nothing_along_whose_name_begins_alike() {
    let (shelf, client) = with_an_object().await;
    let (store, _) = started(&shelf);
    for bucket in ["photos2", "phot"] {
        store.put_bucket("acme", bucket);
        store.put_object(bucket, "a", "other");
    }
    let keys = ["ab", "a\0\0\0\0\0\0\0\u{1}", "a\0\0\0\0\0\0\0\u{3}", ""];
    for key in keys {
        store.put_object("photos", key, "other");
    }
    store.remove_object("photos", "a");
    let (store, _) = started(&shelf);
    assert!(store.objects("photos").keys().all(|key| keys.contains(&key.as_str())));
    assert_eq!(store.objects("photos").len(), keys.len());
    store.remove_bucket("photos");
    let (store, _) = started(&shelf);
    assert_eq!(store.buckets().into_keys().collect::<Vec<_>>(), ["phot", "photos2"]);
    assert_eq!(store.objects("photos2").len() + store.objects("phot").len(), 2);
    drop(client);
}

/// Adds a blob to the shelf and returns its number.
fn shelved(shelf: &Shelf, text: &str) -> u64 {
    let mut writer = shelf.begin().expect("there is room");
    writer.write(text.as_bytes()).expect("there is room");
    writer.finish().expect("there is room")
}
