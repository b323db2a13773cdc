//! The middle of the tour: what tenants can do with their Secrets, and what not.

use k8s_openapi::api::core::v1::Secret;
use stowage_operator::api::{BucketClaim, ClaimRef};

use crate::world::World;

use super::step::{Finding, Page, Span, Step, Tone};
use super::table::Table;
use super::tenant::{Answer, Refused, Tenant};
use super::text::PAGE_WIDTH;
use super::tour::Tour;
use super::views;

/// Key of the object that each tenant stores.
pub(super) const KEY: &str = "hello.txt";

/// What stands in it.
pub(super) fn greeting(claim: &ClaimRef) -> String {
    format!("hello from {claim}")
}

/// Shows the first Secret, values hidden, and makes a client of each.
pub(super) async fn connection_secrets<S: FnMut(&Step)>(tour: &mut Tour<S>, page: &mut Page) -> Finding {
    for claim in views::claims(&tour.world).iter().filter(|claim| views::is_bound(claim)) {
        if tour.tenants.is_empty() {
            describe(&tour.world, claim, page);
        }
        match new_tenant(&tour.world, claim) {
            Ok(tenant) => tour.tenants.push(tenant),
            Err(why) => return Finding::bad(why),
        }
    }
    let tenants = tour.tenants.iter().map(|tenant| format!("{}/{}", tenant.claim.namespace, tenant.secret));
    Finding::good(format!("Secrets with all that an S3 client needs: {}", tenants.collect::<Vec<_>>().join(", ")))
}

/// Name and content of the Secret that a claim is bound to.
fn bound_secret(world: &World, claim: &BucketClaim) -> Result<(String, Secret), String> {
    let at = views::place(claim);
    let name = claim.status.as_ref().and_then(|status| status.bound_secret_name.clone()).unwrap_or_default();
    let secret = views::secret(world, &at.namespace, &name);
    let secret = secret.ok_or_else(|| format!("{at} is Bound, but there is no Secret {name}"))?;
    Ok((name, secret))
}

/// Who works with nothing but the Secret of a bound claim.
///
/// # Errors
/// With what is missing.
pub(super) fn new_tenant(world: &World, claim: &BucketClaim) -> Result<Tenant, String> {
    let (name, secret) = bound_secret(world, claim)?;
    Tenant::new(views::place(claim), &name, &secret, world.tenant_http())
}

/// As `kubectl describe` does: keys and sizes, no values.
fn describe(world: &World, claim: &BucketClaim, page: &mut Page) {
    let Ok((name, secret)) = bound_secret(world, claim) else { return };
    page.command(format!("kubectl describe secret {name} -n {}", views::place(claim).namespace));
    let owners = secret.metadata.owner_references.iter().flatten();
    for owner in owners {
        page.line(format!("Controlled By:  {}/{}", owner.kind, owner.name));
    }
    page.gap();
    page.line("Data");
    page.line("====");
    let data = secret.data.iter().flatten();
    let width = data.clone().map(|(key, _)| key.len() + 1).max().unwrap_or_default();
    for (key, value) in data {
        page.line(format!("{:width$}  {} bytes", format!("{key}:"), value.0.len()));
    }
}

/// Requests and their answers.
struct Requests(Table);

impl Requests {
    fn new() -> Self {
        Self(Table::new(&["CREDENTIALS FROM", "REQUEST", "TARGET", "ANSWER"]))
    }

    /// Adds one; `wanted` says whether it was answered as it should be.
    fn add(&mut self, tenant: &Tenant, request: &str, target: &str, answer: impl Into<String>, wanted: bool) {
        let tone = if wanted { Tone::Good } else { Tone::Bad };
        self.0.row([
            format!("{}/{}", tenant.claim.namespace, tenant.secret).into(),
            request.into(),
            target.into(),
            Span::new(tone, answer),
        ]);
    }

    fn show(self, page: &mut Page) {
        page.lines(self.0.lines(PAGE_WIDTH));
    }
}

/// What an answer says; success in the given words.
fn said<T>(answer: &Answer<T>, success: impl FnOnce(&T) -> String) -> String {
    match answer {
        Ok(value) => success(value),
        Err(refused) => refused.to_string(),
    }
}

/// Each tenant stores an object, reads it back and lists its bucket.
pub(super) async fn put_get_list<S: FnMut(&Step)>(tour: &mut Tour<S>, page: &mut Page) -> Finding {
    let mut requests = Requests::new();
    let mut ok = true;
    for tenant in &tour.tenants {
        let (bucket, text) = (&tenant.bucket, greeting(&tenant.claim));
        let object = format!("{bucket}/{KEY}");
        let put = tenant.put(bucket, KEY, &text).await;
        requests.add(tenant, "PutObject", &object, said(&put, |()| format!("200, {} bytes", text.len())), put.is_ok());
        let got = tenant.get(bucket, KEY).await;
        let same = got.as_ref() == Ok(&text);
        requests.add(tenant, "GetObject", &object, said(&got, |text| format!("200, \"{text}\"")), same);
        let list = tenant.list(bucket).await;
        let listed = list.as_ref().is_ok_and(|keys| keys.iter().any(|key| key == KEY));
        requests.add(tenant, "ListObjectsV2", bucket, said(&list, |keys| format!("200, {}", keys.join(" "))), listed);
        ok &= put.is_ok() && same && listed;
    }
    requests.show(page);
    let detail = if ok { "what was stored was read back and listed" } else { "not all requests were answered as due" };
    Finding { ok, detail: detail.to_owned() }
}

/// The first tenant tries the bucket of another claim, in another namespace if there is one, else one that may not
/// even exist: the answer is the same.
pub(super) async fn neighbour_refused<S: FnMut(&Step)>(tour: &mut Tour<S>, page: &mut Page) -> Finding {
    let Some(tenant) = tour.tenants.first() else { return Finding::bad("there is no tenant") };
    let others = || tour.tenants.iter().filter(|other| other.bucket != tenant.bucket);
    let stranger = others().find(|other| other.claim.namespace != tenant.claim.namespace).or_else(|| others().next());
    let bucket = stranger.map_or("somebody-elses-bucket", |other| other.bucket.as_str());
    let object = format!("{bucket}/{KEY}");
    let mut requests = Requests::new();
    let got = tenant.get(bucket, KEY).await;
    requests.add(tenant, "GetObject", &object, said(&got, Clone::clone), is_denied(&got));
    let put = tenant.put(bucket, KEY, "overwritten").await;
    requests.add(tenant, "PutObject", &object, said(&put, |()| "200".to_owned()), is_denied(&put));
    let list = tenant.list(bucket).await;
    requests.add(tenant, "ListObjectsV2", bucket, said(&list, |keys| keys.join(" ")), is_denied(&list));
    requests.show(page);
    if is_denied(&got) && is_denied(&put) && is_denied(&list) {
        let whose = stranger
            .map_or_else(|| "one of somebody else".to_owned(), |other| format!("the bucket of {}", other.claim));
        Finding::good(format!("the key of {} opens its own bucket, not {whose}", tenant.claim))
    } else {
        Finding::bad(format!("bucket {bucket} is not closed to {}", tenant.claim))
    }
}

fn is_denied<T>(answer: &Answer<T>) -> bool {
    matches!(answer, Err(Refused { code, .. }) if code == "AccessDenied")
}

/// The first tenant tries to delete its own bucket, and to make another.
pub(super) async fn administration_refused<S: FnMut(&Step)>(tour: &mut Tour<S>, page: &mut Page) -> Finding {
    let Some(tenant) = tour.tenants.first() else { return Finding::bad("there is no tenant") };
    let wish = format!("{}-2", tenant.bucket);
    let mut requests = Requests::new();
    let deleted = tenant.delete_bucket(&tenant.bucket).await;
    requests.add(tenant, "DeleteBucket", &tenant.bucket, said(&deleted, |()| "204".to_owned()), is_denied(&deleted));
    let created = tenant.create_bucket(&wish).await;
    requests.add(tenant, "CreateBucket", &wish, said(&created, |()| "200".to_owned()), is_denied(&created));
    requests.show(page);
    if is_denied(&deleted) && is_denied(&created) {
        Finding::good("buckets come and go with claims alone, and the gateway sees to it")
    } else {
        Finding::bad("the gateway let a tenant make or delete a bucket")
    }
}

/// The requests of a tenant whose claim is gone.
pub(super) async fn try_old_key(tenant: &Tenant, page: &mut Page) -> bool {
    let unknown = |refused: Option<&Refused>| refused.is_some_and(|refused| refused.code == "InvalidAccessKeyId");
    let mut requests = Requests::new();
    let got = tenant.get(&tenant.bucket, KEY).await;
    let ok = unknown(got.as_ref().err());
    requests.add(tenant, "GetObject", &format!("{}/{KEY}", tenant.bucket), said(&got, Clone::clone), ok);
    requests.show(page);
    ok
}

/// Reads what a tenant of the same claim stored in an earlier life.
pub(super) async fn read_old_object(tenant: &Tenant, page: &mut Page) -> bool {
    let mut requests = Requests::new();
    let got = tenant.get(&tenant.bucket, KEY).await;
    let ok = got.as_ref() == Ok(&greeting(&tenant.claim));
    let target = format!("{}/{KEY}", tenant.bucket);
    requests.add(tenant, "GetObject", &target, said(&got, |text| format!("200, \"{text}\"")), ok);
    requests.show(page);
    ok
}
