//! Snapshots: the state of a simulator in one file, which any other simulator can load. It contains
//! the bytes of objects, as frames that begin with `b`, a blob's number and an offset in it, and
//! then the records of everything else.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use bytes::{Bytes, BytesMut};
use kube_front::Issued;
use kube_sim::Kept;
use s3_sim::{BlobReader, BlobWriter, Contents, Sources, Store, Whole};

use super::blobs::{Blobs, Writer};
use super::frame::{self, Flaw, Incoming};
use super::record::Record;
use super::{All, Data};

/// Maximum size in bytes of a part of a blob, and approximate size of the records in a frame.
const AT_ONCE: usize = 1 << 20;

/// The content of a snapshot, taken at one moment.
pub(in crate::up) struct Portable {
    records: Vec<Record>,
    stores: Vec<(Record, String, Whole)>,
    blobs: Option<Blobs>,
}

impl Portable {
    /// Takes a snapshot. The simulator must not change meanwhile. The bytes of its objects are read
    /// from `data`, if there is a data directory.
    pub(in crate::up) fn new(all: &All<'_>, data: Option<&Data>) -> Self {
        let mut records = vec![Record::Clock(all.ahead), Record::Furnished(all.furnished)];
        records.extend(all.hosts.iter().cloned().map(Record::Main));
        records.extend(all.cluster.kept().into_iter().map(Record::Object));
        records.extend(all.tokens.iter().cloned().map(Record::Token));
        let mut first = 1;
        let stores = all.stores.iter().map(|(name, stored)| {
            let whole = stored.store.whole(first);
            first += whole.loose.len() as u64;
            (Record::Store { name: name.clone(), region: stored.region.clone() }, name.clone(), whole)
        });
        let stores = stores.collect();
        Self { records, stores, blobs: data.map(|data| data.blobs.clone()) }
    }

    /// Writes the file in parts, until `out` returns an error.
    ///
    /// # Errors
    /// Returns the error of `out`, or an error if the bytes of an object can't be read.
    pub(in crate::up) fn write(self, mut out: impl FnMut(Vec<u8>) -> io::Result<()>) -> io::Result<()> {
        out(frame::opening(frame::VERSION))?;
        for (_, _, whole) in &self.stores {
            for id in whole.blobs.keys() {
                self.blob(*id, &mut out)?;
            }
            for (id, bytes) in &whole.loose {
                for (part, chunk) in bytes.chunks(AT_ONCE).enumerate() {
                    out(blob_frame(*id, (part * AT_ONCE) as u64, chunk))?;
                }
            }
        }
        let mut lines = Vec::new();
        let of_stores = self.stores.iter().flat_map(|(store, name, whole)| {
            let change = |document: &Vec<u8>| Record::Change { store: name.clone(), document: document.clone() };
            std::iter::once(store.clone()).chain(whole.documents.iter().map(change))
        });
        for record in self.records.iter().cloned().chain(of_stores).chain([Record::End]) {
            lines.extend_from_slice(&record.line());
            lines.push(b'\n');
            if lines.len() >= AT_ONCE {
                out(frame::frame(&std::mem::take(&mut lines)))?;
            }
        }
        if lines.is_empty() { Ok(()) } else { out(frame::frame(&lines)) }
    }

    fn blob(&self, id: u64, out: &mut impl FnMut(Vec<u8>) -> io::Result<()>) -> io::Result<()> {
        let Some(blobs) = &self.blobs else { return Ok(()) };
        let (reader, length) = blobs.measure(id)?;
        let mut at = 0;
        while at < length {
            let part = usize::try_from(length - at).unwrap_or(AT_ONCE).min(AT_ONCE);
            let mut chunk = vec![0; part];
            reader.read_at(at, &mut chunk)?;
            out(blob_frame(id, at, &chunk))?;
            at += part as u64;
        }
        Ok(())
    }
}

fn blob_frame(id: u64, at: u64, bytes: &[u8]) -> Vec<u8> {
    frame::frame(&[format!("b {id} {at}\n").as_bytes(), bytes].concat())
}

/// A store of a snapshot.
#[derive(Debug, Default)]
pub(in crate::up) struct Brought {
    pub(in crate::up) region: String,
    pub(in crate::up) documents: Vec<Vec<u8>>,
}

/// A snapshot during and after reading.
pub(in crate::up) struct Reading {
    incoming: Incoming,
    blobs: Option<Blobs>,
    /// The blob that is being written: its number in the snapshot, and its size so far in bytes.
    writing: Option<(u64, Writer, u64)>,
    /// New numbers and sizes of blobs. The blobs are removed when this is dropped, unless a store
    /// has taken them over.
    renamed: BTreeMap<u64, (u64, u64)>,
    /// Blobs in memory, while they are read.
    loose: BTreeMap<u64, BytesMut>,
    /// Blobs in memory, once all are complete.
    frozen: BTreeMap<u64, Bytes>,
    pub(in crate::up) objects: Vec<Kept>,
    pub(in crate::up) tokens: Vec<Issued>,
    pub(in crate::up) stores: BTreeMap<String, Brought>,
    pub(in crate::up) hosts: Vec<String>,
    pub(in crate::up) ahead: i64,
    ended: bool,
}

fn told(flaw: &Flaw) -> String {
    match flaw {
        Flaw::Foreign => "it isn't a snapshot of a simulator".to_owned(),
        Flaw::Other(version) => {
            format!(
                "it was written by a newer stowage-sim, in form {version} of data; this one reads form {}",
                frame::VERSION
            )
        }
        Flaw::Broken(at) => format!("it is damaged at byte {at}"),
    }
}

impl Reading {
    /// Begins to read. The bytes of objects are written to the data directory, if there is one.
    pub(in crate::up) fn new(data: Option<&Data>) -> Self {
        Self {
            incoming: Incoming::default(),
            blobs: data.map(|data| data.blobs.clone()),
            writing: None,
            renamed: BTreeMap::new(),
            loose: BTreeMap::new(),
            frozen: BTreeMap::new(),
            objects: Vec::new(),
            tokens: Vec::new(),
            stores: BTreeMap::new(),
            hosts: Vec::new(),
            ahead: 0,
            ended: false,
        }
    }

    /// Reads further bytes of the file.
    ///
    /// # Errors
    /// Returns an error message if the bytes are damaged or follow the end, or a blob can't be
    /// written.
    pub(in crate::up) fn push(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.incoming.push(bytes);
        while let Some(content) = self.incoming.next_content().map_err(|flaw| told(&flaw))? {
            if self.ended {
                return Err("something follows its end".to_owned());
            }
            if let Some(rest) = content.strip_prefix(b"b ") {
                self.blob(rest)?;
                continue;
            }
            for line in content.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
                self.take(Record::read(line)?)?;
            }
        }
        Ok(())
    }

    fn blob(&mut self, content: &[u8]) -> Result<(), String> {
        let no_blob = || "a blob in it makes no sense".to_owned();
        let end = content.iter().position(|byte| *byte == b'\n').ok_or_else(no_blob)?;
        let head = std::str::from_utf8(&content[..end]).ok().and_then(|head| head.split_once(' '));
        let (id, at) =
            head.and_then(|(id, at)| Some((id.parse::<u64>().ok()?, at.parse::<u64>().ok()?))).ok_or_else(no_blob)?;
        let bytes = &content[end + 1..];
        let Some(blobs) = self.blobs.clone() else {
            let loose = self.loose.entry(id).or_default();
            if loose.len() as u64 != at {
                return Err(no_blob());
            }
            loose.extend_from_slice(bytes);
            return Ok(());
        };
        let no_room = |error: io::Error| format!("its blobs can't be written: {error}");
        if self.writing.as_ref().is_none_or(|(open, ..)| *open != id) {
            self.finish().map_err(no_room)?;
            if self.renamed.contains_key(&id) {
                return Err(no_blob());
            }
            self.writing = Some((id, blobs.begin().map_err(no_room)?, 0));
        }
        let Some((_, writer, length)) = &mut self.writing else { return Ok(()) };
        if *length != at {
            return Err(no_blob());
        }
        *length += bytes.len() as u64;
        writer.write(bytes).map_err(no_room)
    }

    /// Finishes the blob that is being written.
    fn finish(&mut self) -> io::Result<()> {
        if let Some((id, writer, length)) = self.writing.take() {
            self.renamed.insert(id, (Box::new(writer).finish()?, length));
        }
        Ok(())
    }

    fn take(&mut self, record: Record) -> Result<(), String> {
        match record {
            Record::Object(kept) => self.objects.push(kept),
            Record::Store { name, region } => self.stores.entry(name).or_default().region = region,
            Record::Change { store, document } => {
                let brought = self.stores.get_mut(&store).ok_or_else(|| format!("there is no store {store}"))?;
                brought.documents.push(document);
            }
            Record::Token(issued) => self.tokens.push(issued),
            Record::Clock(ahead) => self.ahead = ahead,
            Record::Main(host) => self.hosts.push(host),
            Record::Furnished(_) => {}
            Record::End => self.ended = true,
            Record::Version(_) => return Err("a record of it makes no sense".to_owned()),
        }
        Ok(())
    }

    /// Ends reading. The file has to be complete.
    ///
    /// # Errors
    /// Returns an error message if the file is cut off, or the blobs can't be written.
    pub(in crate::up) fn whole(mut self) -> Result<Self, String> {
        self.finish().map_err(|error| format!("its blobs can't be written: {error}"))?;
        self.frozen = std::mem::take(&mut self.loose).into_iter().map(|(id, bytes)| (id, bytes.freeze())).collect();
        if self.ended { Ok(self) } else { Err("it is cut off".to_owned()) }
    }

    /// Reads the new content of a store, without changing the store.
    ///
    /// # Errors
    /// Returns an error message if a document is invalid or refers to missing bytes.
    pub(in crate::up) fn read<'d>(
        &self,
        store: &Store,
        documents: impl IntoIterator<Item = &'d [u8]>,
    ) -> Result<Contents, String> {
        let kept = self.blobs.as_ref().map(|_| Sources::Renamed(&self.renamed));
        store.read(documents, kept.unwrap_or(Sources::Loose(&self.frozen)))
    }

    /// Hands these blobs over to a store. Dropping the reader does not remove them any more.
    pub(in crate::up) fn hand_over(&mut self, taken: &BTreeSet<u64>) {
        self.renamed.retain(|_, (id, _)| !taken.contains(id));
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        if let Some(blobs) = &self.blobs {
            let left: Vec<u64> = self.renamed.values().map(|(id, _)| *id).collect();
            blobs.remove(&left);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use stowage_operator::api::Endpoint;
    use tempfile::TempDir;

    use super::*;
    use crate::up::kinds::Kinds;
    use crate::up::simulator::Simulator;

    fn simulator(data: Option<&Path>) -> Simulator {
        let endpoint = |url| Endpoint::parse(url).expect("it is one");
        let (gateway, store) = (endpoint("http://127.0.0.1:9000"), endpoint("http://127.0.0.1:9001"));
        let new = Simulator::new(gateway, &store, data, Kinds::Own);
        new.expect("it can be made").0
    }

    fn saved(simulator: &Simulator) -> Vec<u8> {
        let mut file = Vec::new();
        let written = Portable::new(&simulator.all(), simulator.data()).write(|part| {
            file.extend(part);
            Ok(())
        });
        written.expect("it can be read");
        file
    }

    async fn load(simulator: &Simulator, file: &[u8]) -> Result<(), String> {
        let mut reading = Reading::new(simulator.data());
        reading.push(file)?;
        simulator.go_on_from(reading.whole()?).await
    }

    /// Returns the file with a text replaced in its frames.
    fn with(file: &[u8], before: &str, after: &str) -> Vec<u8> {
        let mut changed = frame::opening(frame::VERSION);
        for content in frame::tests::contents(file, file.len()).expect("it is whole") {
            let text = std::str::from_utf8(&content).expect("all in it is text");
            changed.extend(frame::frame(text.replace(before, after).as_bytes()));
        }
        assert_ne!(changed, file, "{before} is in it");
        changed
    }

    /// Returns the number of blobs in a data directory.
    fn blobs(data: &Path) -> usize {
        let parts = std::fs::read_dir(data.join("blobs")).expect("it is there");
        let blobs =
            parts.map(|part| std::fs::read_dir(part.expect("it is there").path()).expect("it is there").count());
        blobs.sum()
    }

    #[tokio::test]
    async fn a_snapshot_that_is_refused_changes_nothing_and_leaves_nothing() {
        for kept in [false, true] {
            let folder = TempDir::new().expect("there is room");
            let simulator = simulator(kept.then(|| folder.path()));
            let store = simulator.store();
            store.put_bucket("ann", "photos");
            store.put_object("photos", "a", "seen").expect("there is room");
            let good = saved(&simulator);
            store.put_object("photos", "b", "since then").expect("there is room");
            let before = saved(&simulator);
            let bad = [
                // A piece that exceeds its blob, and one of a missing blob.
                with(&good, "[1,0,4]", "[1,0,5]"),
                with(&good, "[1,0,4]", "[2,0,4]"),
                // A blob that doesn't start at offset 0, and one that occurs twice.
                with(&good, "b 1 0\n", "b 1 1\n"),
                [
                    &frame::opening(frame::VERSION)[..],
                    &blob_frame(1, 0, b"seen"),
                    &blob_frame(2, 0, b"x"),
                    &good[frame::opening(frame::VERSION).len()..],
                ]
                .concat(),
                // A change that can't be parsed, and an object under the name of another one.
                with(&good, "\"changes\":", "\"changed\":"),
                with(&good, "\"kube-system\"] {", "\"kube-systems\"] {"),
            ];
            for (number, bad) in bad.iter().enumerate() {
                assert!(load(&simulator, bad).await.is_err(), "{number}");
                assert!(saved(&simulator) == before, "{number} has changed something");
                assert!(!kept || blobs(folder.path()) == 2, "{number} has left something");
            }
            assert_eq!(load(&simulator, &good).await, Ok(()));
            let objects = BTreeMap::from([("a".to_owned(), Bytes::from_static(b"seen"))]);
            assert_eq!(store.objects("photos"), objects);
        }
    }
}
