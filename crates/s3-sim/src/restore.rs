//! A store made of what its keeper was told again.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use s3s::dto::Checksum;

use super::Store;
use super::data::{Data, Piece};
use super::keeper::Home;
use super::record::{self, Change, Document, ObjectRecord, PieceRecord, VersionRecord};
use super::state::{Bucket, Content, Object, Part, State, Upload, Version};

/// Where the blobs are that documents refer to.
#[derive(Clone, Copy, Debug)]
pub enum Sources<'a> {
    /// With the store's keeper, under their numbers.
    Own,
    /// With the store's keeper, under other numbers.
    Renamed(&'a BTreeMap<u64, u64>),
    /// In memory.
    Loose(&'a BTreeMap<u64, Bytes>),
}

/// The same while documents are read.
enum Blobs<'a> {
    Kept { home: &'a Arc<Home>, renamed: Option<&'a BTreeMap<u64, u64>> },
    Loose(&'a BTreeMap<u64, Bytes>),
}

impl Blobs<'_> {
    fn data(&self, pieces: &[PieceRecord]) -> Result<Data, String> {
        match self {
            Self::Kept { home, renamed } => {
                let piece = |&PieceRecord(id, from, length): &PieceRecord| {
                    let id = match renamed {
                        Some(renamed) => *renamed.get(&id).ok_or("the bytes of an object are missing")?,
                        None => id,
                    };
                    Ok(Piece { blob: home.blob(id), from, length })
                };
                pieces.iter().map(piece).collect::<Result<_, String>>().map(Data::Kept)
            }
            Self::Loose(bytes) => {
                let part = |&PieceRecord(id, from, length): &PieceRecord| {
                    let whole = bytes.get(&id)?;
                    let (from, length) = (usize::try_from(from).ok()?, usize::try_from(length).ok()?);
                    let end = from.checked_add(length).filter(|end| *end <= whole.len())?;
                    Some(Data::Memory(whole.slice(from..end)))
                };
                let parts: Option<Vec<Data>> = pieces.iter().map(part).collect();
                let parts = parts.ok_or("the bytes of an object are missing")?;
                Ok(Data::joined(parts.iter()))
            }
        }
    }

    fn object(&self, record: ObjectRecord) -> Result<Object, String> {
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

impl State {
    fn apply(&mut self, change: Change, blobs: &Blobs<'_>) -> Result<(), String> {
        // A change of what is gone by now, and will be told to be, has no place any more.
        let place = match &change {
            Change::Bucket(..) | Change::NoBucket(..) => None,
            Change::Version(name, ..) | Change::NoVersion(name, ..) | Change::Upload(name, ..) => Some(name),
            Change::NoUpload(name, ..) | Change::Part(name, ..) => Some(name),
        };
        if place.is_some_and(|name| !self.buckets.contains_key(name)) {
            return Ok(());
        }
        match change {
            Change::Bucket(name, record) => {
                let new = || Bucket::new(&record.owner, &record.region, record.created);
                let bucket = self.buckets.entry(name).or_insert_with(new);
                (bucket.owner, bucket.guest, bucket.region) = (record.owner, record.guest, record.region);
                (bucket.created, bucket.tags) = (record.created, record.tags);
                (bucket.versioning, bucket.lock) = (record.versioning, record.lock);
            }
            Change::NoBucket(name) => drop(self.buckets.remove(&name)),
            Change::Version(name, key, record) => {
                let content = match record.object {
                    Some(object) => Content::Object(Box::new(blobs.object(object)?)),
                    None => Content::DeleteMarker,
                };
                let VersionRecord { sequence, is_null, modified, .. } = record;
                let version = Version { sequence, is_null, modified, content };
                let versions = self.bucket_of(&name)?.keys.entry(key).or_default();
                match versions.binary_search_by_key(&sequence, |version| version.sequence) {
                    Ok(place) => versions[place] = version,
                    Err(place) => versions.insert(place, version),
                }
            }
            Change::NoVersion(name, key, sequence) => {
                let keys = &mut self.bucket_of(&name)?.keys;
                let Some(versions) = keys.get_mut(&key) else { return Ok(()) };
                versions.retain(|version| version.sequence != sequence);
                if versions.is_empty() {
                    keys.remove(&key);
                }
            }
            Change::Upload(name, key, sequence, record) => {
                let template = blobs.object(record.template)?;
                let upload = Upload { initiated: record.initiated, template, parts: BTreeMap::new() };
                self.bucket_of(&name)?.uploads.entry((key, sequence)).or_insert(upload);
            }
            Change::NoUpload(name, key, sequence) => drop(self.bucket_of(&name)?.uploads.remove(&(key, sequence))),
            Change::Part(name, key, sequence, number, record) => {
                let data = blobs.data(&record.data)?;
                if let Some(upload) = self.bucket_of(&name)?.uploads.get_mut(&(key, sequence)) {
                    upload.parts.insert(number, Part { data, etag: record.etag, modified: record.modified });
                }
            }
        }
        Ok(())
    }

    fn bucket_of(&mut self, name: &str) -> Result<&mut Bucket, String> {
        self.buckets.get_mut(name).ok_or_else(|| format!("there is no bucket {name}"))
    }
}

impl Store {
    /// Makes of documents what they tell of, on top of what the store holds. A store with a keeper
    /// takes blobs of that alone, one without none. The keeper is told of what is renamed.
    ///
    /// # Errors
    /// In one sentence, for what is no such document; the store then holds a part of it.
    pub fn restore<'d>(
        &self,
        documents: impl IntoIterator<Item = &'d [u8]>,
        sources: Sources<'_>,
    ) -> Result<(), String> {
        let mut state = self.state();
        let blobs = match (self.home(), sources) {
            (Some(home), Sources::Own) => Blobs::Kept { home, renamed: None },
            (Some(home), Sources::Renamed(renamed)) => Blobs::Kept { home, renamed: Some(renamed) },
            (None, Sources::Loose(loose)) => Blobs::Loose(loose),
            _ => return Err("the bytes of objects are somewhere else".to_owned()),
        };
        // What was let go of on the way may be referred to again.
        let dropped = self.home().map(|home| home.take_dropped());
        for text in documents {
            let read: Result<Document, _> = serde_json::from_slice(text);
            let Document { sequence, changes } = read.map_err(|error| format!("a change isn't readable: {error}"))?;
            state.reach(sequence);
            changes.into_iter().try_for_each(|change| state.apply(change, &blobs))?;
        }
        if let (Some(home), Some(dropped)) = (self.home(), dropped) {
            home.set_dropped(dropped);
            if matches!(sources, Sources::Renamed(_)) {
                record::whole(&state, 0).documents.into_iter().for_each(|document| home.keeper.keep(document));
            }
        }
        Ok(())
    }

    /// The blobs of its keeper that it refers to, with how many bytes each has at least.
    pub fn blobs(&self) -> BTreeMap<u64, u64> {
        let mut all = BTreeMap::new();
        for piece in self.state().pieces() {
            let least: &mut u64 = all.entry(piece.blob.id).or_default();
            *least = piece.from.saturating_add(piece.length).max(*least);
        }
        all
    }
}
