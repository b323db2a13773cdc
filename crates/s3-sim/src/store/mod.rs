//! A store: its interfaces for clients and administrators.

mod admin;
mod kept;

use std::sync::Arc;

use s3s::S3;

use super::dialect::Dialect;
use super::face::{Face, Identity};
use super::service::StoreService;
use super::shared::{Shared, WallClock};

pub use self::admin::{BucketSnapshot, VersionSnapshot};

/// A store. Clones are handles to the same store.
#[derive(Clone)]
pub struct Store {
    shared: Arc<Shared>,
}

impl Store {
    /// Creates an empty store without accounts.
    #[must_use]
    pub fn new(clock: WallClock, dialect: Dialect) -> Self {
        Self { shared: Arc::new(Shared::new(clock, dialect)) }
    }

    /// Returns the interpretation of the protocol that this store follows.
    #[must_use]
    pub fn dialect(&self) -> &Dialect {
        &self.shared.dialect
    }

    /// Returns the protocol interface, for HTTP requests signed with a key of an account.
    ///
    /// Unknown keys get `InvalidAccessKeyId`, wrong secrets `SignatureDoesNotMatch`, unsigned
    /// requests and buckets of other accounts `AccessDenied`, all with status 403.
    #[must_use]
    pub fn http(&self) -> StoreService {
        StoreService::new(self.shared.clone())
    }

    /// Returns the in-process interface for one account. Credentials in requests are ignored.
    #[must_use]
    pub fn as_account(&self, account: &str) -> impl S3 + Clone + use<> {
        Face { shared: self.shared.clone(), identity: Identity::Account(account.to_owned()) }
    }

    /// Enables reads from the state before the last write. Each write then copies everything except
    /// the data of objects.
    pub fn remember_past(&self) {
        self.shared.past().remember();
    }
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let buckets = self.shared.state().buckets.len();
        f.debug_struct("Store").field("buckets", &buckets).finish_non_exhaustive()
    }
}
