//! The internal Secrets of a claim, and the records among them: parsed once, however often the planner asks.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, OnceLock};

use crate::api::BucketRecord;

use super::answer::Stored;

/// Internal Secrets by name. Whoever may change them has the records among them read anew.
#[derive(Clone, Default)]
pub struct Own {
    secrets: BTreeMap<String, Stored>,
    records: OnceLock<Arc<[(BucketRecord, Stored)]>>,
}

impl Own {
    /// Those that are bucket records, whoever's, by name; each with the Secret that it was read from.
    pub fn records(&self) -> &[(BucketRecord, Stored)] {
        self.records.get_or_init(|| {
            let read = |secret: &Stored| Some((BucketRecord::read(&secret.0).ok()?, secret.clone()));
            self.secrets.values().filter_map(read).collect()
        })
    }
}

impl Deref for Own {
    type Target = BTreeMap<String, Stored>;

    fn deref(&self) -> &Self::Target {
        &self.secrets
    }
}

impl DerefMut for Own {
    fn deref_mut(&mut self) -> &mut Self::Target {
        self.records.take();
        &mut self.secrets
    }
}

impl FromIterator<Stored> for Own {
    fn from_iter<I: IntoIterator<Item = Stored>>(secrets: I) -> Self {
        let secrets = secrets.into_iter().map(|secret| (secret.name().to_owned(), secret)).collect();
        Self { secrets, records: OnceLock::new() }
    }
}

impl fmt::Debug for Own {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.secrets.fmt(f)
    }
}
