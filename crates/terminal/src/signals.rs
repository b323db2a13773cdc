//! Handling of SIGINT and SIGTERM, by which a user or a supervisor ends the process.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};

/// The exit code that shells report for a command ended by SIGINT.
pub(crate) const INTERRUPTED: u8 = 130;

/// Resolves on SIGTERM or SIGINT. The handlers are installed when this is called, not when the
/// future is first polled.
pub fn terminated() -> impl Future<Output = ()> {
    let signals = [SignalKind::terminate(), SignalKind::interrupt()].map(signal);
    async move {
        // Without a handler the default action ends the process.
        let waits = signals.into_iter().flatten().map(|mut signal| Box::pin(async move { signal.recv().await }));
        let waits: Vec<_> = waits.collect();
        if waits.is_empty() {
            return std::future::pending().await;
        }
        futures::future::select_all(waits).await;
    }
}

/// A request to end a long command early. The command then reports the results it has so far.
#[derive(Clone, Debug)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Starts to listen for signals, on a separate thread. The second signal ends the process at
    /// once.
    pub fn listen() -> Self {
        let asked = Self(Arc::default());
        let heard = asked.clone();
        std::thread::spawn(move || {
            // Without a runtime the default action ends the process.
            let Ok(runtime) = Builder::new_current_thread().enable_all().build() else { return };
            runtime.block_on(async {
                terminated().await;
                heard.0.store(true, Ordering::Relaxed);
                // stderr may be closed.
                let _ = writeln!(io::stderr(), "ends with what is under way, and reports; once more ends it at once");
                terminated().await;
                std::process::exit(INTERRUPTED.into());
            });
        });
        asked
    }

    /// Returns the flag that is set once a signal arrives, for code that polls it.
    pub fn flag(&self) -> Arc<AtomicBool> {
        self.0.clone()
    }

    /// Returns true once a signal has arrived.
    pub fn asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
