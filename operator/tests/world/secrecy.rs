//! Assertion that no secret key is in anything visible of a run (oracle I11).

use std::collections::BTreeSet;
use std::io::Write;
use std::sync::{Arc, Mutex};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use stowage_world::{ADMIN_SECRET_KEY, Operator, World};
use tracing::Level;
use tracing::subscriber::DefaultGuard;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;

/// Fields of Secrets that contain a secret key.
const SECRET_FIELDS: [&str; 2] = ["secret_access_key", "AWS_SECRET_ACCESS_KEY"];

/// Captures everything logged on this thread, with the operator's logs at the most detailed level.
pub struct Secrecy {
    log: Log,
    _guard: DefaultGuard,
}

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Secrecy {
    /// Captures logs until the returned value is dropped.
    pub fn watch() -> Self {
        let log = Log::default();
        let writer = log.clone();
        let layer = tracing_subscriber::fmt::layer().with_ansi(false).with_writer(move || writer.clone());
        let filter = Targets::new().with_default(Level::INFO).with_target("stowage_operator", Level::TRACE);
        let guard = tracing::subscriber::set_default(tracing_subscriber::registry().with(filter).with(layer));
        Self { log, _guard: guard }
    }

    /// Returns the captured logs.
    pub fn log(&self) -> String {
        String::from_utf8_lossy(&self.log.0.lock().unwrap()).into_owned()
    }

    /// Asserts that no secret key of any past Secret is in the log, in an object that is no Secret
    /// (status, events), in the labels and annotations of one, or in a scrape.
    pub fn assert_kept(&self, world: &World, operator: &Operator) {
        let mut shown = vec![("the log", self.log()), ("the metrics", operator.metrics())];
        for stored in world.cluster.objects() {
            let what = if stored.plural == "secrets" { &stored.object["metadata"] } else { stored.object.as_ref() };
            shown.push(("an object", what.to_string()));
        }
        for key in secret_keys(world) {
            for (place, text) in &shown {
                assert!(!text.contains(&key), "a secret key is shown by {place}");
            }
        }
    }
}

/// Returns every secret key in the cluster's history, including deleted Secrets; each also in
/// base64, as in the API.
pub fn secret_keys(world: &World) -> BTreeSet<String> {
    let mut keys = BTreeSet::from([ADMIN_SECRET_KEY.to_owned(), BASE64_STANDARD.encode(ADMIN_SECRET_KEY)]);
    for secret in world.cluster.past_objects("secrets") {
        let fields = SECRET_FIELDS.iter().filter_map(|field| secret["data"][field].as_str());
        for encoded in fields.filter(|encoded| encoded.len() > 16) {
            keys.insert(encoded.to_owned());
            keys.extend(BASE64_STANDARD.decode(encoded).ok().and_then(|bytes| String::from_utf8(bytes).ok()));
        }
    }
    keys
}
