//! The XML of S3's documents: read strictly and within bounds, and written so that every reader
//! finds the same text. Everything here is pure.

mod reader;
mod writer;

pub(crate) use reader::{Reader, is_carried, malformed, once};
#[cfg(test)]
pub(crate) use writer::NAMESPACE;
pub(crate) use writer::{Out, begin, element};
