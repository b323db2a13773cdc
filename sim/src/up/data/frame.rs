//! The format of a snapshot: a line with the version, then frames with checksums. Pure functions.
//!
//! A frame is three little-endian 32-bit numbers and the content. The numbers are the length of the
//! content, its checksum, and the checksum of the eight bytes before.

/// CRC-32 as in Ethernet and gzip.
use crc_fast::crc32_iso_hdlc as crc32;

/// The start of a file, before its version.
const MARK: &str = "stowage-sim data ";
/// The version of the snapshot format.
pub(super) const VERSION: u32 = 1;
/// Maximum length of the first line.
const LONGEST_LINE: usize = 64;
/// Bytes of a frame before its content.
pub(super) const HEAD: usize = 12;

/// Returns the first line of a file of this version.
pub(super) fn opening(version: u32) -> Vec<u8> {
    format!("{MARK}{version}\n").into_bytes()
}

/// Returns a frame with this content. The caller limits it to 4 GiB.
pub(super) fn frame(content: &[u8]) -> Vec<u8> {
    let length = u32::try_from(content.len()).unwrap_or(u32::MAX);
    let mut frame = Vec::with_capacity(HEAD + content.len());
    frame.extend_from_slice(&length.to_le_bytes());
    frame.extend_from_slice(&crc32(content).to_le_bytes());
    frame.extend_from_slice(&crc32(&frame).to_le_bytes());
    frame.extend_from_slice(content);
    frame
}

/// A defect of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Flaw {
    /// The file is not one of a simulator.
    Foreign,
    /// The file has another version.
    Other(u32),
    /// The file is damaged at this byte.
    Broken(usize),
}

/// Maximum length of a frame's content in a file that arrives in parts.
const LONGEST: usize = 256 << 20;

/// A file that arrives in parts.
#[derive(Debug, Default)]
pub(super) struct Incoming {
    bytes: Vec<u8>,
    /// Number of buffered bytes that were read.
    read: usize,
    /// Number of bytes that were dropped from the buffer.
    before: usize,
    opened: bool,
}

impl Incoming {
    /// Appends bytes.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.read);
        self.before += self.read;
        self.read = 0;
        self.bytes.extend_from_slice(bytes);
    }

    /// Returns the content of the next frame, or `None` until it is complete.
    ///
    /// # Errors
    /// Returns the defect of the file.
    pub(super) fn next_content(&mut self) -> Result<Option<Vec<u8>>, Flaw> {
        if !self.opened {
            let Some(first) = first(&self.bytes, VERSION)? else { return Ok(None) };
            (self.opened, self.read) = (true, first);
        }
        let rest = &self.bytes[self.read..];
        let Some(head) = rest.get(..HEAD) else { return Ok(None) };
        let broken = Flaw::Broken(self.before + self.read);
        let length = head[..4].try_into().ok().and_then(|length| usize::try_from(u32::from_le_bytes(length)).ok());
        let length = length.filter(|length| *length <= LONGEST).ok_or(broken.clone())?;
        if head[8..] != crc32(&head[..8]).to_le_bytes() {
            return Err(broken);
        }
        if rest.len() < HEAD + length {
            return Ok(None);
        }
        let content = content(rest).ok_or(broken)?.to_vec();
        self.read += HEAD + length;
        Ok(Some(content))
    }
}

/// Returns the end of the first line of a file of this version; `None` if the line is incomplete.
///
/// # Errors
/// Returns the defect of the line.
pub(super) fn first(file: &[u8], version: u32) -> Result<Option<usize>, Flaw> {
    let begun = &file[..file.len().min(LONGEST_LINE)];
    let Some(end) = begun.iter().position(|byte| *byte == b'\n') else {
        return if opening(version).starts_with(file) { Ok(None) } else { Err(Flaw::Foreign) };
    };
    let line = std::str::from_utf8(&begun[..end]).map_err(|_| Flaw::Foreign)?;
    match line.strip_prefix(MARK).and_then(|version| version.parse().ok()) {
        Some(found) if found == version => Ok(Some(end + 1)),
        Some(other) => Err(Flaw::Other(other)),
        None => Err(Flaw::Foreign),
    }
}

/// Returns the content of the frame at the start of these bytes, if it is complete and undamaged.
fn content(bytes: &[u8]) -> Option<&[u8]> {
    let word = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    if crc32(bytes.get(..8)?) != word(8)? {
        return None;
    }
    let end = HEAD.checked_add(usize::try_from(word(0)?).ok()?)?;
    let content = bytes.get(HEAD..end)?;
    (!content.is_empty() && crc32(content) == word(4)?).then_some(content)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    const CONTENTS: [&[u8]; 3] = [b"one\n", b"two and more\n", b"three\n"];

    fn file() -> Vec<u8> {
        CONTENTS.iter().fold(opening(VERSION), |file, content| [file, frame(content)].concat())
    }

    /// Returns all contents of a file that arrives in parts of this size.
    pub(in crate::up::data) fn contents(file: &[u8], part: usize) -> Result<Vec<Vec<u8>>, Flaw> {
        let (mut incoming, mut contents) = (Incoming::default(), Vec::new());
        for part in file.chunks(part) {
            incoming.push(part);
            while let Some(content) = incoming.next_content()? {
                contents.push(content);
            }
        }
        Ok(contents)
    }

    #[test]
    fn checksums_are_those_of_everybody() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
    }

    #[test]
    fn a_file_that_comes_byte_by_byte_is_read_and_a_flipped_bit_in_it_told_of() {
        let file = file();
        let read = |file: &[u8]| contents(file, 1);
        assert_eq!(read(&file), Ok(CONTENTS.map(<[u8]>::to_vec).to_vec()));
        for bit in opening(VERSION).len() * 8..file.len() * 8 {
            let mut damaged = file.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(read(&damaged) != Ok(CONTENTS.map(<[u8]>::to_vec).to_vec()), "bit {bit}");
        }
    }

    #[test]
    fn newer_files_and_those_of_others_are_told_apart() {
        let read = |file: &[u8]| contents(file, 100).expect_err("it is refused");
        assert_eq!(read(b"stowage-sim data 2\n"), Flaw::Other(2));
        assert_eq!(read(b"stowage-sim data x\n"), Flaw::Foreign);
        assert_eq!(read(b"{}\n"), Flaw::Foreign);
        assert_eq!(read(&[0xff; 100]), Flaw::Foreign);
    }
}
