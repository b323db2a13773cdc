//! Operations on buckets: existence, ownership, region, tags, versioning.

use s3s::dto::*;
use s3s::{S3ErrorCode, S3Result};

use super::call::Call;
use super::convert::{BUCKET_TAGS, owner, tag_set, tags, to_wire};
use super::dialect::ExistingOwnBucket;
use super::errors::{refuse, refuse_because};
use super::lock::LockConfiguration;
use super::state::{Bucket as Stored, Versioning};

pub(super) fn list(call: &mut Call<'_>, input: ListBucketsInput) -> S3Result<ListBucketsOutput> {
    let most = input.max_buckets.and_then(|most| usize::try_from(most).ok()).unwrap_or(usize::MAX);
    let after = input.continuation_token.unwrap_or_default();
    let prefix = input.prefix.clone().unwrap_or_default();
    let region = input.bucket_region;
    let mut owned = call.state.buckets.iter().filter(|(name, bucket)| {
        bucket.owner == call.account
            && name.starts_with(&prefix)
            && **name > after
            && region.as_ref().is_none_or(|region| *region == bucket.region)
    });
    let entry = |(name, bucket): (&String, &Stored)| Bucket {
        bucket_region: Some(bucket.region.clone()),
        creation_date: Some(to_wire(bucket.created)),
        name: Some(name.clone()),
    };
    let buckets: Vec<Bucket> = owned.by_ref().take(most).map(entry).collect();
    let more = owned.next().is_some();
    let continuation_token = buckets.last().filter(|_| more).and_then(|last| last.name.clone());
    Ok(ListBucketsOutput {
        buckets: Some(buckets),
        continuation_token,
        owner: Some(owner(call.account)),
        prefix: input.prefix,
    })
}

pub(super) fn create(call: &mut Call<'_>, input: CreateBucketInput) -> S3Result<CreateBucketOutput> {
    if !s3s::path::check_bucket_name(&input.bucket) {
        return Err(refuse(S3ErrorCode::InvalidBucketName));
    }
    let constraint = input.create_bucket_configuration.and_then(|configuration| configuration.location_constraint);
    let constraint = constraint.as_ref().map(BucketLocationConstraint::as_str);
    let region = region_for(&call.dialect.region, constraint)?.to_owned();
    let output = CreateBucketOutput { location: Some(format!("/{}", input.bucket)) };
    if let Some(existing) = call.state.buckets.get(&input.bucket) {
        return match call.dialect.existing_own_bucket {
            _ if existing.owner != call.account => Err(refuse(S3ErrorCode::BucketAlreadyExists)),
            ExistingOwnBucket::AlreadyOwnedByYou => Err(refuse(S3ErrorCode::BucketAlreadyOwnedByYou)),
            ExistingOwnBucket::Ok => Ok(output),
        };
    }
    let mut bucket = Stored::new(call.account, &region, call.now);
    if input.object_lock_enabled_for_bucket == Some(true) {
        if !call.dialect.object_lock {
            return Err(refuse(S3ErrorCode::NotImplemented));
        }
        bucket.versioning = Versioning::Enabled;
        bucket.lock = Some(LockConfiguration::default());
    }
    call.state.buckets.insert(input.bucket, bucket);
    Ok(output)
}

/// Returns the region of a new bucket.
///
/// An endpoint in us-east-1 creates buckets in any region, but its own region must not be named.
/// Any other endpoint creates buckets only in its own region, which must be named.
fn region_for<'a>(endpoint: &'a str, constraint: Option<&'a str>) -> S3Result<&'a str> {
    const FIRST: &str = "us-east-1";
    match constraint.filter(|constraint| !constraint.is_empty()) {
        None if endpoint == FIRST => Ok(FIRST),
        Some(FIRST) if endpoint == FIRST => Err(refuse(S3ErrorCode::InvalidLocationConstraint)),
        Some(constraint) if !is_region(constraint) => Err(refuse(S3ErrorCode::InvalidLocationConstraint)),
        Some(constraint) if endpoint == FIRST || constraint == endpoint => Ok(constraint),
        wrong => {
            let message = format!(
                "The {} location constraint is incompatible for the region specific endpoint this request was sent to.",
                wrong.unwrap_or("unspecified")
            );
            Err(refuse_because(S3ErrorCode::IllegalLocationConstraintException, message))
        }
    }
}

/// Returns true if a string has the form of a region (`eu-west-1`). `EU` is an old name for
/// eu-west-1.
fn is_region(text: &str) -> bool {
    let mut parts = text.split('-');
    let form = text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
    let number = parts.next_back().is_some_and(|last| last.parse::<u8>().is_ok());
    text == "EU" || (form && number && parts.count() >= 2)
}

pub(super) fn head(call: &mut Call<'_>, input: HeadBucketInput) -> S3Result<HeadBucketOutput> {
    let bucket = call.bucket(&input.bucket)?;
    Ok(HeadBucketOutput { bucket_region: Some(bucket.region.clone()), ..HeadBucketOutput::default() })
}

pub(super) fn delete(call: &mut Call<'_>, input: DeleteBucketInput) -> S3Result<DeleteBucketOutput> {
    let uploads_block = call.dialect.uploads_block_bucket_deletion;
    let bucket = call.bucket(&input.bucket)?;
    if !bucket.keys.is_empty() {
        return Err(match bucket.versioning {
            Versioning::Unversioned => refuse(S3ErrorCode::BucketNotEmpty),
            Versioning::Enabled | Versioning::Suspended => refuse_because(
                S3ErrorCode::BucketNotEmpty,
                "The bucket you tried to delete is not empty. You must delete all versions in the bucket.",
            ),
        });
    }
    if uploads_block && !bucket.uploads.is_empty() {
        return Err(refuse(S3ErrorCode::BucketNotEmpty));
    }
    call.state.buckets.remove(&input.bucket);
    Ok(DeleteBucketOutput {})
}

pub(super) fn location(call: &mut Call<'_>, input: GetBucketLocationInput) -> S3Result<GetBucketLocationOutput> {
    let bucket = call.bucket(&input.bucket)?;
    // Buckets in us-east-1 have a null location.
    let named = Some(bucket.region.clone()).filter(|region| region != "us-east-1");
    Ok(GetBucketLocationOutput { location_constraint: named.map(BucketLocationConstraint::from) })
}

/// Returns the ACL, which has only the grant of the owner. Other accounts get access by a policy.
pub(super) fn acl(call: &mut Call<'_>, input: GetBucketAclInput) -> S3Result<GetBucketAclOutput> {
    let owner = owner(&call.bucket(&input.bucket)?.owner);
    let grantee = Grantee {
        display_name: None,
        email_address: None,
        id: owner.id.clone(),
        type_: Type::from_static(Type::CANONICAL_USER),
        uri: None,
    };
    let grant = Grant { grantee: Some(grantee), permission: Some(Permission::from_static(Permission::FULL_CONTROL)) };
    Ok(GetBucketAclOutput { grants: Some(vec![grant]), owner: Some(owner) })
}

pub(super) fn get_tagging(call: &mut Call<'_>, input: GetBucketTaggingInput) -> S3Result<GetBucketTaggingOutput> {
    if is_missing_and_set(call, &input.bucket) {
        return Err(refuse(S3ErrorCode::NoSuchTagSet));
    }
    let bucket = tagged(call, &input.bucket)?;
    let tags = bucket.tags.as_ref().ok_or_else(|| refuse(S3ErrorCode::NoSuchTagSet))?;
    Ok(GetBucketTaggingOutput { tag_set: tag_set(tags) })
}

pub(super) fn put_tagging(call: &mut Call<'_>, input: PutBucketTaggingInput) -> S3Result<PutBucketTaggingOutput> {
    let bucket = tagged(call, &input.bucket)?;
    // A later read shows an empty tag set, not a missing one.
    bucket.tags = Some(tags(input.tagging.tag_set, BUCKET_TAGS)?);
    Ok(PutBucketTaggingOutput::default())
}

pub(super) fn delete_tagging(
    call: &mut Call<'_>,
    input: DeleteBucketTaggingInput,
) -> S3Result<DeleteBucketTaggingOutput> {
    if is_missing_and_set(call, &input.bucket) {
        return Ok(DeleteBucketTaggingOutput::default());
    }
    tagged(call, &input.bucket)?.tags = None;
    Ok(DeleteBucketTaggingOutput::default())
}

/// Returns true if a request for a setting of a missing bucket is answered as if the bucket
/// existed.
fn is_missing_and_set(call: &Call<'_>, name: &str) -> bool {
    call.dialect.tagging && call.dialect.settings_of_missing_buckets && !call.state.buckets.contains_key(name)
}

fn tagged<'c>(call: &'c mut Call<'_>, name: &str) -> S3Result<&'c mut Stored> {
    if !call.dialect.tagging {
        return Err(refuse(S3ErrorCode::NotImplemented));
    }
    call.bucket(name)
}

pub(super) fn get_versioning(
    call: &mut Call<'_>,
    input: GetBucketVersioningInput,
) -> S3Result<GetBucketVersioningOutput> {
    let status = match versioned(call, &input.bucket)?.versioning {
        Versioning::Unversioned => None,
        Versioning::Enabled => Some(BucketVersioningStatus::ENABLED),
        Versioning::Suspended => Some(BucketVersioningStatus::SUSPENDED),
    };
    let status = status.map(BucketVersioningStatus::from_static);
    Ok(GetBucketVersioningOutput { status, ..GetBucketVersioningOutput::default() })
}

pub(super) fn put_versioning(
    call: &mut Call<'_>,
    input: PutBucketVersioningInput,
) -> S3Result<PutBucketVersioningOutput> {
    if is_missing_and_set(call, &input.bucket) {
        return Ok(PutBucketVersioningOutput {});
    }
    let bucket = versioned(call, &input.bucket)?;
    let status = input.versioning_configuration.status;
    bucket.versioning = match status.as_ref().map(BucketVersioningStatus::as_str) {
        Some(BucketVersioningStatus::ENABLED) => Versioning::Enabled,
        Some(BucketVersioningStatus::SUSPENDED) if bucket.lock.is_some() => {
            let message =
                "An Object Lock configuration is present on this bucket, so the versioning state cannot be changed.";
            return Err(refuse_because(S3ErrorCode::InvalidBucketState, message));
        }
        Some(BucketVersioningStatus::SUSPENDED) => Versioning::Suspended,
        _ => return Err(refuse(S3ErrorCode::MalformedXML)),
    };
    Ok(PutBucketVersioningOutput::default())
}

fn versioned<'c>(call: &'c mut Call<'_>, name: &str) -> S3Result<&'c mut Stored> {
    if !call.dialect.versioning {
        return Err(refuse(S3ErrorCode::NotImplemented));
    }
    call.bucket(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(endpoint: &str, constraint: Option<&str>) -> Result<String, String> {
        let region = region_for(endpoint, constraint);
        region.map(str::to_owned).map_err(|error| error.code().as_str().to_owned())
    }

    #[test]
    fn regions_follow_the_endpoint() {
        let illegal = Err("IllegalLocationConstraintException".to_owned());
        let invalid = Err("InvalidLocationConstraint".to_owned());
        assert_eq!(outcome("us-east-1", None), Ok("us-east-1".to_owned()));
        assert_eq!(outcome("us-east-1", Some("us-east-1")), invalid);
        assert_eq!(outcome("us-east-1", Some("eu-west-1")), Ok("eu-west-1".to_owned()));
        assert_eq!(outcome("us-east-1", Some("nowhere")), invalid);
        assert_eq!(outcome("eu-west-1", None), illegal);
        assert_eq!(outcome("eu-west-1", Some("eu-west-1")), Ok("eu-west-1".to_owned()));
        assert_eq!(outcome("eu-west-1", Some("eu-central-1")), illegal);
        assert_eq!(outcome("eu-west-1", Some("us-east-1")), illegal);
    }
}
