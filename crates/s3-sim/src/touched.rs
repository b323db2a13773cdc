//! Places in a store that an operation may change, determined in advance, so that only these are
//! reported to the keeper.

use s3s::dto::*;

use super::record::{Change, Numbers, UPLOAD, VERSION, bucket_out, place};
use super::state::{Bucket, State, upload_sequence};

/// A place that an operation may change.
pub(super) enum Touched {
    /// Existence and settings of a bucket.
    Bucket(String),
    /// The set of versions of a key.
    Key(String, String),
    /// The metadata of the versions of a key.
    Versions(String, String),
    /// The set of uploads to a key.
    Uploads(String, String),
    /// A part of an upload.
    Part(String, String, String, i32),
}

/// An input that determines the places changed by its operation.
pub(super) trait Touches {
    /// Returns every place that the operation may change.
    fn touches(&self) -> Vec<Touched>;
}

macro_rules! touches {
    ($($input:ty: $of:ident => $touched:expr;)*) => {
        $(impl Touches for $input {
            fn touches(&self) -> Vec<Touched> {
                let $of = self;
                $touched
            }
        })*
    };
}

macro_rules! bucket {
    ($of:ident) => {
        vec![Touched::Bucket($of.bucket.clone())]
    };
}

macro_rules! at_key {
    ($of:ident: $($what:ident)*) => {
        vec![$(Touched::$what($of.bucket.clone(), $of.key.clone())),*]
    };
}

macro_rules! part {
    ($of:ident) => {
        vec![Touched::Part($of.bucket.clone(), $of.key.clone(), $of.upload_id.clone(), $of.part_number)]
    };
}

touches! {
    CreateBucketInput: of => bucket!(of);
    DeleteBucketInput: of => bucket!(of);
    PutBucketTaggingInput: of => bucket!(of);
    DeleteBucketTaggingInput: of => bucket!(of);
    PutBucketVersioningInput: of => bucket!(of);
    PutObjectLockConfigurationInput: of => bucket!(of);
    PutObjectInput: of => at_key!(of: Key);
    CopyObjectInput: of => at_key!(of: Key);
    DeleteObjectInput: of => at_key!(of: Key);
    DeleteObjectsInput: of => {
        let keys = of.delete.objects.iter().map(|object| object.key.clone());
        keys.map(|key| Touched::Key(of.bucket.clone(), key)).collect()
    };
    PutObjectTaggingInput: of => at_key!(of: Versions);
    DeleteObjectTaggingInput: of => at_key!(of: Versions);
    PutObjectRetentionInput: of => at_key!(of: Versions);
    PutObjectLegalHoldInput: of => at_key!(of: Versions);
    CreateMultipartUploadInput: of => at_key!(of: Uploads);
    CompleteMultipartUploadInput: of => at_key!(of: Key Uploads);
    AbortMultipartUploadInput: of => at_key!(of: Uploads);
    UploadPartInput: of => part!(of);
    UploadPartCopyInput: of => part!(of);
}

/// Previous state of the touched places: the numbers of versions and uploads.
pub(super) struct Before {
    touched: Vec<Touched>,
    numbers: Vec<Vec<u64>>,
}

fn numbers(state: &State, touched: &Touched) -> Vec<u64> {
    let found = |name: &String| state.buckets.get(name);
    match touched {
        Touched::Key(name, key) => {
            let versions = found(name).and_then(|bucket| bucket.keys.get(key)).into_iter().flatten();
            versions.map(|version| version.sequence).collect()
        }
        Touched::Uploads(name, key) => found(name).map(|bucket| uploads(bucket, key).collect()).unwrap_or_default(),
        Touched::Bucket(_) | Touched::Versions(..) | Touched::Part(..) => Vec::new(),
    }
}

fn uploads(bucket: &Bucket, key: &str) -> impl Iterator<Item = u64> {
    let of_key = (key.to_owned(), 0)..=(key.to_owned(), u64::MAX);
    bucket.uploads.range(of_key).map(|((_, sequence), _)| *sequence)
}

impl Before {
    /// Records the state of places before they are changed.
    pub(super) fn new(state: &State, touched: Vec<Touched>) -> Self {
        let numbers = touched.iter().map(|touched| numbers(state, touched)).collect();
        Self { touched, numbers }
    }

    /// Returns the places that no longer exist, and the new content of the others.
    pub(super) fn changes(&self, state: &State) -> (Vec<Vec<u8>>, Vec<Change>) {
        // A store with a keeper has no bytes that are only in memory.
        let mut loose = Vec::new();
        let mut as_kept = Numbers { loose: &mut loose, next: 0 };
        let (mut gone, mut changes) = (Vec::new(), Vec::new());
        for (touched, before) in self.touched.iter().zip(&self.numbers) {
            match touched {
                Touched::Bucket(name) => match state.buckets.get(name) {
                    Some(bucket) => changes.push(Change::Bucket(name.clone(), bucket_out(bucket))),
                    None => gone.push(place(&[name])),
                },
                Touched::Key(name, key) => {
                    let now = numbers(state, touched);
                    let removed = before.iter().filter(|sequence| !now.contains(sequence));
                    gone.extend(removed.map(|sequence| place(&(name, VERSION, key, sequence))));
                    let versions =
                        state.buckets.get(name).and_then(|bucket| bucket.keys.get(key)).into_iter().flatten();
                    let new = versions.filter(|version| !before.contains(&version.sequence));
                    changes.extend(
                        new.map(|version| Change::Version(name.clone(), key.clone(), as_kept.version(version))),
                    );
                }
                Touched::Versions(name, key) => {
                    let versions =
                        state.buckets.get(name).and_then(|bucket| bucket.keys.get(key)).into_iter().flatten();
                    changes.extend(
                        versions.map(|version| Change::Version(name.clone(), key.clone(), as_kept.version(version))),
                    );
                }
                Touched::Uploads(name, key) => {
                    let Some(bucket) = state.buckets.get(name) else { continue };
                    let now: Vec<u64> = uploads(bucket, key).collect();
                    let over = before.iter().filter(|sequence| !now.contains(sequence));
                    gone.extend(over.map(|sequence| place(&(name, UPLOAD, key, sequence))));
                    for sequence in now.iter().filter(|sequence| !before.contains(sequence)) {
                        let Some(upload) = bucket.uploads.get(&(key.clone(), *sequence)) else { continue };
                        changes.push(Change::Upload(name.clone(), key.clone(), *sequence, as_kept.upload(upload)));
                    }
                }
                Touched::Part(name, key, id, number) => {
                    let Some(sequence) = upload_sequence(id) else { continue };
                    let upload = state.buckets.get(name).and_then(|it| it.uploads.get(&(key.clone(), sequence)));
                    let Some(part) = upload.and_then(|upload| upload.parts.get(number)) else { continue };
                    changes.push(Change::Part(name.clone(), key.clone(), sequence, *number, as_kept.part(part)));
                }
            }
        }
        (gone, changes)
    }
}
