//! Empties a bucket, one slice at a time (spec §3.4): unfinished uploads, versions and delete
//! markers.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicBool, Ordering};

use aws_sdk_s3::types::{Delete, ObjectIdentifier};
use futures::stream::{self, Stream, StreamExt};
use parking_lot::Mutex;

use crate::api::BucketName;

use super::client::Upstream;
use super::content_md5::content_md5;
use super::error::{Class, UpstreamError};
use super::pages::pages;
use super::slice::Slice;

/// Maximum number of concurrent requests of one slice.
///
/// It is enough to hide the network latency, and leaves room for other slices within the backend's
/// share of calls for emptying.
const IN_FLIGHT: usize = 4;

/// Hash of the items listed by a slice, in the order of the lists.
#[derive(Default)]
struct Shown(Mutex<DefaultHasher>);

impl Shown {
    /// Adds a page.
    fn saw<'a>(&self, items: impl Iterator<Item = (&'a str, Option<&'a str>)>) {
        let mut hasher = self.0.lock();
        items.for_each(|item| item.hash(&mut *hasher));
    }

    /// Returns the digest, which is equal for equal pages.
    fn digest(&self) -> u64 {
        self.0.lock().finish()
    }
}

impl Upstream {
    /// Deletes about `most` items of a bucket, uploads first, because an upload that is completed
    /// later would create a version.
    ///
    /// After a failed request the running ones are still awaited, so that the count is correct.
    ///
    /// The result is a refusal if the lists begin like those of the slice before, whose items were
    /// all reported as deleted. This happens if a key contains a character that XML can't represent
    /// and the store lists it as another one.
    pub async fn purge(&self, bucket: &BucketName, most: u32) -> Slice {
        let shown = Shown::default();
        let slice = self.in_bulk().purge_slice(bucket, most, &shown).await;
        let mut emptied = self.store.emptied.lock();
        if slice.complete || slice.refused.is_some() || slice.failed.is_some() {
            emptied.remove(bucket);
            return slice;
        }
        match emptied.insert(bucket.clone(), shown.digest()) {
            Some(last) if last == shown.digest() => Slice {
                deleted: 0,
                refused: Some("it says that they are gone, and lists them again".to_owned()),
                ..slice
            },
            _ => slice,
        }
    }

    async fn purge_slice(&self, bucket: &BucketName, most: u32, shown: &Shown) -> Slice {
        let uploads = self.abort_uploads(bucket, most, shown).await;
        let left = most.saturating_sub(u32::try_from(uploads.deleted).unwrap_or(u32::MAX));
        if uploads.failed.is_some() || !uploads.complete || left == 0 {
            return Slice { complete: false, ..uploads };
        }
        let mut slice = self.delete_versions(bucket, left, shown).await;
        let complete = slice.complete;
        slice.add(uploads);
        Slice { complete, ..slice }
    }

    async fn delete_versions(&self, bucket: &BucketName, most: u32, shown: &Shown) -> Slice {
        let failed = AtomicBool::new(false);
        let pages = pages(most, &failed, |marker, size| self.versions(bucket, marker, size));
        let batches = pages.map(|page| async {
            match page {
                Ok(page) => {
                    shown.saw(page.items.iter().map(|object| (object.key(), object.version_id())));
                    let (plain, odd) = page.items.into_iter().partition(|object| fits_xml(object.key()));
                    let mut batch = self.delete_objects(bucket, plain).await;
                    batch.add(self.delete_each(bucket, odd, &failed).await);
                    Slice { complete: page.next.is_none(), ..batch }
                }
                Err(error) => Slice::broken(error),
            }
        });
        gather(batches.buffer_unordered(IN_FLIGHT), &failed).await
    }

    async fn abort_uploads(&self, bucket: &BucketName, most: u32, shown: &Shown) -> Slice {
        let failed = AtomicBool::new(false);
        let pages = pages(most, &failed, |marker, size| self.uploads(bucket, marker, size));
        let batches = pages.then(|page| async {
            match page {
                Ok(page) => {
                    let complete = page.next.is_none();
                    shown.saw(page.items.iter().map(|(key, id)| (key.as_str(), Some(id.as_str()))));
                    let aborts = stream::iter(page.items).map(|(key, id)| self.abort(bucket, key, id));
                    let batch = gather(aborts.buffer_unordered(IN_FLIGHT), &failed).await;
                    Slice { complete, ..batch }
                }
                Err(UpstreamError { class: Class::Unsupported, .. }) => Slice { complete: true, ..Slice::default() },
                Err(error) => Slice::broken(error),
            }
        });
        gather(batches, &failed).await
    }

    /// Sends one DeleteObjects. A 200 alone says nothing, because each key has its own result.
    async fn delete_objects(&self, bucket: &BucketName, objects: Vec<ObjectIdentifier>) -> Slice {
        let mut batch = Slice::default();
        if objects.is_empty() {
            return batch;
        }
        let asked = objects.len() as u64;
        let delete = Delete::builder().set_objects(Some(objects)).quiet(true).build().expect("the objects are given");
        let call = self.client.delete_objects().bucket(bucket.as_str()).delete(delete);
        let call = call.customize().mutate_request(content_md5);
        match self.call("DeleteObjects", call.send()).await {
            Ok(output) => {
                let errors = output.errors();
                batch.deleted = asked.saturating_sub(errors.len() as u64);
                errors.iter().for_each(|error| batch.judge("DeleteObjects", error.code().unwrap_or("no code")));
                // A store may report more keys than were requested.
                batch.deleted = batch.deleted.min(asked);
                batch
            }
            Err(refusal) => Slice::broken(refusal.error()),
        }
    }

    /// Deletes each object with a DeleteObject.
    async fn delete_each(&self, bucket: &BucketName, objects: Vec<ObjectIdentifier>, failed: &AtomicBool) -> Slice {
        let deletes = stream::iter(objects).map(|object| self.delete_object(bucket, object));
        gather(deletes.buffer_unordered(IN_FLIGHT), failed).await
    }

    async fn delete_object(&self, bucket: &BucketName, object: ObjectIdentifier) -> Slice {
        let call = self.client.delete_object().bucket(bucket.as_str()).key(object.key);
        match self.call("DeleteObject", call.set_version_id(object.version_id).send()).await {
            Ok(_) => Slice { deleted: 1, ..Slice::default() },
            Err(refusal) => match refusal.code.as_deref() {
                Some(code @ ("NoSuchKey" | "NoSuchVersion" | "AccessDenied" | "InvalidRequest")) => {
                    let mut slice = Slice::default();
                    slice.judge("DeleteObject", code);
                    slice
                }
                _ => Slice::broken(refusal.error()),
            },
        }
    }

    async fn abort(&self, bucket: &BucketName, key: String, id: String) -> Slice {
        let call = self.client.abort_multipart_upload().bucket(bucket.as_str()).key(key).upload_id(id);
        match self.call("AbortMultipartUpload", call.send()).await {
            Ok(_) => Slice { deleted: 1, ..Slice::default() },
            Err(refusal) if refusal.is("NoSuchUpload") => Slice { deleted: 1, ..Slice::default() },
            Err(refusal) => Slice::broken(refusal.error()),
        }
    }
}

/// Returns true if the body of a DeleteObjects can contain this key. XML 1.0 can't represent most
/// control characters, and a store refuses the whole request for one
/// (<https://www.w3.org/TR/xml/#charsets>). A URL can represent them.
fn fits_xml(key: &str) -> bool {
    !key.chars().any(|c| matches!(c, '\0'..='\u{8}' | '\u{b}' | '\u{c}' | '\u{e}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}'))
}

/// Adds up the results, and sets `failed` on a failure so that no further request is sent.
async fn gather(batches: impl Stream<Item = Slice>, failed: &AtomicBool) -> Slice {
    batches
        .fold(Slice::default(), |mut total, batch| {
            if batch.failed.is_some() {
                failed.store(true, Ordering::Relaxed);
            }
            total.add(batch);
            std::future::ready(total)
        })
        .await
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::super::pages::identifier;
    use super::super::scripted::{Reply, Store};
    use super::*;

    #[tokio::test]
    async fn what_is_listed_again_after_it_was_said_to_be_deleted_is_no_progress() {
        let store = Store::that(|_, uri| match uri {
            uri if uri.contains("versions") => Reply::ok(
                "<ListVersionsResult><IsTruncated>true</IsTruncated><NextKeyMarker>a</NextKeyMarker>\
                 <Version><Key>a</Key><VersionId>1</VersionId></Version></ListVersionsResult>",
            ),
            uri if uri.contains("uploads") => Reply::ok("<ListMultipartUploadsResult/>"),
            _ => Reply::ok("<DeleteResult/>"),
        });
        let upstream = store.upstream();
        let bucket = BucketName::parse("photos").unwrap();
        assert_eq!(upstream.purge(&bucket, 1).await, Slice { deleted: 1, ..Slice::default() });
        let refused = Some("it says that they are gone, and lists them again".to_owned());
        for _ in 0..3 {
            assert_eq!(upstream.purge(&bucket, 1).await, Slice { refused: refused.clone(), ..Slice::default() });
        }
    }

    /// Results for keys that were not requested are not counted.
    #[tokio::test]
    async fn no_more_is_deleted_than_was_asked_for() {
        let error = "<Error><Key>x</Key><Code>NoSuchKey</Code></Error>";
        let store = Store::that(move |_, uri| match uri {
            uri if uri.contains("versions") => Reply::ok(
                "<ListVersionsResult><Version><Key>a</Key><VersionId>1</VersionId></Version></ListVersionsResult>",
            ),
            uri if uri.contains("uploads") => Reply::ok("<ListMultipartUploadsResult/>"),
            _ => Reply::ok(&format!("<DeleteResult>{}</DeleteResult>", error.repeat(9))),
        });
        let slice = store.upstream().purge(&BucketName::parse("photos").unwrap(), 10).await;
        assert_eq!(slice, Slice { deleted: 1, complete: true, ..Slice::default() });
    }

    /// The key must not block others: Amazon S3 refuses a whole DeleteObjects that contains it.
    #[tokio::test]
    async fn a_key_that_xml_cant_carry_is_deleted_by_itself() {
        let store = Store::that(|method, uri| match uri {
            uri if uri.contains("versions") => Reply::ok(
                "<ListVersionsResult><Version><Key>a&#x1;b</Key><VersionId>1</VersionId></Version>\
                 <Version><Key>plain</Key><VersionId>2</VersionId></Version></ListVersionsResult>",
            ),
            uri if uri.contains("uploads") => Reply::ok("<ListMultipartUploadsResult/>"),
            _ if method == "DELETE" => Reply { status: 204, ..Reply::ok("") },
            _ => Reply::ok("<DeleteResult/>"),
        });
        let slice = store.upstream().purge(&BucketName::parse("photos").unwrap(), 10).await;
        assert_eq!(slice, Slice { deleted: 2, complete: true, ..Slice::default() });
        let [together] = &store.asked("POST")[..] else { panic!("one DeleteObjects") };
        assert!(together.headers.contains_key("content-md5"), "{:?}", together.headers);
        assert!(together.body.contains("plain") && together.body.matches("<Key>").count() == 1, "{}", together.body);
        let [alone] = &store.asked("DELETE")[..] else { panic!("one DeleteObject") };
        assert!(alone.uri.contains("/photos/a%01b?") && alone.uri.contains("versionId=1"), "{}", alone.uri);
    }

    #[rstest]
    #[case(403, "AccessDenied", Slice { refused: Some("AccessDenied".into()), ..Slice::default() })]
    #[case(404, "NoSuchVersion", Slice { deleted: 1, ..Slice::default() })]
    #[case(403, "InvalidAccessKeyId", denied("InvalidAccessKeyId"))]
    #[tokio::test]
    async fn what_a_store_says_of_a_key_by_itself_is_judged_alike(
        #[case] status: u16,
        #[case] code: &'static str,
        #[case] expected: Slice,
    ) {
        let store = Store::that(move |_, _| Reply::error(status, code));
        let object = identifier("a\u{1}".into(), None).expect("it has a key");
        assert_eq!(store.upstream().delete_object(&BucketName::parse("photos").unwrap(), object).await, expected);
    }

    fn denied(code: &str) -> Slice {
        let error = UpstreamError { operation: "DeleteObject", class: Class::Denied { code: code.to_owned() } };
        Slice { failed: Some(error), ..Slice::default() }
    }
}
