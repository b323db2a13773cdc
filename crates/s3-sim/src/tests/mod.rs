//! Tests of the store with the AWS SDK, in process.

mod access;
mod admin;
mod buckets;
mod kept;
mod locks;
mod multipart;
mod objects;
mod versions;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use aws_sdk_s3::Client;
use aws_sdk_s3::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_s3::primitives::ByteStream;
use jiff::Timestamp;

use super::{Dialect, InProcess, Store, WallClock};

/// The clock of a test, which only moves when the test advances it.
#[derive(Clone, Default)]
struct TestClock(Arc<AtomicI64>);

impl TestClock {
    fn advance(&self, seconds: i64) {
        self.0.fetch_add(seconds, Ordering::Relaxed);
    }

    fn clock(&self) -> WallClock {
        let Self(seconds) = self.clone();
        Arc::new(move || {
            let since_start = seconds.load(Ordering::Relaxed);
            Timestamp::from_second(1_800_000_000 + since_start).expect("a time in range")
        })
    }
}

/// Returns a store with the accounts `acme` and `rival`.
fn store_with(dialect: Dialect) -> Store {
    let store = Store::new(TestClock::default().clock(), dialect);
    store.add_account("acme", "AKIAACME", "acme-secret");
    store.add_account("rival", "AKIARIVAL", "rival-secret");
    store
}

fn store() -> Store {
    store_with(Dialect::default())
}

/// Returns an SDK client that signs for an account of [`store`].
fn client(store: &Store, account: &str) -> Client {
    let (key, secret) = (format!("AKIA{}", account.to_uppercase()), format!("{account}-secret"));
    InProcess::new(store.http()).client(&key, &secret, &store.dialect().region)
}

/// Returns a store with a bucket `photos` of `acme`, and a client of the owner.
fn with_bucket() -> (Store, Client) {
    let store = store();
    store.put_bucket("acme", "photos");
    let client = client(&store, "acme");
    (store, client)
}

fn body(text: &str) -> ByteStream {
    ByteStream::from(text.as_bytes().to_vec())
}

/// Returns the error code and HTTP status of a rejection.
#[track_caller]
fn refused<T: std::fmt::Debug, E>(result: Result<T, SdkError<E>>) -> (String, u16)
where
    E: ProvideErrorMetadata + std::fmt::Debug,
{
    let error = result.expect_err("a refusal");
    let status = error.raw_response().map(|response| response.status().as_u16()).unwrap_or_default();
    (error.code().unwrap_or_default().to_owned(), status)
}

/// Returns an expected result of [`refused`].
fn code(code: &str, status: u16) -> (String, u16) {
    (code.to_owned(), status)
}
