//! XML as S3's documents have it: read strictly within bounds, and written so that no reader finds
//! other texts than were read. Everything here is pure.

mod reader;
mod writer;

pub(crate) use reader::{Reader, is_carried, malformed, once};
#[cfg(test)]
pub(crate) use writer::NAMESPACE;
pub(crate) use writer::{Out, begin, element};
