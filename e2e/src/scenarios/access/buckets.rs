//! The two buckets at the store: what is put there to be got at, and what is there afterwards.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use stowage_testbed::request::{Answer, Ask, Asker, Signed};
use stowage_testbed::sigv4::encoded;

use super::doors::KEYS;

/// What leads to an object besides its key.
#[derive(Clone, Debug, Default)]
pub(super) struct Ids {
    /// A version that is past.
    pub(super) version: String,
    /// An upload that is not ended.
    pub(super) upload: String,
    /// The entity tag of its only part.
    pub(super) part: String,
}

/// The store, as who owns it sees it, the two buckets that are got at, and one elsewhere.
pub(super) struct Buckets {
    pub(super) owner: Asker,
    pub(super) photos: String,
    pub(super) films: String,
    pub(super) notes: String,
}

impl Buckets {
    /// Puts an object with each of the keys into both buckets. Gives what leads to them, by bucket
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

    /// Puts an object that has a past version, tags and an upload.
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

    /// All that is in both buckets, as text: versions, uploads, parts, and the bytes of the
    /// objects.
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
                    // Of a marker of a deletion there is nothing to be read.
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

/// What is in an object.
pub(super) fn content(bucket: &str, key: &str) -> String {
    format!("content of {bucket}/{key}")
}
