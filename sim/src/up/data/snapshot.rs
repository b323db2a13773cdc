//! Everything at once: into the directory when the journal has become long.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use super::frame;
use super::record::Record;
use super::{All, Data};

/// Bytes of a journal that are always left alone.
const LEAST: u64 = 16 << 20;
/// Bytes of records in one frame of a snapshot.
const AT_ONCE: usize = 1 << 20;

/// Writes records as frames of some size.
struct Records<W> {
    out: W,
    lines: Vec<u8>,
}

impl<W: Write> Records<W> {
    fn begin(mut out: W) -> io::Result<Self> {
        out.write_all(&frame::opening())?;
        Ok(Self { out, lines: Vec::new() })
    }

    fn add(&mut self, record: &Record) -> io::Result<()> {
        self.lines.extend_from_slice(&record.line());
        self.lines.push(b'\n');
        if self.lines.len() < AT_ONCE { Ok(()) } else { self.write_frame() }
    }

    fn write_frame(&mut self) -> io::Result<()> {
        let written = self.out.write_all(&frame::frame(&self.lines));
        self.lines.clear();
        written
    }

    /// The file is whole once this has come to its end: what `out` gathers is handed on.
    fn end(mut self) -> io::Result<()> {
        self.add(&Record::End)?;
        // A frame without content is none.
        if !self.lines.is_empty() {
            self.write_frame()?;
        }
        self.out.flush()
    }
}

/// Writes everything.
fn write(all: &All<'_>, out: impl Write) -> io::Result<()> {
    let mut records = Records::begin(out)?;
    records.add(&Record::Clock(all.ahead))?;
    for host in &all.hosts {
        records.add(&Record::Main(host.clone()))?;
    }
    records.add(&Record::Furnished(all.furnished))?;
    for kept in all.cluster.kept() {
        records.add(&Record::Object(kept))?;
    }
    for (name, stored) in &all.stores {
        records.add(&Record::Store { name: name.clone(), region: stored.region.clone() })?;
        for document in stored.store.whole(0).documents {
            records.add(&Record::Change { store: name.clone(), document })?;
        }
    }
    for issued in &all.tokens {
        records.add(&Record::Token(issued.clone()))?;
    }
    records.end()
}

impl Data {
    /// Waits until the journal is long for what a snapshot would hold.
    pub(in crate::up) async fn outgrown(&self) {
        let last = self.directory.numbers("snapshot").ok().and_then(|numbers| numbers.last().copied());
        let length =
            last.and_then(|number| fs::metadata(self.directory.snapshot(number)).ok()).map_or(0, |it| it.len());
        self.journal.longer_than(LEAST.max(length)).await;
    }

    /// Writes everything to a snapshot, from which a new journal goes on, and removes what is old.
    ///
    /// Records say how things are, so those that come while the snapshot is written may stand in it
    /// already: read after it, they make no difference. It counts once they are safe.
    ///
    /// # Errors
    /// In one sentence; what was kept before still counts then.
    pub(in crate::up) async fn compact(
        &self,
        all: impl FnOnce(&mut dyn FnMut(&All<'_>)) + Send + 'static,
    ) -> Result<(), String> {
        let failed = |error: io::Error| format!("can't write a snapshot: {error}");
        let compacting = self.compacting.clone().lock_owned().await;
        let number = self.journal.turn().await.map_err(failed)?;
        let (data, runtime) = (self.clone(), tokio::runtime::Handle::current());
        let written = tokio::task::spawn_blocking(move || {
            // Whoever waits for this goes on to its end.
            let _compacting = compacting;
            let path = data.directory.snapshot(number);
            data.directory.write(&path, |file| {
                let mut outcome = Ok(());
                all(&mut |all| outcome = write(all, io::BufWriter::new(&mut *file)));
                outcome?;
                runtime.block_on(data.journal.safe()).map_err(io::Error::other)
            })?;
            data.remove_before(number)
        });
        written.await.map_err(io::Error::other).and_then(|written| written).map_err(failed)
    }

    fn remove_before(&self, number: u64) -> io::Result<()> {
        type Named = fn(&super::directory::Directory, u64) -> std::path::PathBuf;
        let sorts: [(&str, Named); 2] =
            [("snapshot", super::directory::Directory::snapshot), ("journal", super::directory::Directory::journal)];
        for (sort, path) in sorts {
            let numbers = self.directory.numbers(sort).map_err(io::Error::other)?;
            let old = numbers.into_iter().filter(|it| *it < number);
            old.map(|it| path(&self.directory, it))
                .try_for_each(|path: std::path::PathBuf| fs::remove_file::<&Path>(&path))?;
        }
        self.directory.sync()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A snapshot of one host, whose name brings the records before the end to so many bytes.
    fn of_length(bytes: usize) -> Vec<u8> {
        let least = Record::Main(String::new()).line().len() + 1;
        let host = Record::Main("x".repeat(bytes - least));
        let mut out = Vec::new();
        let mut records = Records::begin(&mut out).expect("there is room");
        records.add(&host).expect("there is room");
        records.end().expect("there is room");
        out
    }

    #[test]
    fn a_snapshot_has_its_end_wherever_a_frame_ends() {
        let end = Record::End.line().len() + 1;
        for bytes in [AT_ONCE - end - 1, AT_ONCE - end, AT_ONCE - end + 1, AT_ONCE - 1, AT_ONCE, AT_ONCE + 1] {
            let file = of_length(bytes);
            let frames = frame::frames(&file).expect("it is whole");
            assert_eq!(frames.whole, file.len(), "{bytes} bytes");
            assert!(frames.contents.last().is_some_and(|last| last.ends_with(b"e \n")), "{bytes} bytes");
        }
    }

    /// Takes nothing.
    struct Full;

    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::StorageFull.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_snapshot_that_finds_no_room_for_its_end_is_none() {
        let records = Records::begin(io::BufWriter::new(Full)).expect("it is gathered");
        assert!(records.end().is_err());
    }
}
