//! The API server's audit log: each request with its user and the status of its response.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::PathBuf;

use anyhow::{Context as _, Error, Result, anyhow};
use jiff::Timestamp;
use serde::Deserialize;

use crate::tools::in_node;

/// The annotation in which the authorizer records its decision.
const DECISION: &str = "authorization.k8s.io/decision";

/// An audit log that the API server is still writing, read from the start of a scenario.
pub struct AuditLog {
    place: Place,
    begin: u64,
}

/// Location of an audit log.
#[derive(Debug)]
pub enum Place {
    /// A file of this machine.
    File(PathBuf),
    /// A file inside the node of a kind cluster.
    Node { node: String, file: &'static str },
}

/// A request that was answered.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Request {
    pub verb: String,
    pub user: Username,
    #[serde(default)]
    pub object_ref: Object,
    #[serde(default)]
    pub response_status: Status,
    /// Annotations of admission and authorization.
    #[serde(default)]
    pub annotations: BTreeMap<String, String>,
    /// Time at which the response was complete.
    pub stage_timestamp: Timestamp,
}

/// The user that made a request.
#[derive(Clone, Debug, Deserialize)]
pub struct Username {
    pub username: String,
}

/// The object of a request; all fields are empty for a request without one.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Object {
    pub resource: String,
    pub subresource: String,
    pub namespace: String,
    pub name: String,
}

/// The status of a response.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Status {
    pub code: u16,
}

impl Request {
    /// Returns the resource, with its subresource if there is one.
    pub fn target(&self) -> String {
        let Object { resource, subresource, .. } = &self.object_ref;
        if subresource.is_empty() { resource.clone() } else { format!("{resource}/{subresource}") }
    }

    /// True if the verb is one that changes something.
    pub fn writes(&self) -> bool {
        !matches!(self.verb.as_str(), "get" | "list" | "watch")
    }

    /// True if the authorizer denied the request. A refusal for another reason doesn't count, for
    /// example by admission in a terminating namespace.
    pub fn forbidden(&self) -> bool {
        self.annotations.get(DECISION).is_some_and(|decision| decision == "forbid")
    }

    /// True if the response has a 2xx status.
    pub fn succeeded(&self) -> bool {
        (200..300).contains(&self.response_status.code)
    }
}

impl Place {
    async fn length(&self) -> Result<u64> {
        let length = match self {
            Self::File(path) => std::fs::metadata(path).map(|file| file.len()).map_err(Error::from),
            Self::Node { node, file } => {
                let told = in_node(node, &["stat", "-c", "%s", file]).await;
                told.and_then(|told| told.trim().parse().map_err(|_| anyhow!("its length is {told}")))
            }
        };
        length.with_context(|| self.cannot_be_read())
    }

    /// Reads the log from this byte offset to its end.
    async fn from(&self, begin: u64) -> Result<String> {
        let read = match self {
            Self::File(path) => {
                let read = || -> std::io::Result<String> {
                    let mut file = File::open(path)?;
                    file.seek(SeekFrom::Start(begin))?;
                    let mut text = String::new();
                    file.read_to_string(&mut text).map(|_| text)
                };
                read().map_err(Error::from)
            }
            // `tail -c +N` counts bytes from one.
            Self::Node { node, file } => in_node(node, &["tail", "-c", &format!("+{}", begin + 1), file]).await,
        };
        read.with_context(|| self.cannot_be_read())
    }

    fn cannot_be_read(&self) -> String {
        match self {
            Self::File(path) => format!("can't read the audit log {}", path.display()),
            Self::Node { node, file } => format!("can't read the audit log {file} of {node}"),
        }
    }
}

impl AuditLog {
    /// Creates a reader of the log at this place.
    pub fn new(place: Place) -> Self {
        Self { place, begin: 0 }
    }

    /// Skips all that has been written so far.
    pub async fn begin_here(&mut self) -> Result<()> {
        self.begin = self.place.length().await?;
        Ok(())
    }

    /// Returns the lines written since the last [`begin_here`](Self::begin_here).
    pub async fn text(&self) -> Result<String> {
        self.place.from(self.begin).await
    }

    /// Returns the requests of one user since the last [`begin_here`](Self::begin_here).
    pub async fn requests(&self, user: &str) -> Result<Vec<Request>> {
        // Skips lines that don't parse: the API server may be in the middle of writing the last
        // one.
        let text = self.text().await?;
        let requests = text.lines().filter_map(|line| serde_json::from_str(line).ok());
        Ok(requests.filter(|request: &Request| request.user.username == user).collect())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    /// Lines as an API server wrote them, shortened. The last one is incomplete.
    const LINES: &str = r#"
{"kind":"Event","level":"Metadata","stage":"ResponseComplete","verb":"patch","user":{"username":"operator","groups":["stowage:operators"]},"annotations":{"authorization.k8s.io/decision":"allow"},"objectRef":{"resource":"bucketclaims","namespace":"acme","name":"photos","apiGroup":"broker.stowage.io","subresource":"status"},"responseStatus":{"metadata":{},"code":200},"requestReceivedTimestamp":"2026-11-21T12:00:00.100000Z","stageTimestamp":"2026-11-21T12:00:00.200000Z"}
{"kind":"Event","level":"Metadata","stage":"ResponseComplete","verb":"get","user":{"username":"admin"},"annotations":{"authorization.k8s.io/decision":"forbid"},"objectRef":{"resource":"secrets","namespace":"acme","name":"photos-s3","apiVersion":"v1"},"responseStatus":{"code":404},"requestReceivedTimestamp":"2026-11-21T12:00:00.300000Z","stageTimestamp":"2026-11-21T12:00:00.400000Z"}
{"kind":"Event","level":"Metadata","stage":"Resp"#;

    #[tokio::test]
    async fn requests_are_read_from_a_mark_on_and_by_user() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        writeln!(file, "{{\"before\":1}}").unwrap();
        let mut log = AuditLog::new(Place::File(file.path().to_owned()));
        log.begin_here().await.unwrap();
        file.write_all(LINES.trim_start().as_bytes()).unwrap();
        let requests = log.requests("operator").await.unwrap();
        let [request] = requests.as_slice() else { panic!("{requests:?}") };
        assert_eq!((request.target().as_str(), request.response_status.code), ("bucketclaims/status", 200));
        assert!(request.writes() && request.succeeded() && !request.forbidden());
        let requests = log.requests("admin").await.unwrap();
        assert!(!requests[0].writes() && !requests[0].succeeded() && requests[0].forbidden());
        assert_eq!(log.text().await.unwrap().lines().count(), 3);
    }
}
