//! The API server's audit log: who asked for what, and what was answered.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::PathBuf;

use anyhow::{Context as _, Error, Result, anyhow};
use jiff::Timestamp;
use serde::Deserialize;

use crate::tools::in_node;

/// What authorisation notes.
const DECISION: &str = "authorization.k8s.io/decision";

/// A log that is being written. It is read from where a scenario begins.
pub struct AuditLog {
    place: Place,
    begin: u64,
}

/// Where a log is written.
#[derive(Debug)]
pub enum Place {
    /// Into this file.
    File(PathBuf),
    /// Into this file of a kind cluster's node.
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
    /// What admission and authorisation noted.
    #[serde(default)]
    pub annotations: BTreeMap<String, String>,
    /// When the answer had been sent.
    pub stage_timestamp: Timestamp,
}

/// Who asked.
#[derive(Clone, Debug, Deserialize)]
pub struct Username {
    pub username: String,
}

/// What a request was about; all fields are empty where it was about no object.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Object {
    pub resource: String,
    pub subresource: String,
    pub namespace: String,
    pub name: String,
}

/// What was answered.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Status {
    pub code: u16,
}

impl Request {
    /// The resource with its subresource.
    pub fn target(&self) -> String {
        let Object { resource, subresource, .. } = &self.object_ref;
        if subresource.is_empty() { resource.clone() } else { format!("{resource}/{subresource}") }
    }

    /// Whether it was to change something.
    pub fn writes(&self) -> bool {
        !matches!(self.verb.as_str(), "get" | "list" | "watch")
    }

    /// Whether the user had no right to ask it. A refusal for another reason, as by a namespace
    /// that ends, is none.
    pub fn forbidden(&self) -> bool {
        self.annotations.get(DECISION).is_some_and(|decision| decision == "forbid")
    }

    /// Whether it was carried out.
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

    /// All of it from this byte on.
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
            // It counts from one.
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
    /// The log that is written there.
    pub fn new(place: Place) -> Self {
        Self { place, begin: 0 }
    }

    /// From now on only what comes later is read.
    pub async fn begin_here(&mut self) -> Result<()> {
        self.begin = self.place.length().await?;
        Ok(())
    }

    /// What was written since then, in lines.
    pub async fn text(&self) -> Result<String> {
        self.place.from(self.begin).await
    }

    /// The requests of one user since then.
    pub async fn requests(&self, user: &str) -> Result<Vec<Request>> {
        // The last line may be in the middle of being written; no other is ever not whole.
        let text = self.text().await?;
        let requests = text.lines().filter_map(|line| serde_json::from_str(line).ok());
        Ok(requests.filter(|request: &Request| request.user.username == user).collect())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    /// Lines as a server wrote them, shortened.
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
