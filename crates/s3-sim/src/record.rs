//! JSON documents in which a keeper stores the content of a store.
//!
//! Each bucket, version, upload and part has a place: the key under which its document is stored.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use jiff::Timestamp;
use s3s::dto::Checksum;
use serde::{Deserialize, Serialize};

use super::blob::Blob;
use super::data::Data;
use super::keeper::Entry;
use super::lock::{LockConfiguration, Protection};
use super::state::{Attributes, Bucket, Object, Part, State, Upload, Version, Versioning};

/// Maximum number of changes in a document of [`Whole`].
const AT_ONCE: usize = 200;

/// A document: changes, and the number of the store's last version or upload at that time.
#[derive(Serialize, Deserialize)]
pub(super) struct Document {
    pub(super) sequence: u64,
    pub(super) changes: Vec<Change>,
}

/// New content at a place. Applying it twice has no further effect.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Change {
    /// A bucket with its settings.
    Bucket(String, BucketRecord),
    /// A version of a key in a bucket.
    Version(String, String, VersionRecord),
    /// An upload to a key, without its parts.
    Upload(String, String, u64, UploadRecord),
    /// A part of an upload.
    Part(String, String, u64, i32, PartRecord),
}

/// Returns the place for these parts, the first of which is the bucket's name. It is a JSON array
/// without brackets, with a comma after each part, so it is a prefix of exactly the places inside
/// it.
pub(super) fn place(parts: &impl Serialize) -> Vec<u8> {
    let array = serde_json::to_vec(parts).expect("it is JSON");
    [&array[1..array.len() - 1], b","].concat()
}

/// Second part of a place in a bucket: it tells versions and uploads apart, which have the same
/// other parts.
pub(super) const VERSION: &str = "version";
pub(super) const UPLOAD: &str = "upload";

impl Change {
    fn place(&self) -> Vec<u8> {
        match self {
            Self::Bucket(name, _) => place(&[name]),
            Self::Version(name, key, record) => place(&(name, VERSION, key, record.sequence)),
            Self::Upload(name, key, sequence, _) => place(&(name, UPLOAD, key, sequence)),
            Self::Part(name, key, sequence, number, _) => place(&(name, UPLOAD, key, sequence, number)),
        }
    }
}

/// Returns the entries for a keeper: the last sequence number, then the removed places `gone`, then
/// the changes.
pub(super) fn entries(sequence: u64, gone: Vec<Vec<u8>>, changes: Vec<Change>) -> Vec<Entry> {
    let last = Entry { place: place(&["", "last"]), document: Some(document(sequence, Vec::new())) };
    let gone = gone.into_iter().map(|place| Entry { place, document: None });
    let changed = |change: Change| Entry { place: change.place(), document: Some(document(sequence, vec![change])) };
    [last].into_iter().chain(gone).chain(changes.into_iter().map(changed)).collect()
}

#[derive(Serialize, Deserialize)]
pub(super) struct BucketRecord {
    pub(super) owner: String,
    pub(super) guest: Option<String>,
    pub(super) region: String,
    pub(super) created: Timestamp,
    pub(super) tags: Option<BTreeMap<String, String>>,
    pub(super) versioning: Versioning,
    pub(super) lock: Option<LockConfiguration>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct VersionRecord {
    pub(super) sequence: u64,
    pub(super) is_null: bool,
    pub(super) modified: Timestamp,
    /// `None` for a delete marker.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) object: Option<ObjectRecord>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct ObjectRecord {
    pub(super) data: Vec<PieceRecord>,
    pub(super) etag: String,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) checksum: BTreeMap<String, String>,
    pub(super) attributes: Attributes,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) tags: BTreeMap<String, String>,
    pub(super) protection: Protection,
    pub(super) has_hold: bool,
}

/// A piece of data: number of the blob, offset of the first byte, length.
#[derive(Serialize, Deserialize)]
pub(super) struct PieceRecord(pub(super) u64, pub(super) u64, pub(super) u64);

#[derive(Serialize, Deserialize)]
pub(super) struct UploadRecord {
    pub(super) initiated: Timestamp,
    pub(super) template: ObjectRecord,
}

#[derive(Serialize, Deserialize)]
pub(super) struct PartRecord {
    pub(super) data: Vec<PieceRecord>,
    pub(super) etag: String,
    pub(super) modified: Timestamp,
}

/// Assigns blob numbers to data that is only in memory, in the order in which it occurs.
pub(super) struct Numbers<'a> {
    /// Assigned numbers with their bytes.
    pub(super) loose: &'a mut Vec<(u64, Bytes)>,
    pub(super) next: u64,
}

impl Numbers<'_> {
    fn pieces(&mut self, data: &Data) -> Vec<PieceRecord> {
        match data {
            Data::Kept(pieces) => {
                pieces.iter().map(|piece| PieceRecord(piece.blob.id, piece.from, piece.length)).collect()
            }
            Data::Memory(bytes) if bytes.is_empty() => Vec::new(),
            Data::Memory(bytes) => {
                let id = self.next;
                self.next += 1;
                self.loose.push((id, bytes.clone()));
                vec![PieceRecord(id, 0, bytes.len() as u64)]
            }
        }
    }

    fn object(&mut self, object: &Object) -> ObjectRecord {
        ObjectRecord {
            data: self.pieces(&object.data),
            etag: object.etag.clone(),
            checksum: checksum_out(&object.checksum),
            attributes: object.attributes.clone(),
            tags: object.tags.clone(),
            protection: object.protection,
            has_hold: object.has_hold,
        }
    }

    pub(super) fn version(&mut self, version: &Version) -> VersionRecord {
        VersionRecord {
            sequence: version.sequence,
            is_null: version.is_null,
            modified: version.modified,
            object: version.object().map(|object| self.object(object)),
        }
    }

    pub(super) fn upload(&mut self, upload: &Upload) -> UploadRecord {
        UploadRecord { initiated: upload.initiated, template: self.object(&upload.template) }
    }

    pub(super) fn part(&mut self, part: &Part) -> PartRecord {
        PartRecord { data: self.pieces(&part.data), etag: part.etag.clone(), modified: part.modified }
    }
}

pub(super) fn bucket_out(bucket: &Bucket) -> BucketRecord {
    BucketRecord {
        owner: bucket.owner.clone(),
        guest: bucket.guest.clone(),
        region: bucket.region.clone(),
        created: bucket.created,
        tags: bucket.tags.clone(),
        versioning: bucket.versioning,
        lock: bucket.lock,
    }
}

/// Returns a document with these changes.
pub(super) fn document(sequence: u64, changes: Vec<Change>) -> Vec<u8> {
    serde_json::to_vec(&Document { sequence, changes }).expect("it is JSON")
}

fn checksum_out(checksum: &Checksum) -> BTreeMap<String, String> {
    let pairs = [
        ("crc32", &checksum.checksum_crc32),
        ("crc32c", &checksum.checksum_crc32c),
        ("crc64nvme", &checksum.checksum_crc64nvme),
        ("sha1", &checksum.checksum_sha1),
        ("sha256", &checksum.checksum_sha256),
    ];
    pairs.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value.clone()?))).collect()
}

/// Returns the settings and complete content of a bucket.
fn everything(name: &str, bucket: &Bucket, numbers: &mut Numbers<'_>) -> Vec<Change> {
    let mut changes = vec![Change::Bucket(name.to_owned(), bucket_out(bucket))];
    for (key, versions) in &bucket.keys {
        let version = |version| Change::Version(name.to_owned(), key.clone(), numbers.version(version));
        changes.extend(versions.iter().map(version));
    }
    for ((key, sequence), upload) in &bucket.uploads {
        changes.push(Change::Upload(name.to_owned(), key.clone(), *sequence, numbers.upload(upload)));
        for (number, part) in &upload.parts {
            changes.push(Change::Part(name.to_owned(), key.clone(), *sequence, *number, numbers.part(part)));
        }
    }
    changes
}

/// A blob of a keeper, which is kept as long as this value exists.
#[derive(Clone)]
pub struct KeptBlob(Arc<Blob>);

impl std::fmt::Debug for KeptBlob {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("KeptBlob").field(&self.0.id).finish()
    }
}

/// A complete store: documents for [`Store::read`](super::Store::read), and the blobs to which they
/// refer.
#[derive(Clone, Debug, Default)]
pub struct Whole {
    /// Documents, in the order in which to read them.
    pub documents: Vec<Vec<u8>>,
    /// Blobs of the store's keeper, which are kept as long as this value exists.
    pub blobs: BTreeMap<u64, KeptBlob>,
    /// Bytes that no keeper stores, by blob number. The first number is the argument of
    /// [`Store::whole`](super::Store::whole).
    pub loose: Vec<(u64, Bytes)>,
}

/// Returns the complete content of a store with a keeper.
pub(super) fn all(state: &State) -> Vec<Change> {
    // Such a store has no bytes that are only in memory.
    let mut numbers = Numbers { loose: &mut Vec::new(), next: 0 };
    state.buckets.iter().flat_map(|(name, bucket)| everything(name, bucket, &mut numbers)).collect()
}

/// Returns the complete content of a store. Bytes that are only in memory are numbered from `first`
/// on.
pub(super) fn whole(state: &State, first: u64) -> Whole {
    let mut loose = Vec::new();
    let mut numbers = Numbers { loose: &mut loose, next: first };
    let mut documents = vec![document(state.sequence(), Vec::new())];
    for (name, bucket) in &state.buckets {
        let mut changes = everything(name, bucket, &mut numbers).into_iter().peekable();
        while changes.peek().is_some() {
            documents.push(document(state.sequence(), changes.by_ref().take(AT_ONCE).collect()));
        }
    }
    let blobs = state.pieces().map(|piece| (piece.blob.id, KeptBlob(piece.blob.clone()))).collect();
    Whole { documents, blobs, loose }
}
