//! Restoring a store from the documents of its keeper, or from those of another store.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use s3s::dto::Checksum;

use super::blob::{Blob, Home};
use super::data::{Data, Piece};
use super::record::{Change, Document, ObjectRecord, PieceRecord, VersionRecord};
use super::state::{Bucket, Content, Object, Part, State, Upload, Version};

/// Location of the blobs to which documents of another store refer.
#[derive(Clone, Copy, Debug)]
pub enum Sources<'a> {
    /// In the store's keeper, under other numbers: the new number and the length of each.
    Renamed(&'a BTreeMap<u64, (u64, u64)>),
    /// In memory.
    Loose(&'a BTreeMap<u64, Bytes>),
}

/// New content for a store, read from documents by [`Store::read`](super::Store::read).
#[derive(Default)]
pub struct Contents(State);

impl Contents {
    /// Reads documents of another store, whose blobs are in `sources`.
    ///
    /// # Errors
    /// An error message about an invalid document, or about missing bytes.
    pub(super) fn read<'d>(
        home: Option<&Arc<Home>>,
        documents: impl IntoIterator<Item = &'d [u8]>,
        sources: Sources<'_>,
    ) -> Result<Self, String> {
        let mut blobs = match (home, sources) {
            (Some(home), Sources::Renamed(renamed)) => Blobs::Renamed { home, renamed, met: BTreeMap::new() },
            (None, Sources::Loose(loose)) => Blobs::Loose(loose),
            _ => return Err("the bytes of objects are somewhere else".to_owned()),
        };
        let mut contents = Self::default();
        read(&mut contents.0, documents, &mut blobs)?;
        Ok(contents)
    }

    pub(super) fn into_state(self) -> State {
        self.0
    }

    /// Returns the numbers of the referenced blobs in the store's keeper.
    pub fn blobs(&self) -> BTreeSet<u64> {
        self.0.pieces().map(|piece| piece.blob.id).collect()
    }
}

/// Location of blobs while documents are read.
enum Blobs<'a> {
    Own(&'a Arc<Home>),
    Renamed {
        home: &'a Arc<Home>,
        renamed: &'a BTreeMap<u64, (u64, u64)>,
        /// Blobs referenced so far, kept because a later document may refer to a blob that an
        /// earlier one has dropped.
        met: BTreeMap<u64, Arc<Blob>>,
    },
    Loose(&'a BTreeMap<u64, Bytes>),
}

/// Message for pieces of a missing blob.
const MISSING: &str = "the bytes of an object are missing";

impl Blobs<'_> {
    fn data(&mut self, pieces: &[PieceRecord]) -> Result<Data, String> {
        match self {
            Self::Own(home) => {
                let piece = |&PieceRecord(id, from, length): &PieceRecord| Piece { blob: home.blob(id), from, length };
                Ok(Data::Kept(pieces.iter().map(piece).collect()))
            }
            Self::Renamed { home, renamed, met } => {
                let mut kept = Vec::with_capacity(pieces.len());
                for &PieceRecord(id, from, length) in pieces {
                    let &(own, whole) = renamed.get(&id).ok_or(MISSING)?;
                    from.checked_add(length).filter(|end| *end <= whole).ok_or(MISSING)?;
                    let blob = met.entry(own).or_insert_with(|| home.blob(own)).clone();
                    kept.push(Piece { blob, from, length });
                }
                Ok(Data::Kept(kept))
            }
            Self::Loose(bytes) => {
                let part = |&PieceRecord(id, from, length): &PieceRecord| {
                    let whole = bytes.get(&id)?;
                    let (from, length) = (usize::try_from(from).ok()?, usize::try_from(length).ok()?);
                    let end = from.checked_add(length).filter(|end| *end <= whole.len())?;
                    Some(Data::Memory(whole.slice(from..end)))
                };
                let parts: Option<Vec<Data>> = pieces.iter().map(part).collect();
                Ok(Data::joined(parts.ok_or(MISSING)?.iter()))
            }
        }
    }

    fn object(&mut self, record: ObjectRecord) -> Result<Object, String> {
        Ok(Object {
            data: self.data(&record.data)?,
            etag: record.etag,
            checksum: checksum_in(record.checksum),
            attributes: record.attributes,
            tags: record.tags,
            protection: record.protection,
            has_hold: record.has_hold,
        })
    }
}

fn checksum_in(mut of: BTreeMap<String, String>) -> Checksum {
    Checksum {
        checksum_crc32: of.remove("crc32"),
        checksum_crc32c: of.remove("crc32c"),
        checksum_crc64nvme: of.remove("crc64nvme"),
        checksum_sha1: of.remove("sha1"),
        checksum_sha256: of.remove("sha256"),
        ..Checksum::default()
    }
}

/// Restores documents of the store itself into a state.
///
/// # Errors
/// An error message about an invalid document. The state then contains a part of them.
pub(super) fn restore<'d>(
    state: &mut State,
    documents: impl IntoIterator<Item = &'d [u8]>,
    home: &Arc<Home>,
) -> Result<(), String> {
    read(state, documents, &mut Blobs::Own(home))
}

fn read<'d>(
    state: &mut State,
    documents: impl IntoIterator<Item = &'d [u8]>,
    blobs: &mut Blobs<'_>,
) -> Result<(), String> {
    for text in documents {
        let read: Result<Document, _> = serde_json::from_slice(text);
        let Document { sequence, changes } = read.map_err(|error| format!("a change isn't readable: {error}"))?;
        state.reach(sequence);
        changes.into_iter().try_for_each(|change| apply(state, change, blobs))?;
    }
    Ok(())
}

fn apply(state: &mut State, change: Change, blobs: &mut Blobs<'_>) -> Result<(), String> {
    match change {
        Change::Bucket(name, record) => {
            let new = || Bucket::new(&record.owner, &record.region, record.created);
            let bucket = state.buckets.entry(name).or_insert_with(new);
            (bucket.owner, bucket.guest, bucket.region) = (record.owner, record.guest, record.region);
            (bucket.created, bucket.tags) = (record.created, record.tags);
            (bucket.versioning, bucket.lock) = (record.versioning, record.lock);
        }
        Change::Version(name, key, record) => {
            let content = match record.object {
                Some(object) => Content::Object(Box::new(blobs.object(object)?)),
                None => Content::DeleteMarker,
            };
            let VersionRecord { sequence, is_null, modified, .. } = record;
            let version = Version { sequence, is_null, modified, content };
            let versions = bucket_of(state, &name)?.keys.entry(key).or_default();
            match versions.binary_search_by_key(&sequence, |version| version.sequence) {
                Ok(place) => versions[place] = version,
                Err(place) => versions.insert(place, version),
            }
        }
        Change::Upload(name, key, sequence, record) => {
            let template = blobs.object(record.template)?;
            let upload = Upload { initiated: record.initiated, template, parts: BTreeMap::new() };
            bucket_of(state, &name)?.uploads.entry((key, sequence)).or_insert(upload);
        }
        Change::Part(name, key, sequence, number, record) => {
            let data = blobs.data(&record.data)?;
            if let Some(upload) = bucket_of(state, &name)?.uploads.get_mut(&(key, sequence)) {
                upload.parts.insert(number, Part { data, etag: record.etag, modified: record.modified });
            }
        }
    }
    Ok(())
}

fn bucket_of<'s>(state: &'s mut State, name: &str) -> Result<&'s mut Bucket, String> {
    state.buckets.get_mut(name).ok_or_else(|| format!("there is no bucket {name}"))
}
