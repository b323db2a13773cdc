//! Paged lists of a bucket's content.

use std::sync::atomic::{AtomicBool, Ordering};

use aws_sdk_s3::types::ObjectIdentifier;
use futures::stream::{self, Stream};

use crate::api::BucketName;

use super::client::Upstream;
use super::error::{Class, Flaw, Refusal, UpstreamError};

/// Maximum number of items that S3 lists or deletes in one request.
const PAGE: u32 = 1000;
/// Page size used if a full page is longer than an answer may be. A key has at most 1,024 bytes.
const SHORT_PAGE: i32 = 100;

/// A page of a list, and the start of the next one; `next` is `None` after the last.
pub(super) struct Page<T, C> {
    pub(super) items: Vec<T>,
    pub(super) next: Option<C>,
}

/// Start of a page of versions, objects or uploads.
#[derive(Clone, Default)]
pub(super) struct Marker {
    key: Option<String>,
    id: Option<String>,
}

impl Upstream {
    /// Lists a page of versions and delete markers, or of objects if the store doesn't support
    /// versions.
    pub(super) async fn versions(
        &self,
        bucket: &BucketName,
        marker: Marker,
        size: i32,
    ) -> Result<Page<ObjectIdentifier, Marker>, UpstreamError> {
        page_that_fits(size, |size| self.page_of_versions(bucket, marker.clone(), size)).await
    }

    async fn page_of_versions(
        &self,
        bucket: &BucketName,
        marker: Marker,
        size: i32,
    ) -> Result<Page<ObjectIdentifier, Marker>, UpstreamError> {
        let call = self.client.list_object_versions().bucket(bucket.as_str()).max_keys(size);
        let call = call.set_key_marker(marker.key.clone()).set_version_id_marker(marker.id.clone());
        let output = match self.call("ListObjectVersions", call.send()).await {
            Ok(output) => output,
            Err(refusal) => {
                return match refusal.error() {
                    UpstreamError { class: Class::Unsupported, .. } => self.objects(bucket, marker, size).await,
                    error => Err(error),
                };
            }
        };
        let versions = output.versions.unwrap_or_default().into_iter().map(|v| (v.key, v.version_id));
        let markers = output.delete_markers.unwrap_or_default().into_iter().map(|m| (m.key, m.version_id));
        let next = Marker { key: output.next_key_marker, id: output.next_version_id_marker };
        let items = versions.chain(markers).filter_map(|(key, version)| identifier(key?, version)).collect();
        Ok(Page { items, next: (output.is_truncated == Some(true)).then_some(next) })
    }

    async fn objects(
        &self,
        bucket: &BucketName,
        marker: Marker,
        size: i32,
    ) -> Result<Page<ObjectIdentifier, Marker>, UpstreamError> {
        let call = self.client.list_objects_v2().bucket(bucket.as_str()).max_keys(size);
        let output = self.call("ListObjectsV2", call.set_continuation_token(marker.id).send()).await;
        let output = output.map_err(|refusal| refusal.error())?;
        let items = output.contents.unwrap_or_default().into_iter().filter_map(|o| identifier(o.key?, None)).collect();
        let next = Marker { key: None, id: output.next_continuation_token };
        Ok(Page { items, next: (output.is_truncated == Some(true)).then_some(next) })
    }

    /// Lists a page of unfinished uploads: key and upload id of each.
    pub(super) async fn uploads(
        &self,
        bucket: &BucketName,
        marker: Marker,
        size: i32,
    ) -> Result<Page<(String, String), Marker>, UpstreamError> {
        page_that_fits(size, |size| self.page_of_uploads(bucket, marker.clone(), size)).await
    }

    async fn page_of_uploads(
        &self,
        bucket: &BucketName,
        marker: Marker,
        size: i32,
    ) -> Result<Page<(String, String), Marker>, UpstreamError> {
        let call = self.client.list_multipart_uploads().bucket(bucket.as_str()).max_uploads(size);
        let call = call.set_key_marker(marker.key).set_upload_id_marker(marker.id);
        let output = self.call("ListMultipartUploads", call.send()).await.map_err(Refusal::error)?;
        let next = Marker { key: output.next_key_marker, id: output.next_upload_id_marker };
        let items = output.uploads.unwrap_or_default().into_iter().filter_map(|u| Some((u.key?, u.upload_id?)));
        Ok(Page { items: items.collect(), next: (output.is_truncated == Some(true)).then_some(next) })
    }
}

/// Lists a page of this size, or a short one if that is longer than an answer may be.
async fn page_that_fits<T, F>(size: i32, list: impl Fn(i32) -> F) -> Result<T, UpstreamError>
where
    F: Future<Output = Result<T, UpstreamError>>,
{
    match list(size).await {
        Err(UpstreamError { class: Class::Unusable(Flaw::TooLong), .. }) if size > SHORT_PAGE => list(SHORT_PAGE).await,
        page => page,
    }
}

/// Builds the identifier of an object for DeleteObjects.
pub(super) fn identifier(key: String, version: Option<String>) -> Option<ObjectIdentifier> {
    ObjectIdentifier::builder().key(key).set_version_id(version).build().ok()
}

/// Lists pages until the end, until about `most` items are listed, or until `failed` is set.
pub(super) fn pages<'a, T, F>(
    most: u32,
    failed: &'a AtomicBool,
    mut list: impl FnMut(Marker, i32) -> F + 'a,
) -> impl Stream<Item = Result<Page<T, Marker>, UpstreamError>> + 'a
where
    F: Future<Output = Result<Page<T, Marker>, UpstreamError>> + 'a,
{
    stream::unfold(Some((Marker::default(), most)), move |at| {
        let listing = at.filter(|(_, left)| *left > 0 && !failed.load(Ordering::Relaxed)).map(|(marker, left)| {
            let size = left.min(PAGE);
            (list(marker, i32::try_from(size).unwrap_or(i32::MAX)), left - size)
        });
        async move {
            let (listing, left) = listing?;
            let page = listing.await;
            let next = page.as_ref().ok().and_then(|page| page.next.clone()).map(|marker| (marker, left));
            Some((page, next))
        }
    })
}
