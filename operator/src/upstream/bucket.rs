//! The calls about one bucket, except for emptying it (see `purge`).
//!
//! An answer that the planner decides on becomes a value, any other an error. An error never counts
//! as absence (spec §3.2, §3.5).

use std::collections::BTreeMap;

use aws_sdk_s3::types::{
    BucketLocationConstraint, BucketVersioningStatus, CreateBucketConfiguration, Owner, Tag, Tagging,
    VersioningConfiguration,
};

use crate::api::{BucketName, Versioning};
use crate::plan::{BucketSeen, CreateAnswer, DeleteAnswer, OwnerSeen, VersioningSeen};

use super::client::Upstream;
use super::content_md5::content_md5;
use super::error::{Class, Refusal, UpstreamError};

impl Upstream {
    /// Looks at a bucket: GetBucketTagging, or HeadBucket if the store doesn't support tagging
    /// (spec §3.2).
    ///
    /// A bucket without tags takes both calls: for a missing bucket MinIO answers that there are no
    /// tags, and not that there is no bucket.
    ///
    /// # Errors
    /// Returns any answer except that the bucket exists, doesn't exist, is forbidden (403) or is in
    /// another region. A page that is not S3's, as a proxy may send it, is an error too, and never
    /// absence.
    pub async fn look(&self, bucket: &BucketName) -> Result<BucketSeen, UpstreamError> {
        match self.call("GetBucketTagging", self.client.get_bucket_tagging().bucket(bucket.as_str()).send()).await {
            Ok(output) => {
                let tags = output.tag_set.into_iter().map(|tag| (tag.key, tag.value));
                Ok(BucketSeen::Present(Some(tags.collect())))
            }
            // Ceph before 17.2.7 uses the second code.
            Err(refusal) if refusal.is("NoSuchTagSet") || refusal.is("NoSuchTagSetError") => {
                match self.head(bucket).await? {
                    BucketSeen::Present(_) => Ok(BucketSeen::Present(Some(BTreeMap::new()))),
                    other => Ok(other),
                }
            }
            Err(refusal) if refusal.class() == Class::Unsupported => self.head(bucket).await,
            Err(refusal) => self.unseen(refusal),
        }
    }

    /// HeadBucket.
    ///
    /// Its errors have no body, so a proxy in front of the store may have sent them. For 403 and
    /// 404 the bucket is listed, so that the store itself states that there is no bucket or that it
    /// belongs to somebody else.
    async fn head(&self, bucket: &BucketName) -> Result<BucketSeen, UpstreamError> {
        match self.call("HeadBucket", self.client.head_bucket().bucket(bucket.as_str()).send()).await {
            Ok(_) => Ok(BucketSeen::Present(None)),
            Err(refusal) if matches!(refusal.status, Some(403 | 404)) => self.listed(bucket).await,
            Err(refusal) => self.unseen(refusal),
        }
    }

    /// ListObjectsV2. It needs the same permission as HeadBucket, and every store supports it.
    async fn listed(&self, bucket: &BucketName) -> Result<BucketSeen, UpstreamError> {
        let call = self.client.list_objects_v2().bucket(bucket.as_str()).max_keys(1);
        match self.call("ListObjectsV2", call.send()).await {
            Ok(_) => Ok(BucketSeen::Present(None)),
            Err(refusal) => self.unseen(refusal),
        }
    }

    /// Interprets an error as a statement about the bucket, if it is one.
    fn unseen(&self, refusal: Refusal) -> Result<BucketSeen, UpstreamError> {
        if refusal.is("NoSuchBucket") {
            return Ok(BucketSeen::Absent);
        }
        // A 403 about our credentials says nothing about the bucket.
        let refused =
            refusal.status == Some(403) && matches!(refusal.class(), Class::Denied { code } if is_about_bucket(&code));
        if refused || refusal.is_elsewhere(&self.region) {
            return Ok(BucketSeen::Forbidden);
        }
        Err(refusal.error())
    }

    /// Compares the bucket's owner with the account of the admin credentials, by GetBucketAcl and
    /// ListBuckets. An owner that allows access to the bucket, but not to its ACL, is another
    /// account.
    ///
    /// # Errors
    /// Returns an error if the store fails.
    pub async fn owner(&self, bucket: &BucketName) -> Result<OwnerSeen, UpstreamError> {
        let told = |owner: Option<Owner>| owner.and_then(|owner| owner.id).filter(|id| !id.is_empty());
        let call = self.client.get_bucket_acl().bucket(bucket.as_str()).send();
        let theirs = match self.call("GetBucketAcl", call).await {
            Ok(output) => told(output.owner),
            Err(refusal) => match refusal.error() {
                UpstreamError { class: Class::Unsupported, .. } => None,
                UpstreamError { class: Class::Denied { code }, .. } if is_about_bucket(&code) => {
                    return Ok(OwnerSeen::Other);
                }
                error => return Err(error),
            },
        };
        let Some(theirs) = theirs else { return Ok(OwnerSeen::Untold) };
        let call = self.client.list_buckets().max_buckets(1).send();
        let ours = self.call("ListBuckets", call).await.map_err(Refusal::error)?.owner;
        Ok(match told(ours) {
            Some(ours) if ours == theirs => OwnerSeen::Ours,
            Some(_) => OwnerSeen::Other,
            None => OwnerSeen::Untold,
        })
    }

    /// Returns true if the bucket contains no version, no delete marker and no unfinished upload.
    /// An empty page of a truncated list doesn't count as empty.
    ///
    /// # Errors
    /// Returns an error if one of the two lists fails.
    pub async fn is_empty(&self, bucket: &BucketName) -> Result<bool, UpstreamError> {
        Ok(self.has_no_versions(bucket).await? && self.has_no_uploads(bucket).await?)
    }

    async fn has_no_versions(&self, bucket: &BucketName) -> Result<bool, UpstreamError> {
        let call = self.client.list_object_versions().bucket(bucket.as_str()).max_keys(1);
        match self.call("ListObjectVersions", call.send()).await {
            Ok(output) => {
                let none = output.versions().is_empty() && output.delete_markers().is_empty();
                Ok(none && output.is_truncated != Some(true))
            }
            Err(refusal) => match refusal.error() {
                UpstreamError { class: Class::Unsupported, .. } => self.has_no_objects(bucket).await,
                error => Err(error),
            },
        }
    }

    /// Checks for objects in stores that don't support versions.
    async fn has_no_objects(&self, bucket: &BucketName) -> Result<bool, UpstreamError> {
        let call = self.client.list_objects_v2().bucket(bucket.as_str()).max_keys(1);
        let output = self.call("ListObjectsV2", call.send()).await.map_err(|refusal| refusal.error())?;
        Ok(output.contents().is_empty() && output.is_truncated != Some(true))
    }

    async fn has_no_uploads(&self, bucket: &BucketName) -> Result<bool, UpstreamError> {
        let call = self.client.list_multipart_uploads().bucket(bucket.as_str()).max_uploads(1);
        match self.call("ListMultipartUploads", call.send()).await {
            Ok(output) => Ok(output.uploads().is_empty() && output.is_truncated != Some(true)),
            Err(refusal) => match refusal.error() {
                UpstreamError { class: Class::Unsupported, .. } => Ok(true),
                error => Err(error),
            },
        }
    }

    /// CreateBucket, in the backend's region.
    ///
    /// # Errors
    /// Returns any answer except success, `BucketAlreadyOwnedByYou`, `BucketAlreadyExists` and that
    /// the bucket is in another region.
    pub async fn create(&self, bucket: &BucketName) -> Result<CreateAnswer, UpstreamError> {
        // S3 requires that us-east-1 is not named.
        let place = (self.region != "us-east-1").then(|| {
            let region = BucketLocationConstraint::from(self.region.as_str());
            CreateBucketConfiguration::builder().location_constraint(region).build()
        });
        let call = self.client.create_bucket().bucket(bucket.as_str()).set_create_bucket_configuration(place);
        match self.call("CreateBucket", call.send()).await {
            Ok(_) => Ok(CreateAnswer::Created),
            Err(refusal) if refusal.is("BucketAlreadyOwnedByYou") => Ok(CreateAnswer::AlreadyOwned),
            Err(refusal) if refusal.is("BucketAlreadyExists") => Ok(CreateAnswer::AlreadyExists),
            Err(refusal) if refusal.is_elsewhere(&self.region) => Ok(CreateAnswer::AlreadyExists),
            Err(refusal) => Err(refusal.error()),
        }
    }

    /// DeleteBucket.
    ///
    /// # Errors
    /// Returns any answer except success, `NoSuchBucket` and `BucketNotEmpty`.
    pub async fn delete(&self, bucket: &BucketName) -> Result<DeleteAnswer, UpstreamError> {
        match self.call("DeleteBucket", self.client.delete_bucket().bucket(bucket.as_str()).send()).await {
            Ok(_) => Ok(DeleteAnswer::Deleted),
            Err(refusal) if refusal.is("NoSuchBucket") => Ok(DeleteAnswer::Absent),
            Err(refusal) if refusal.is("BucketNotEmpty") => Ok(DeleteAnswer::NotEmpty),
            Err(refusal) => Err(refusal.error()),
        }
    }

    /// PutBucketTagging, which replaces the whole set.
    ///
    /// # Errors
    /// Returns an error if the store refuses or fails.
    pub async fn tag(&self, bucket: &BucketName, tags: &BTreeMap<String, String>) -> Result<(), UpstreamError> {
        let tag = |(key, value): (&String, &String)| {
            Tag::builder().key(key).value(value).build().expect("key and value are given")
        };
        let tagging = Tagging::builder().set_tag_set(Some(tags.iter().map(tag).collect())).build();
        let tagging = tagging.expect("the tag set is given");
        let call = self.client.put_bucket_tagging().bucket(bucket.as_str()).tagging(tagging);
        let call = call.customize().mutate_request(content_md5);
        self.call("PutBucketTagging", call.send()).await.map(drop).map_err(|refusal| refusal.error())
    }

    /// GetBucketVersioning.
    ///
    /// # Errors
    /// Returns an error if the store refuses or fails.
    pub async fn versioning(&self, bucket: &BucketName) -> Result<VersioningSeen, UpstreamError> {
        let call = self.client.get_bucket_versioning().bucket(bucket.as_str());
        let output = self.call("GetBucketVersioning", call.send()).await.map_err(Refusal::error)?;
        Ok(match output.status {
            Some(BucketVersioningStatus::Enabled) => VersioningSeen::Set(Versioning::Enabled),
            Some(BucketVersioningStatus::Suspended) => VersioningSeen::Set(Versioning::Suspended),
            _ => VersioningSeen::Unset,
        })
    }

    /// PutBucketVersioning.
    ///
    /// # Errors
    /// Returns an error if the store refuses or fails.
    pub async fn set_versioning(&self, bucket: &BucketName, versioning: Versioning) -> Result<(), UpstreamError> {
        let status = match versioning {
            Versioning::Enabled => BucketVersioningStatus::Enabled,
            Versioning::Suspended => BucketVersioningStatus::Suspended,
        };
        let configuration = VersioningConfiguration::builder().status(status).build();
        let call = self.client.put_bucket_versioning().bucket(bucket.as_str()).versioning_configuration(configuration);
        let call = call.customize().mutate_request(content_md5);
        self.call("PutBucketVersioning", call.send()).await.map(drop).map_err(|refusal| refusal.error())
    }
}

/// Returns true if a 403 with this code is about the bucket, false if it is about our credentials.
fn is_about_bucket(code: &str) -> bool {
    const ABOUT_US: [&str; 6] = [
        "InvalidAccessKeyId",
        "SignatureDoesNotMatch",
        "RequestTimeTooSkewed",
        "ExpiredToken",
        "InvalidToken",
        "AccountProblem",
    ];
    !ABOUT_US.contains(&code)
}

#[cfg(test)]
mod tests {
    use md5::{Digest, Md5};
    use rstest::rstest;

    use super::super::scripted::{Reply, Store};
    use super::*;

    fn bucket() -> BucketName {
        BucketName::parse("photos").expect("a name")
    }

    #[tokio::test]
    async fn bodies_carry_the_checksum_that_every_store_takes() {
        let store = Store::that(|_, _| Reply::ok(""));
        let upstream = store.upstream();
        upstream.tag(&bucket(), &BTreeMap::from([("a".into(), "b".into())])).await.expect("it is tagged");
        upstream.set_versioning(&bucket(), Versioning::Enabled).await.expect("it is set");
        for asked in store.asked("PUT") {
            let digest = asked.headers.get("content-md5").map(|digest| data_encoding::BASE64.decode(digest.as_bytes()));
            assert_eq!(digest, Some(Ok(Md5::digest(&asked.body).to_vec())));
            assert!(!asked.headers.keys().any(|name| name.contains("checksum")), "{:?}", asked.headers);
            let signed = &asked.headers["authorization"];
            assert!(signed.contains("content-md5") && !signed.contains("checksum"), "{signed}");
        }
        assert_eq!(store.asked("PUT").len(), 2);
    }

    /// Amazon S3 reports the region of a bucket before it reports whose it is.
    #[rstest]
    #[case(301, "PermanentRedirect", Some("eu-west-3"), true)]
    #[case(400, "AuthorizationHeaderMalformed", Some("eu-west-3"), true)]
    #[case(400, "AuthorizationHeaderMalformed", Some("us-east-1"), false)]
    #[case(301, "PermanentRedirect", None, false)]
    #[case(403, "AccessDenied", Some("eu-west-3"), true)]
    #[tokio::test]
    async fn a_bucket_in_another_region_is_not_ours_to_see(
        #[case] status: u16,
        #[case] code: &'static str,
        #[case] region: Option<&'static str>,
        #[case] theirs: bool,
    ) {
        let store = Store::that(move |_, _| Reply { region, ..Reply::error(status, code) });
        let upstream = store.upstream();
        assert_eq!(upstream.look(&bucket()).await.ok(), theirs.then_some(BucketSeen::Forbidden));
        assert_eq!(upstream.head(&bucket()).await.ok(), theirs.then_some(BucketSeen::Forbidden));
        let created = (theirs && status != 403).then_some(CreateAnswer::AlreadyExists);
        assert_eq!(upstream.create(&bucket()).await.ok(), created);
    }

    /// A proxy's page says nothing about the bucket, nor does the bare answer to HEAD that comes
    /// with it.
    // covers: 3.2.look.words
    #[rstest]
    #[case(403, true)]
    #[case(404, true)]
    #[case(403, false)]
    #[case(404, false)]
    #[tokio::test]
    async fn a_page_of_a_proxy_says_nothing_of_the_bucket(#[case] status: u16, #[case] tagging: bool) {
        let page = move || Reply { status, ..Reply::ok("<html><body>nginx</body></html>") };
        let store = Store::that(move |_, uri| match uri.contains("tagging") && !tagging {
            true => Reply::error(501, "NotImplemented"),
            false => page(),
        });
        let error = store.upstream().look(&bucket()).await.expect_err("nobody has said anything of it");
        assert_eq!(error.class, Class::Failed { code: format!("HTTP {status}") });
    }

    /// The list states in a body what the answer to HEAD can't.
    // covers: 3.2.look.words
    #[rstest]
    #[case(404, 404, "NoSuchBucket", Some(BucketSeen::Absent))]
    #[case(403, 403, "AccessDenied", Some(BucketSeen::Forbidden))]
    #[case(404, 403, "InvalidAccessKeyId", None)]
    #[case(404, 200, "", Some(BucketSeen::Present(None)))]
    #[case(403, 500, "InternalError", None)]
    #[tokio::test]
    async fn what_head_says_is_asked_for_in_words(
        #[case] bare: u16,
        #[case] status: u16,
        #[case] code: &'static str,
        #[case] seen: Option<BucketSeen>,
    ) {
        let store = Store::that(move |method, uri| match (method, status) {
            ("HEAD", _) => Reply { status: bare, ..Reply::ok("") },
            _ if uri.contains("tagging") => Reply::error(501, "NotImplemented"),
            (_, 200) => Reply::ok("<ListBucketResult/>"),
            _ => Reply::error(status, code),
        });
        assert_eq!(store.upstream().look(&bucket()).await.ok(), seen);
    }

    // covers: 3.2.adoption.account
    #[rstest]
    #[case("<Owner><ID>us</ID></Owner>", "us", OwnerSeen::Ours)]
    #[case("<Owner><ID>them</ID></Owner>", "us", OwnerSeen::Other)]
    #[case("<Owner><ID></ID></Owner>", "us", OwnerSeen::Untold)]
    #[case("", "us", OwnerSeen::Untold)]
    #[case("<Owner><ID>us</ID></Owner>", "", OwnerSeen::Untold)]
    #[tokio::test]
    async fn the_owner_of_a_bucket_is_compared_with_ours(
        #[case] theirs: &'static str,
        #[case] ours: &'static str,
        #[case] seen: OwnerSeen,
    ) {
        let store = Store::that(move |_, uri| match uri.contains("acl") {
            true => Reply::ok(&format!("<AccessControlPolicy>{theirs}</AccessControlPolicy>")),
            false => {
                Reply::ok(&format!("<ListAllMyBucketsResult><Owner><ID>{ours}</ID></Owner></ListAllMyBucketsResult>"))
            }
        });
        assert_eq!(store.upstream().owner(&bucket()).await, Ok(seen));
    }

    // covers: 3.2.adoption.account
    #[rstest]
    #[case(403, "AccessDenied", Some(OwnerSeen::Other))]
    #[case(501, "NotImplemented", Some(OwnerSeen::Untold))]
    #[case(403, "InvalidAccessKeyId", None)]
    #[case(404, "NoSuchBucket", None)]
    #[case(500, "InternalError", None)]
    #[tokio::test]
    async fn an_owner_that_is_not_told_is_not_ours(
        #[case] status: u16,
        #[case] code: &'static str,
        #[case] seen: Option<OwnerSeen>,
    ) {
        let store = Store::that(move |_, _| Reply::error(status, code));
        assert_eq!(store.upstream().owner(&bucket()).await.ok(), seen);
    }

    #[rstest]
    #[case("NoSuchTagSet")]
    #[case("NoSuchTagSetError")]
    #[tokio::test]
    async fn a_bucket_without_tags_is_one_in_every_dialect(#[case] code: &'static str) {
        let store =
            Store::that(move |method, _| if method == "HEAD" { Reply::ok("") } else { Reply::error(404, code) });
        let seen = store.upstream().look(&bucket()).await;
        assert_eq!(seen.ok(), Some(BucketSeen::Present(Some(BTreeMap::new()))));
    }

    #[rstest]
    #[case("versions", "ListVersionsResult")]
    #[case("uploads", "ListMultipartUploadsResult")]
    #[case("", "")]
    #[tokio::test]
    async fn a_list_that_goes_on_is_not_empty(#[case] which: &'static str, #[case] root: &'static str) {
        let store = Store::that(move |_, uri| match uri {
            uri if !which.is_empty() && uri.contains(which) => {
                Reply::ok(&format!("<{root}><IsTruncated>true</IsTruncated></{root}>"))
            }
            uri if uri.contains("versions") => Reply::ok("<ListVersionsResult/>"),
            _ => Reply::ok("<ListMultipartUploadsResult/>"),
        });
        assert_eq!(store.upstream().is_empty(&bucket()).await.ok(), Some(which.is_empty()));
    }
}
