//! The Secrets as typed values, with their serialization (spec §2).
//!
//! Every type here implements `Debug`, and prints secrets as `[REDACTED]`.

mod access;
mod admin;
mod binding;
mod bounded;
mod connection;
mod consumer;
mod content;
mod credential;
mod fields;
mod key;
mod labels;
mod record;
mod served;
mod shape;
#[cfg(test)]
mod tests;
mod value_template;

pub use access::{AccessConsumer, AccessCredential, AccessCredentialFacts, AccessRecord, AccessScope};
pub use admin::{AdminKey, AdminSecretError, Lack, Unlabelled};
pub use binding::AnonymousBinding;
pub use bounded::{Limits, NotServed};
pub use connection::Gateway;
pub use consumer::{ConsumerContent, Publishing, Shaped};
pub use content::SecretContent;
pub use credential::{Credential, CredentialFacts};
pub use fields::DamagedSecret;
pub use key::SecretKey;
pub use record::BucketRecord;
pub use served::{Scope, ServedAccess, ServedAccessRecord, ServedBinding, ServedCredential, ServedRecord};
pub use shape::{Extra, SecretShape, SecretValues, TooLarge, Written, digest};
