//! Claims that want the same bucket, and claims without a bucket.

use kube::ResourceExt;
use stowage_operator::api::{BucketClaim, ClaimRef, NameTemplate};
use stowage_world::World;

use super::views;

/// Two claims that request the same bucket.
pub(super) struct Conflict {
    /// The claim that holds it.
    pub(super) holder: ClaimRef,
    /// The claim that doesn't.
    pub(super) loser: ClaimRef,
    /// The bucket.
    pub(super) bucket: String,
}

impl Conflict {
    /// Returns the first claim whose bucket is held by another claim, and that claim.
    pub(super) fn first(world: &World) -> Option<Self> {
        let claims = views::claims(world);
        let mut losers = claims.iter().filter(|claim| lost_its_name(claim));
        losers.find_map(|loser| {
            let wanted = wanted_bucket(world, loser)?;
            let bucket_of = |claim: &BucketClaim| claim.status.as_ref()?.bucket_name.clone();
            let holder =
                claims.iter().find(|claim| views::is_bound(claim) && bucket_of(claim).as_ref() == Some(&wanted))?;
            Some(Self { holder: views::place(holder), loser: views::place(loser), bucket: wanted })
        })
    }
}

/// Returns true if another claim holds the bucket that this claim wants.
pub(super) fn lost_its_name(claim: &BucketClaim) -> bool {
    views::ready(claim).is_some_and(|ready| ready.reason == "BucketNameConflict")
}

/// Returns the claims that are not bound, without those that lost a name conflict.
pub(super) fn others_unbound(world: &World) -> impl Iterator<Item = BucketClaim> {
    views::claims(world).into_iter().filter(|claim| !views::is_bound(claim) && !lost_its_name(claim))
}

/// Returns the bucket that a claim requests, by its spec or by its backend's template.
fn wanted_bucket(world: &World, claim: &BucketClaim) -> Option<String> {
    if let Some(name) = &claim.spec.bucket_name {
        return Some(name.clone());
    }
    let backends = views::backends(world);
    let backend = backends.iter().find(|backend| backend.name_any() == claim.spec.backend_ref.name)?;
    let template = NameTemplate::parse(&backend.spec.bucket_name_template).ok()?;
    let at = views::place(claim);
    template.render(&at.namespace, &at.name).ok().map(|name| name.to_string())
}
