//! The two buckets in the store: their prepared objects, and their content afterwards.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use stowage_testbed::request::{Answer, Ask, Asker, Signed};
use stowage_testbed::sigv4::encoded;

use super::doors::KEYS;

/// Identifiers of an object's data apart from its key.
#[derive(Clone, Debug, Default)]
pub(super) struct Ids {
    /// A noncurrent version.
    pub(super) version: String,
    /// An unfinished upload.
    pub(super) upload: String,
    /// The ETag of the upload's only part.
    pub(super) part: String,
}

/// The store as its owner sees it, the two buckets that accesses try, and one in another namespace.
pub(super) struct Buckets {
    pub(super) owner: Asker,
    pub(super) photos: String,
    pub(super) films: String,
    pub(super) notes: String,
}

impl Buckets {
    /// Puts an object with each of the keys into both buckets. Returns their identifiers, by bucket
    /// and key.
    pub(super) async fn fill(&self) -> Result<BTreeMap<(String, String), Ids>> {
        let mut all = BTreeMap::new();
        for bucket in [&self.photos, &self.films] {
            for key in KEYS {
                all.insert((bucket.clone(), key.to_owned()), self.put(bucket, key).await?);
            }
        }
        Ok(all)
    }

    /// Puts an object with a noncurrent version, tags and an unfinished upload.
    pub(super) async fn put(&self, bucket: &str, key: &str) -> Result<Ids> {
        let target = format!("/{bucket}/{}", encoded(key.as_bytes(), "/"));
        let data = |content: &str| content.as_bytes().to_vec();
        let put = |query: &str, body| Ask { body, ..Ask::new("PUT", format!("{target}{query}")) };
        let first = self.done(put("", data("past"))).await?;
        let version = first.header("x-amz-version-id").context("the bucket keeps no versions")?.to_owned();
        let headers = vec![("x-amz-tagging", "kind=kept".to_owned())];
        self.done(Ask { headers, ..put("", data(&content(bucket, key))) }).await?;
        let begun = self.done(Ask::new("POST", format!("{target}?uploads"))).await?;
        let upload = begun.element("UploadId").context("an upload without an id")?.to_owned();
        let part = self.done(put(&format!("?partNumber=1&uploadId={upload}"), data("part"))).await?;
        let part = part.header("etag").context("a part without a tag")?.to_owned();
        Ok(Ids { version, upload, part })
    }

    /// Returns the content of both buckets as text: versions, uploads, parts, and the objects'
    /// data.
    pub(super) async fn state(&self) -> Result<String> {
        let mut state = String::new();
        for bucket in [&self.photos, &self.films] {
            let versions = self.done(Ask::new("GET", format!("/{bucket}?versions"))).await?;
            let uploads = self.done(Ask::new("GET", format!("/{bucket}?uploads"))).await?;
            ensure!(
                versions.element("IsTruncated") == Some("false"),
                "bucket {bucket} has more than a page of versions"
            );
            state.extend([versions.body.as_str(), uploads.body.as_str()]);
            for (key, id) in uploads.elements("Key").into_iter().zip(uploads.elements("UploadId")) {
                let target = format!("/{bucket}/{}?uploadId={id}", encoded(key.as_bytes(), "/"));
                state.push_str(&self.done(Ask::new("GET", target)).await?.body);
            }
            for (key, id) in versions.elements("Key").into_iter().zip(versions.elements("VersionId")) {
                let target = format!("/{bucket}/{}?versionId={id}", encoded(key.as_bytes(), "/"));
                let tags = target.replace("?versionId", "?tagging&versionId");
                for target in [target, tags] {
                    // A delete marker has no content; only its status is compared.
                    let read = self.owner.ask(Ask::new("GET", target), Signed::Headers).await?;
                    state.push_str(&format!("\n{} {}", read.status, if read.is_done() { &read.body } else { "" }));
                }
            }
        }
        Ok(state)
    }

    async fn done(&self, ask: Ask) -> Result<Answer> {
        let what = format!("the store's owner: {} {}", ask.method, ask.target);
        let answer = self.owner.ask(ask, Signed::Headers).await?;
        ensure!(answer.is_done(), "{what}: {} {:?}", answer.status, answer.code());
        Ok(answer)
    }
}

/// Returns the content of an object.
pub(super) fn content(bucket: &str, key: &str) -> String {
    format!("content of {bucket}/{key}")
}
