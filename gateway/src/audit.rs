//! The access log: one JSON object per line, with the fields of Amazon S3's server access log.
//!
//! A line never contains a signature, a secret or an SSE-C key: the request's URI is logged without
//! the parameters that carry one.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde::Serialize;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

/// Time limit for writing the last lines at shutdown.
const FLUSH: Duration = Duration::from_secs(5);
/// Maximum number of lines queued for the writer. Lines beyond it are dropped and counted.
const WAITING: usize = 4096;

/// One answered request. Unknown fields are omitted.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Entry {
    /// The time of the request, RFC 3339.
    pub time: String,
    /// The bucket.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bucket: Option<String>,
    /// The client's address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remote_ip: Option<String>,
    /// The access key id whose signature was verified.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requester: Option<String>,
    /// The claim of the key, as `namespace/name`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claim: Option<String>,
    /// The claim's UID.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claim_uid: Option<String>,
    /// The UID of the access, for a key of an access.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access_uid: Option<String>,
    /// The generation of the key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_generation: Option<u64>,
    /// The backend that the request was forwarded to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backend: Option<String>,
    /// The gateway's id of the request, which the client gets as `x-amz-request-id`.
    pub request_id: String,
    /// S3's name of the operation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation: Option<&'static str>,
    /// The object's key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The number of objects that a DeleteObjects deletes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deleted_objects: Option<usize>,
    /// The first keys that a DeleteObjects deletes, up to 8 KiB of text.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deleted_keys: Vec<String>,
    /// Method and target, without signatures.
    pub request_uri: String,
    /// The status of the response.
    pub http_status: u16,
    /// S3's error code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_code: Option<String>,
    /// The length of the response's body in bytes, as far as it was sent.
    pub bytes_sent: u64,
    /// True if the response was sent to its end.
    pub complete: bool,
    /// Milliseconds from the request's head to the end of the response.
    pub total_time: u64,
    /// Milliseconds from the request's head to the head of the response.
    pub turn_around_time: u64,
    /// The `Referer` header.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub referer: Option<String>,
    /// The `User-Agent` header.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_agent: Option<String>,
    /// `SigV4` if the request was signed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signature_version: Option<&'static str>,
    /// The place of the signature: `AuthHeader`, `QueryString` or `Form`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub authentication_type: Option<&'static str>,
    /// The `Host` header.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_header: Option<String>,
}

/// A message to the writer.
#[derive(Debug)]
enum Told {
    Line(String),
    /// A request to report when all earlier lines are written.
    Flush(oneshot::Sender<()>),
}

/// A handle to the access log. Clones write to the same destination.
#[derive(Clone, Debug)]
pub struct Log {
    lines: mpsc::Sender<Told>,
    dropped: Arc<AtomicU64>,
}

impl Log {
    /// Creates a log with its own writer thread, so that a slow disk delays no request.
    ///
    /// # Errors
    /// Returns an error if the thread can't be started.
    pub fn to(mut writer: impl Write + Send + 'static) -> std::io::Result<Self> {
        let (lines, mut waiting) = mpsc::channel::<Told>(WAITING);
        let write = move || {
            while let Some(told) = waiting.blocking_recv() {
                let written = match told {
                    Told::Line(line) => writer.write_all(line.as_bytes()),
                    Told::Flush(done) => {
                        let _ = done.send(());
                        Ok(())
                    }
                };
                if written.and_then(|()| if waiting.is_empty() { writer.flush() } else { Ok(()) }).is_err() {
                    tracing::warn!("a line of the access log could not be written");
                }
            }
        };
        std::thread::Builder::new().name("access-log".to_owned()).spawn(write)?;
        Ok(Self { lines, dropped: Arc::default() })
    }

    /// Queues a line, or drops and counts it if the queue is full.
    pub fn write(&self, entry: &Entry) {
        let Ok(mut line) = serde_json::to_string(entry) else { return };
        line.push('\n');
        if self.lines.try_send(Told::Line(line)).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Waits until all lines queued before are written, for at most five seconds.
    pub async fn flush(&self) {
        let (done, told) = oneshot::channel();
        let flushed = async {
            if self.lines.send(Told::Flush(done)).await.is_ok() {
                let _ = told.await;
            }
        };
        if timeout(FLUSH, flushed).await.is_err() {
            tracing::warn!("the last lines of the access log could not be written in time");
        }
    }

    /// Returns the number of lines dropped since the start.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}

/// Returns a request target with the values of all parameters replaced that carry a signature or a
/// key.
#[must_use]
pub fn redacted(target: &str) -> String {
    let Some((path, query)) = target.split_once('?') else { return target.to_owned() };
    let pairs = query.split('&').map(|pair| match pair.split_once('=') {
        Some((name, _)) if is_secret(name) => format!("{name}=REDACTED"),
        _ => pair.to_owned(),
    });
    format!("{path}?{}", pairs.collect::<Vec<_>>().join("&"))
}

/// Returns true if a parameter carries a secret. Its name is compared decoded, because clients may
/// percent-encode it.
fn is_secret(name: &str) -> bool {
    let decoded = percent_encoding::percent_decode_str(name).collect::<Vec<u8>>().to_ascii_lowercase();
    let begins = |text: &[u8]| decoded.starts_with(text);
    begins(b"x-amz-signature")
        || begins(b"x-amz-security-token")
        || begins(b"x-amz-credential")
        || begins(b"x-amz-server-side-encryption-customer-key")
        || begins(b"x-amz-copy-source-server-side-encryption-customer-key")
        || begins(b"signature")
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Sender, channel};

    use super::*;

    #[test]
    fn what_opens_anything_is_not_written() {
        let target = "/photos/a?X-Amz-Signature=00&X-Amz-%53ignature=00&prefix=a&X-Amz-Date=d&uploads";
        let expected = "/photos/a?X-Amz-Signature=REDACTED&X-Amz-%53ignature=REDACTED&prefix=a&X-Amz-Date=d&uploads";
        assert_eq!(redacted(target), expected);
        assert_eq!(redacted("/photos/a"), "/photos/a");
    }

    struct Heard(Sender<Vec<u8>>);

    impl Write for Heard {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.send(bytes.to_vec()).map_err(std::io::Error::other)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn an_entry_is_one_line_of_json() {
        let (tell, told) = channel();
        let log = Log::to(Heard(tell)).expect("a thread");
        log.write(&Entry { key: Some("a\nb".to_owned()), http_status: 200, ..Entry::default() });
        let line = told.recv_timeout(Duration::from_secs(10)).expect("it is written");
        assert_eq!(line.iter().filter(|byte| **byte == b'\n').count(), 1);
        let read: serde_json::Value = serde_json::from_slice(&line).expect("it is JSON");
        assert_eq!(read["key"], "a\nb");
        assert_eq!(log.dropped(), 0);
    }
}
