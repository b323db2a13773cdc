//! SIGINT and SIGTERM: how somebody at a terminal, or what runs the process, asks for its end.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};

/// What a shell says of a command that was ended by SIGINT.
pub(crate) const INTERRUPTED: u8 = 130;

/// Resolves on SIGTERM or SIGINT. They are listened for from the call on, not only once it is
/// waited for.
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

/// Whether a long command was asked to end. It tells then what it has found so far.
#[derive(Clone, Debug)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Listens from now on, on a thread of its own. The second signal ends the process at once.
    pub fn listen() -> Self {
        let asked = Self(Arc::default());
        let heard = asked.clone();
        std::thread::spawn(move || {
            // Without a runtime the default action ends the process.
            let Ok(runtime) = Builder::new_current_thread().enable_all().build() else { return };
            runtime.block_on(async {
                terminated().await;
                heard.0.store(true, Ordering::Relaxed);
                // Nobody may be there to read it.
                let _ = writeln!(io::stderr(), "ends with what is under way, and reports; once more ends it at once");
                terminated().await;
                std::process::exit(INTERRUPTED.into());
            });
        });
        asked
    }

    /// What is set once the end is asked for, for those who look themselves.
    pub fn flag(&self) -> Arc<AtomicBool> {
        self.0.clone()
    }

    /// Whether the end was asked for.
    pub fn asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
