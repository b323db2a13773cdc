//! A part of a campaign, for running one on several machines.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// One of `of` equal parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Shard {
    /// The index of this part, from 0.
    pub index: usize,
    /// The number of parts.
    pub of: usize,
}

impl Shard {
    /// The only part of a campaign that is not divided.
    pub const WHOLE: Self = Self { index: 0, of: 1 };

    /// Returns true if the schedule of this number belongs to the part.
    pub fn has(self, number: usize) -> bool {
        number % self.of == self.index
    }
}

impl fmt::Display for Shard {
    /// Writes, for instance, `0/4`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.of)
    }
}

impl FromStr for Shard {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let number = |text: &str| text.parse::<u16>().ok().map(usize::from);
        let read = || {
            let (index, of) = text.split_once('/')?;
            Some(Self { index: number(index)?, of: number(of)? })
        };
        let shard = read().filter(|shard| shard.index < shard.of);
        shard.ok_or("expected I/N with I from 0 to N-1 and N up to 65535, such as 0/4")
    }
}

impl From<Shard> for String {
    fn from(shard: Shard) -> Self {
        shard.to_string()
    }
}

impl TryFrom<String> for Shard {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}
