//! The operator's log in a run.

use std::io::Write;
use std::sync::Arc;

use parking_lot::Mutex;
use tracing::Level;
use tracing::subscriber::DefaultGuard;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;

/// Captures everything that is logged on this thread: the operator's own records down to `debug`,
/// others down to `warn`.
pub(super) struct Log {
    text: Text,
    _guard: DefaultGuard,
}

#[derive(Clone, Default)]
struct Text(Arc<Mutex<Vec<u8>>>);

impl Write for Text {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Log {
    /// Captures logs until the returned value is dropped.
    pub(super) fn keep() -> Self {
        let text = Text::default();
        let writer = text.clone();
        let layer =
            tracing_subscriber::fmt::layer().with_ansi(false).without_time().with_writer(move || writer.clone());
        let filter = Targets::new().with_default(Level::WARN).with_target("stowage_operator", Level::DEBUG);
        let guard = tracing::subscriber::set_default(tracing_subscriber::registry().with(filter).with(layer));
        Self { text, _guard: guard }
    }

    /// Returns the text logged so far.
    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.text.0.lock()).into_owned()
    }
}
