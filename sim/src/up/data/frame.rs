//! The form of a file of records: a line that says what it is, then frames with checksums. Pure.
//!
//! A frame is what was written at once: its length, the checksum of its content, the checksum of
//! these eight bytes, all in four bytes each with the least first, and the content.
//!
//! Each frame is safe before the next one is begun. So one that isn't whole is the last, and nobody
//! was told of anything in it: it can be dropped. Where a whole frame follows one that is broken,
//! the file was damaged, and what it held was told to somebody.

/// What a file of records begins with; the version of the form comes after it.
const MARK: &str = "stowage-sim data ";
/// The version that is written, and the highest that is read.
pub(super) const VERSION: u32 = 1;
/// Longest line that a file begins with.
const LONGEST_LINE: usize = 64;
/// Bytes of a frame before its content.
pub(super) const HEAD: usize = 12;

/// The line that a file begins with.
pub(super) fn opening() -> Vec<u8> {
    format!("{MARK}{VERSION}\n").into_bytes()
}

/// A frame of this content; of 4 GiB at most, which is looked at by whoever gathers it.
pub(super) fn frame(content: &[u8]) -> Vec<u8> {
    let length = u32::try_from(content.len()).unwrap_or(u32::MAX);
    let mut frame = Vec::with_capacity(HEAD + content.len());
    frame.extend_from_slice(&length.to_le_bytes());
    frame.extend_from_slice(&crc32(content).to_le_bytes());
    frame.extend_from_slice(&crc32(&frame).to_le_bytes());
    frame.extend_from_slice(content);
    frame
}

/// What is wrong with a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Flaw {
    /// It isn't one of records.
    Foreign,
    /// It is of a newer version.
    Newer(u32),
    /// It is damaged at this byte, and whole records follow.
    Broken(usize),
}

/// The frames of a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Frames<'a> {
    /// What each holds.
    pub(super) contents: Vec<&'a [u8]>,
    /// How many bytes of the file are whole; what follows was never finished.
    pub(super) whole: usize,
}

/// Reads a file. Of one that was never finished it takes what is whole, which may be nothing.
///
/// # Errors
/// What is wrong with it.
pub(super) fn frames(file: &[u8]) -> Result<Frames<'_>, Flaw> {
    let Some(mut at) = first(file)? else { return Ok(Frames { contents: Vec::new(), whole: 0 }) };
    let mut contents = Vec::new();
    while at < file.len() {
        match content(&file[at..]) {
            Some(content) => {
                contents.push(content);
                at += HEAD + content.len();
            }
            None if (at + 1..file.len()).any(|later| content(&file[later..]).is_some()) => {
                return Err(Flaw::Broken(at));
            }
            None => break,
        }
    }
    Ok(Frames { contents, whole: at })
}

/// Longest content that is waited for of a file that comes in parts.
const LONGEST: usize = 256 << 20;

/// A file that comes in parts, and has to be whole.
#[derive(Debug, Default)]
pub(super) struct Incoming {
    bytes: Vec<u8>,
    /// How many of them were read.
    read: usize,
    /// How many were let go of before.
    before: usize,
    opened: bool,
}

impl Incoming {
    /// Adds bytes.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.read);
        self.before += self.read;
        self.read = 0;
        self.bytes.extend_from_slice(bytes);
    }

    /// The content of the next frame, once it is there.
    ///
    /// # Errors
    /// What is wrong with the file.
    pub(super) fn next_content(&mut self) -> Result<Option<Vec<u8>>, Flaw> {
        if !self.opened {
            let Some(first) = first(&self.bytes)? else { return Ok(None) };
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

/// Where the first frame begins; `None` where the opening line was never finished.
fn first(file: &[u8]) -> Result<Option<usize>, Flaw> {
    let begun = &file[..file.len().min(LONGEST_LINE)];
    let Some(end) = begun.iter().position(|byte| *byte == b'\n') else {
        return if opening().starts_with(file) { Ok(None) } else { Err(Flaw::Foreign) };
    };
    let line = std::str::from_utf8(&begun[..end]).map_err(|_| Flaw::Foreign)?;
    let version = line.strip_prefix(MARK).and_then(|version| version.parse().ok()).ok_or(Flaw::Foreign)?;
    if version > VERSION { Err(Flaw::Newer(version)) } else { Ok(Some(end + 1)) }
}

/// The content of the frame that these bytes begin with, if it is a whole one.
fn content(bytes: &[u8]) -> Option<&[u8]> {
    let word = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    if crc32(bytes.get(..8)?) != word(8)? {
        return None;
    }
    let end = HEAD.checked_add(usize::try_from(word(0)?).ok()?)?;
    let content = bytes.get(HEAD..end)?;
    (!content.is_empty() && crc32(content) == word(4)?).then_some(content)
}

/// CRC-32 as of Ethernet and gzip, byte by byte.
fn crc32(bytes: &[u8]) -> u32 {
    const TABLE: [u32; 256] = table();
    let step = |crc: u32, byte: &u8| (crc >> 8) ^ TABLE[usize::from(crc.to_le_bytes()[0] ^ byte)];
    !bytes.iter().fold(!0, step)
}

const fn table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut index = 0;
    while index < 256 {
        #[expect(clippy::cast_possible_truncation, reason = "it is below 256")]
        let mut crc = index as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 { (crc >> 1) ^ 0xedb8_8320 } else { crc >> 1 };
            bit += 1;
        }
        table[index] = crc;
        index += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONTENTS: [&[u8]; 3] = [b"one\n", b"two and more\n", b"three\n"];

    fn file() -> Vec<u8> {
        CONTENTS.iter().fold(opening(), |file, content| [file, frame(content)].concat())
    }

    #[test]
    fn checksums_are_those_of_everybody() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
    }

    #[test]
    fn what_was_written_is_read() {
        let file = file();
        assert_eq!(frames(&file), Ok(Frames { contents: CONTENTS.to_vec(), whole: file.len() }));
    }

    #[test]
    fn a_last_frame_that_is_torn_at_any_byte_is_dropped_and_nothing_else() {
        let file = file();
        let last = file.len() - HEAD - CONTENTS[2].len();
        for end in last..file.len() {
            assert_eq!(frames(&file[..end]), Ok(Frames { contents: CONTENTS[..2].to_vec(), whole: last }), "{end}");
            // After a loss of power the rest may be there and empty.
            let empty = [&file[..end], &vec![0; file.len() - end][..]].concat();
            assert_eq!(frames(&empty).map(|frames| frames.whole), Ok(last), "{end}");
        }
    }

    #[test]
    fn a_flipped_bit_before_the_last_frame_is_told_of() {
        let file = file();
        let last = file.len() - HEAD - CONTENTS[2].len();
        for bit in opening().len() * 8..last * 8 {
            let mut damaged = file.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(matches!(frames(&damaged), Err(Flaw::Broken(at)) if at <= bit / 8), "bit {bit}");
        }
    }

    #[test]
    fn a_file_that_was_hardly_begun_is_empty() {
        let opening = opening();
        for end in 0..=opening.len() {
            assert_eq!(frames(&opening[..end]).map(|frames| frames.contents), Ok(Vec::new()), "{end}");
        }
    }

    #[test]
    fn a_file_that_comes_byte_by_byte_is_read_and_a_flipped_bit_in_it_told_of() {
        let file = file();
        let read = |file: &[u8]| {
            let (mut incoming, mut contents) = (Incoming::default(), Vec::new());
            for byte in file {
                incoming.push(&[*byte]);
                contents.extend(incoming.next_content()?);
            }
            Ok::<_, Flaw>(contents)
        };
        assert_eq!(read(&file), Ok(CONTENTS.map(<[u8]>::to_vec).to_vec()));
        for bit in opening().len() * 8..file.len() * 8 {
            let mut damaged = file.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(read(&damaged) != Ok(CONTENTS.map(<[u8]>::to_vec).to_vec()), "bit {bit}");
        }
    }

    #[test]
    fn newer_files_and_those_of_others_are_told_apart() {
        assert_eq!(frames(b"stowage-sim data 2\n"), Err(Flaw::Newer(2)));
        assert_eq!(frames(b"stowage-sim data x\n"), Err(Flaw::Foreign));
        assert_eq!(frames(b"{}\n"), Err(Flaw::Foreign));
        assert_eq!(frames(&[0xff; 100]), Err(Flaw::Foreign));
    }
}
