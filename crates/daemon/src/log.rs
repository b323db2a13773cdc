//! Logging to stderr.

use std::io;

use clap::ValueEnum;
use tracing::Subscriber;
use tracing_subscriber::filter::{FilterExt, filter_fn};
use tracing_subscriber::layer::{Filter, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer};

/// The format of log lines.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Format {
    /// Lines for people.
    Text,
    /// One JSON object per line.
    Json,
}

/// Sets up logging to stderr for the process. `RUST_LOG` sets the level; the default is `info`.
///
/// # Panics
/// Panics if it is called twice.
pub fn init(format: Format) {
    use std::io::IsTerminal;
    let filter = filter(EnvFilter::try_from_default_env().ok());
    let lines = tracing_subscriber::fmt::layer().with_writer(io::stderr);
    match format {
        Format::Text => {
            let lines = lines.with_ansi(io::stderr().is_terminal());
            tracing_subscriber::registry().with(lines.with_filter(filter)).init();
        }
        Format::Json => tracing_subscriber::registry().with(lines.json().with_filter(filter)).init(),
    }
}

/// Returns the log filter: `RUST_LOG`, without the messages of `kube_client::client`.
///
/// kube logs the whole answer if it can't decode one, and that may contain Secrets. A directive in
/// the `EnvFilter` would not suffice, because a directive about spans takes precedence over it.
fn filter<S>(asked: Option<EnvFilter>) -> impl Filter<S>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    let quotes = filter_fn(|metadata| metadata.target() != "kube_client::client");
    asked.unwrap_or_else(|| EnvFilter::new("info")).and(quotes)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use parking_lot::Mutex;
    use rstest::rstest;

    use super::*;

    /// A log writer whose content can be read back.
    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Written {
        fn write(&mut self, line: &[u8]) -> io::Result<usize> {
            self.0.lock().write(line)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[rstest]
    #[case(None)]
    #[case(Some("trace"))]
    #[case(Some("info,kube_client=trace,kube_client::client=debug"))]
    #[case(Some("warn,[claim]=trace"))]
    fn an_answer_that_can_not_be_read_is_not_quoted(#[case] asked: Option<&str>) {
        let written = Written::default();
        let lines = tracing_subscriber::fmt::layer().with_writer({
            let written = written.clone();
            move || written.clone()
        });
        let filter = filter(asked.map(EnvFilter::new));
        tracing::subscriber::with_default(tracing_subscriber::registry().with(lines.with_filter(filter)), || {
            let _pass = tracing::info_span!("claim").entered();
            tracing::warn!(target: "kube_client::client", "tiger");
            tracing::warn!("all else is as asked for");
        });
        let written = String::from_utf8(written.0.lock().clone()).unwrap();
        assert!(!written.contains("tiger") && written.contains("all else"), "{written}");
    }
}
