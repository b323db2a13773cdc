//! The document of a CompleteMultipartUpload (Amazon S3, "CompletedMultipartUpload" and
//! "CompletedPart").

use crate::refusal::{Code, Refusal};
use crate::xml::{Out, Reader, begin, element, malformed, once};

/// Maximum number of parts of an upload (Amazon S3, "Amazon S3 multipart upload limits").
const MOST_PARTS: u32 = 10_000;

/// The root of the document.
const ROOT: &str = "CompleteMultipartUpload";

/// Elements with the checksum of a part.
const CHECKSUMS: [&str; 10] = [
    "ChecksumCRC32",
    "ChecksumCRC32C",
    "ChecksumCRC64NVME",
    "ChecksumMD5",
    "ChecksumSHA1",
    "ChecksumSHA256",
    "ChecksumSHA512",
    "ChecksumXXHASH128",
    "ChecksumXXHASH3",
    "ChecksumXXHASH64",
];

/// Reads a document, and writes it for the store.
pub(super) fn rewrite(document: &[u8], out: &mut Out) -> Result<(), Refusal> {
    let mut reader = Reader::open(document, ROOT.as_bytes())?;
    out.write(|put| begin(ROOT, put))?;
    let (mut parts, mut before) = (0, 0);
    while let Some(element) = reader.element()? {
        if element.name().as_ref() != b"Part" || parts == MOST_PARTS {
            return Err(malformed());
        }
        parts += 1;
        let part = Part::read(&mut reader)?;
        // Otherwise a store may use a part twice, or in another order than the client's.
        if part.number <= before {
            let message = "The list of parts was not in ascending order. The parts list must be specified in order by \
                part number.";
            return Err(Refusal::new(Code::InvalidPartOrder, message));
        }
        before = part.number;
        out.write(|put| part.write(put))?;
    }
    reader.end()?;
    if parts == 0 {
        return Err(malformed());
    }
    out.write(|put| put("</CompleteMultipartUpload>"))
}

struct Part {
    number: u32,
    etag: String,
    checksums: [Option<String>; 10],
}

impl Part {
    fn read(reader: &mut Reader<'_>) -> Result<Self, Refusal> {
        let (mut number, mut etag, mut checksums) = (None, None, <[Option<String>; 10]>::default());
        while let Some(element) = reader.element()? {
            match element.name().as_ref() {
                b"PartNumber" => once(&mut number, part_number(&reader.text(malformed)?)?)?,
                b"ETag" => once(&mut etag, reader.text(malformed)?)?,
                name => {
                    let mut of_name = CHECKSUMS.iter().zip(&mut checksums).filter(|(it, _)| it.as_bytes() == name);
                    let (_, place) = of_name.next().ok_or_else(malformed)?;
                    once(place, reader.text(malformed)?)?;
                }
            }
        }
        Ok(Self { number: number.ok_or_else(malformed)?, etag: etag.ok_or_else(malformed)?, checksums })
    }

    fn write(&self, put: &mut dyn FnMut(&str)) {
        put("<Part>");
        element("PartNumber", Some(&self.number.to_string()), put);
        element("ETag", Some(&self.etag), put);
        for (name, checksum) in CHECKSUMS.iter().zip(&self.checksums) {
            element(name, checksum.as_deref(), put);
        }
        put("</Part>");
    }
}

fn part_number(text: &str) -> Result<u32, Refusal> {
    let text = text.trim_ascii();
    // `parse` would accept a sign.
    let has_digits_alone = text.bytes().all(|byte| byte.is_ascii_digit());
    // Part numbers begin at 1.
    text.parse().ok().filter(|number| has_digits_alone && *number > 0).ok_or_else(malformed)
}
