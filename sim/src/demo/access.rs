//! The middle of the tour: what the credentials of tenants allow, and what they don't.

use k8s_openapi::api::core::v1::Secret;
use stowage_operator::api::{BucketClaim, ClaimRef};
use stowage_world::World;
use terminal::Table;
use terminal::{Span, Tone};

use super::step::{DemoStep, Finding, Page};
use super::tenant::{Refused, Tenant, TenantResult};
use super::text::PAGE_WIDTH;
use super::tour::Tour;
use super::views;

/// Key of the object that each tenant writes.
pub(super) const KEY: &str = "hello.txt";

/// Returns the content of that object.
pub(super) fn greeting(claim: &ClaimRef) -> String {
    format!("hello from {claim}")
}

/// Creates a client from each Secret. Reports the fields of the first one, without their values.
pub(super) fn connection_secrets<S>(tour: &mut Tour<S>) -> Finding {
    let claims = views::claims(&tour.world);
    for claim in claims.iter().filter(|claim| views::is_bound(claim)) {
        tour.tenants.push(new_tenant(&tour.world, claim)?);
    }
    let tenant = tour.tenants.first().ok_or("there is no tenant")?;
    let secret = views::secret(&tour.world, &tenant.claim.namespace, &tenant.secret);
    let fields = secret.and_then(|secret| secret.data).unwrap_or_default().into_keys().collect::<Vec<_>>().join(", ");
    Ok(format!("Secret {} has {fields}", tenant.secret_place()))
}

/// Returns the name and the content of the Secret that a claim is bound to.
fn bound_secret(world: &World, claim: &BucketClaim) -> Result<(String, Secret), String> {
    let at = views::place(claim);
    let name = claim.status.as_ref().and_then(|status| status.bound_secret_name.clone()).unwrap_or_default();
    let secret = views::secret(world, &at.namespace, &name);
    let secret = secret.ok_or_else(|| format!("{at} is Bound, but there is no Secret {name}"))?;
    Ok((name, secret))
}

/// Creates a tenant from the Secret of a bound claim alone.
///
/// # Errors
/// Returns a message about what is missing.
pub(super) fn new_tenant(world: &World, claim: &BucketClaim) -> Result<Tenant, String> {
    let (name, secret) = bound_secret(world, claim)?;
    Tenant::new(views::place(claim), &name, &secret, world.tenant_http(), world.tenants_time())
}

/// Has each tenant write an object, read it back and list its bucket.
pub(super) async fn put_get_list<S: FnMut(&DemoStep)>(tour: &mut Tour<S>, page: &mut Page) -> Finding {
    let mut table = Table::new(&["CREDENTIALS FROM", "BUCKET", "PUT", "GET", "LIST"]);
    let mut ok = true;
    for tenant in &tour.tenants {
        let (bucket, text) = (&tenant.bucket, greeting(&tenant.claim));
        let put = tenant.put(bucket, KEY, &text).await;
        let got = tenant.get(bucket, KEY).await;
        let list = tenant.list(bucket).await;
        let same = got.as_ref() == Ok(&text);
        let listed = list.as_ref().is_ok_and(|keys| keys.iter().any(|key| key == KEY));
        table.row([
            tenant.secret_place().into(),
            bucket.clone().into(),
            toned(said(&put, |()| "200".to_owned()), put.is_ok()),
            toned(said(&got, |text| format!("\"{text}\"")), same),
            toned(said(&list, |keys| keys.join(" ")), listed),
        ]);
        ok &= put.is_ok() && same && listed;
    }
    page.lines(table.lines(PAGE_WIDTH));
    match ok {
        true => Ok("what was stored was read back and listed".to_owned()),
        false => Err("not all requests were answered as due".to_owned()),
    }
}

/// Describes an answer; `success` describes a successful one.
pub(super) fn said<T>(answer: &TenantResult<T>, success: impl FnOnce(&T) -> String) -> String {
    match answer {
        Ok(value) => success(value),
        Err(refused) => refused.to_string(),
    }
}

/// Returns a cell with a tone for success or failure.
pub(super) fn toned(text: String, ok: bool) -> Span {
    Span::new(if ok { Tone::Good } else { Tone::Bad }, text)
}

/// Has the first tenant access the bucket of another claim, from another namespace if possible, or
/// else a bucket that may not exist. The answer is the same in all cases.
pub(super) async fn neighbour_refused<S: FnMut(&DemoStep)>(tour: &mut Tour<S>) -> Finding {
    let tenant = tour.tenants.first().ok_or("there is no tenant")?;
    let others = || tour.tenants.iter().filter(|other| other.bucket != tenant.bucket);
    let stranger = others().find(|other| other.claim.namespace != tenant.claim.namespace).or_else(|| others().next());
    let bucket = stranger.map_or("somebody-elses-bucket", |other| other.bucket.as_str());
    let get = tenant.get(bucket, KEY).await.map(drop);
    let put = tenant.put(bucket, KEY, "overwritten").await;
    let list = tenant.list(bucket).await.map(drop);
    let answers = [("GetObject", get), ("PutObject", put), ("ListObjectsV2", list)];
    all_denied(&format!("the key of {} on bucket {bucket}", tenant.claim), &answers)
}

/// Has the first tenant try to delete its own bucket and to create another one.
pub(super) async fn administration_refused<S: FnMut(&DemoStep)>(tour: &mut Tour<S>) -> Finding {
    let tenant = tour.tenants.first().ok_or("there is no tenant")?;
    let delete = tenant.delete_bucket(&tenant.bucket).await;
    let create = tenant.create_bucket(&format!("{}-2", tenant.bucket)).await;
    let answers = [("DeleteBucket", delete), ("CreateBucket", create)];
    all_denied(&format!("the key of {} on its own bucket and a new one", tenant.claim), &answers)
}

/// Returns true if an answer is `AccessDenied`.
pub(super) fn denied<T>(answer: &TenantResult<T>) -> bool {
    matches!(answer, Err(Refused { code, .. }) if code == "AccessDenied")
}

fn all_denied(what: &str, answers: &[(&str, TenantResult<()>)]) -> Finding {
    let told = answers.iter().map(|(request, answer)| format!("{request} {}", said(answer, |()| "200".to_owned())));
    let told = format!("{what}: {}", told.collect::<Vec<_>>().join(", "));
    if answers.iter().all(|(_, answer)| denied(answer)) { Ok(told) } else { Err(told) }
}

/// Returns true if an answer is `InvalidAccessKeyId`: the gateway doesn't know the key.
pub(super) fn key_is_unknown<T>(answer: &TenantResult<T>) -> bool {
    matches!(answer, Err(Refused { code, .. }) if code == "InvalidAccessKeyId")
}
