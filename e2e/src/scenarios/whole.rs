//! Invariants of a bound claim, whatever happened before.

use anyhow::{Context as _, Result, ensure};
use kube::ResourceExt;
use stowage_operator::api::BucketClaim;
use stowage_operator::api::wire::{Role, TAG_CLAIM_UID};
use stowage_testbed::environment::setup::Setup;
use stowage_testbed::objects::text;

/// Key and bucket in its consumer Secret.
pub(super) struct Given {
    pub(super) key_id: String,
    pub(super) bucket: String,
}

/// Checks that there are one record, one credential, a consumer Secret that shows it and is owned
/// by the claim, and a bucket with its tags.
pub(super) async fn whole(setup: &Setup<'_>, claim: &BucketClaim) -> Result<Given> {
    let name = claim.name_any();
    for role in [Role::BucketRecord, Role::VirtualCredential] {
        let found = setup.internal(claim, role).await?.len();
        ensure!(found == 1, "claim {name} has {found} Secrets of role {}", role.as_str());
    }
    let credential = setup.internal(claim, Role::VirtualCredential).await?.remove(0);
    let given = given(setup, claim).await?;
    let key = text(&credential, "access_key_id");
    ensure!(given.key_id == key, "claim {name} shows key {}, and has {key}", given.key_id);
    let tags = setup.environment.store.tags(&given.bucket).await?;
    let tags = tags.with_context(|| format!("claim {name} is bound, but bucket {} isn't there", given.bucket))?;
    ensure!(
        tags.get(TAG_CLAIM_UID) == claim.metadata.uid.as_ref(),
        "claim {name} is bound, and the tags of bucket {} are {tags:?}",
        given.bucket
    );
    Ok(given)
}

/// Returns the content of the consumer Secret, which must be owned by the claim and agree with its
/// status.
pub(super) async fn given(setup: &Setup<'_>, claim: &BucketClaim) -> Result<Given> {
    let name = claim.name_any();
    let secret = setup.secrets(&setup.tenant).get(&format!("{name}-s3")).await;
    let secret = secret.with_context(|| format!("claim {name} has no consumer Secret"))?;
    let owned = secret.owner_references().iter().any(|owner| Some(&owner.uid) == claim.metadata.uid.as_ref());
    ensure!(owned, "the consumer Secret of claim {name} is not its own");
    let given = Given { key_id: text(&secret, "AWS_ACCESS_KEY_ID"), bucket: text(&secret, "BUCKET_NAME") };
    let status = claim.status.clone().unwrap_or_default();
    let told = (status.access_key_id.unwrap_or_default(), status.bucket_name.unwrap_or_default());
    ensure!(
        told == (given.key_id.clone(), given.bucket.clone()),
        "claim {name} tells of {told:?}, its consumer Secret of ({:?}, {:?})",
        given.key_id,
        given.bucket
    );
    Ok(given)
}
