//! Answers the looks of a plan. It only reads. Absence is a value, and an error stays an error.

mod accesses;
mod obc;

use std::sync::Arc;

use k8s_openapi::api::core::v1::Secret;
use kube::api::{ListParams, ObjectList};
use kube::core::DeserializeGuard;
use kube::runtime::reflector::Store;
use kube::{Api, Client};

use crate::api::{BucketClaim, BucketRecord, Claim, ClaimRef, ClaimUid, RecordName, kept, wire};
use crate::cache::{AccessCache, BackendCache, NamespaceCache, SecretCache, UsageCache};
use crate::kubernetes;
use crate::mandate::NoMandate;
use crate::plan::{
    Answer, Asking, BackendSeen, BucketSeen, Cached, Failure, Holder, Look, OwnerSeen, Setting, Step, Stored, Target,
    VersioningSeen, View,
};
use crate::upstream::{Caller, Class, Upstream, UpstreamError, Upstreams};

/// The sources of answers.
pub(crate) struct Observer {
    pub(crate) client: Client,
    pub(crate) setting: Arc<Setting>,
    pub(crate) internal: Arc<SecretCache>,
    pub(crate) consumers: Arc<SecretCache>,
    pub(crate) backends: Arc<BackendCache>,
    pub(crate) namespaces: Arc<NamespaceCache>,
    pub(crate) accesses: Arc<AccessCache>,
    /// Store of claims, to look up if a claim shares its bucket; `None` if nothing needs that.
    pub(crate) claims: Option<Store<DeserializeGuard<BucketClaim>>>,
    pub(crate) usage: Arc<UsageCache>,
    pub(crate) upstreams: Arc<Upstreams>,
}

impl Observer {
    /// Builds the view of a pass over a claim, from the caches.
    pub(crate) fn begin(&self, raw: &BucketClaim) -> View {
        let claim = Claim::parse(raw);
        let internal = self.internal.of_claim(&claim.uid);
        let bound = claim.status.bound_secret_name.clone();
        let mut consumers = self.consumers.of_claim(&claim.uid);
        // A UID is not secret: anybody who knows it can write it into an owner reference in another
        // namespace.
        consumers.retain(|secret| secret.0.metadata.namespace.as_deref() == Some(&claim.at.namespace));
        // A Secret of the wanted name that is not this claim's is only found by name.
        for name in [Some(claim.consumer_secret.clone()), bound].into_iter().flatten() {
            consumers.extend(self.consumers.get(&claim.at.namespace, &name));
        }
        let recheck = self.recheck(&claim);
        let held = self.usage.of(internal.iter().filter_map(|secret| RecordName::parse(secret.name()).ok()));
        let asking = self.asking(&claim.at, &internal);
        View::new(self.setting.clone(), claim, Cached { internal, consumers, recheck, held, asking })
    }

    /// Returns the accesses that name a claim, and the namespaces that its records are open to.
    fn asking(&self, claim: &ClaimRef, internal: &[Stored]) -> Option<Asking> {
        let accesses = self.accesses.live_of_claim(claim)?;
        let open = internal.iter().filter_map(|secret| BucketRecord::read(&secret.0).ok());
        let open = open.flat_map(|record| record.accesses.into_keys()).filter_map(|uid| self.namespaces.of_uid(&uid));
        let asking = accesses.iter().filter_map(|access| self.namespaces.get(&access.namespace));
        let namespaces = asking.chain(open).map(|asker| (asker.uid.clone(), asker)).collect();
        let unasked = internal.iter().filter_map(|secret| BucketRecord::read(&secret.0).ok());
        let unasked = unasked.flat_map(|record| self.unasked(&record)).collect();
        let recorded = self.recorded(&accesses, internal);
        Some(Asking { accesses, recorded, namespaces, unasked })
    }

    /// Returns looks at the claim's Secrets that a live read missed although the watch has shown
    /// them.
    fn recheck(&self, claim: &Claim) -> Vec<Look> {
        let internal = self.internal.missed_of(&claim.uid).into_iter().map(|(_, name)| Look::Internal(name));
        let consumers = self.consumers.missed_of(&claim.uid).into_iter();
        let consumers = consumers.filter(|(namespace, _)| *namespace == claim.at.namespace);
        internal.chain(consumers.map(|(_, name)| Look::Consumer(name))).collect()
    }

    /// Answers one look.
    pub(crate) async fn answer(&self, caller: &Arc<Caller>, claim: &Claim, look: &Look) -> Answer {
        let answer = self.try_answer(caller, claim, look).await;
        answer.unwrap_or_else(|failure| Answer::Failed(Step::Look(look.clone()), failure))
    }

    async fn try_answer(&self, caller: &Arc<Caller>, claim: &Claim, look: &Look) -> Result<Answer, Failure> {
        Ok(match look {
            Look::Backend(name) => Answer::Backend(name.clone(), self.backend(&claim.at, name)),
            Look::Holder(at) => Answer::Holder(at.clone(), self.holder(&claim.uid, at)),
            Look::PublicRival(at) => Answer::PublicRival(at.clone(), self.public_rival(&claim.uid, at)),
            Look::Claim => Answer::Claim(self.claim(&claim.at).await?),
            Look::Own => Answer::Own(self.own(&claim.uid).await?),
            Look::Internal(name) => Answer::Internal(name.clone(), self.internal_secret(name).await?),
            Look::Consumer(name) => {
                Answer::Consumer(name.clone(), self.secret(&claim.at.namespace, name, &self.consumers).await?)
            }
            Look::CredentialsFor(at) => Answer::CredentialsFor(at.clone(), self.credentials_for(at).await?),
            Look::Bucket(at) => Answer::Bucket(at.clone(), self.bucket(caller, at).await?),
            Look::Owner(at) => Answer::Owner(at.clone(), self.owner(caller, at).await?),
            Look::Contents(at) => Answer::Contents(at.clone(), self.contents(caller, at).await?),
            Look::Versioning(at) => Answer::Versioning(at.clone(), self.versioning(caller, at).await?),
            Look::Consent(question) => {
                Answer::Consent(question.clone(), Box::new(self.consent(claim, question).await?))
            }
        })
    }

    fn backend(&self, claim: &ClaimRef, name: &str) -> BackendSeen {
        match self.backends.get(name) {
            None => BackendSeen::Missing,
            Some(Err(why)) => BackendSeen::Invalid(why),
            Some(Ok(backend)) => {
                let labels = self.namespaces.labels(&claim.namespace);
                BackendSeen::Present {
                    allowed: backend.access.allows(&claim.namespace, labels.as_ref()),
                    spellings: self.backends.spellings(&backend.endpoint),
                    shared: self.backends.shared(&backend.endpoint),
                    backend,
                }
            }
        }
    }

    fn holder(&self, uid: &ClaimUid, target: &Target) -> Holder {
        let stored = self.internal.get(&self.setting.operator_namespace, target.record().as_str());
        let others = |secret: &Stored| secret.text("claim_uid") != Some(uid.as_str());
        match stored.map(|stored| BucketRecord::read(&stored.0)) {
            Some(Ok(record)) if record.uid != *uid => Holder::Other(record.claim),
            Some(Err(damage)) => Holder::Damaged(damage.to_string()),
            _ if self.internal.of_bucket(&target.bucket).iter().any(|s| others(s) && self.is_key_to(s, target)) => {
                Holder::Suspect
            }
            _ => Holder::Unknown,
        }
    }

    /// Returns true if a Secret is a credential for this bucket: its recorded endpoint is that of
    /// the bucket, or an earlier one of the same store.
    ///
    /// Without a recorded endpoint, and if its backend is deleted, the Secret's endpoint is
    /// unknown. The Secret counts then, because a false conflict is less harmful than a missed one.
    fn is_key_to(&self, secret: &Stored, target: &Target) -> bool {
        let noted = secret.endpoint();
        let backend = secret.text("backend").and_then(|name| self.backends.get(name)).and_then(Result::ok);
        let opens = match (&noted, &backend) {
            (Some(noted), _) if noted.is_alias_of(&target.endpoint) => true,
            (Some(noted), Some(it)) => it.endpoint == target.endpoint && it.former_endpoints.contains(noted),
            (Some(_), None) => false,
            (None, Some(it)) => it.endpoint == target.endpoint,
            (None, None) => true,
        };
        secret.label(wire::ROLE) == Some(wire::Role::VirtualCredential.as_str()) && opens
    }

    /// Returns another claim that opens a bucket of this name at another store and keeps this
    /// claim's public access from taking effect.
    ///
    /// Only the claim with the oldest record has public access, as at the gateway (spec §6). If a
    /// record is missing, no claim has.
    fn public_rival(&self, uid: &ClaimUid, target: &Target) -> Option<ClaimRef> {
        let all = self.internal.of_bucket(&target.bucket);
        let records: Vec<_> = all.iter().filter_map(|it| Some((BucketRecord::read(&it.0).ok()?, it))).collect();
        // With equal times the name decides.
        let age = |uid: &str, is_there: &dyn Fn(&BucketRecord) -> bool| {
            let own = records.iter().filter(|(record, _)| record.uid.as_str() == uid && is_there(record));
            own.filter_map(|(_, it)| Some((it.0.metadata.creation_timestamp.as_ref()?.0, it.name()))).min()
        };
        let ours = age(uid.as_str(), &|record| record.endpoint == target.endpoint);
        let rivals = all.iter().filter_map(|binding| {
            let is_binding = wire::Role::of_internal(binding.name()) == Some(wire::Role::AnonymousBinding);
            let other = binding.text("claim_uid").filter(|other| *other != uid.as_str() && is_binding)?;
            let (noted, backend) = (binding.endpoint(), binding.text("backend")?);
            if binding.kept_by().is_some() || noted.as_ref() == Some(&target.endpoint) {
                // The binding opens nothing, or is for the same bucket, which only one of the
                // claims holds.
                return None;
            }
            let theirs = age(other, &|record| match &noted {
                Some(noted) => record.endpoint == *noted,
                None => record.backend == backend,
            });
            let is_held = |record: &BucketRecord| Some(&record.endpoint) == noted.as_ref();
            if theirs.is_none() && records.iter().any(|(record, _)| is_held(record)) {
                return None;
            }
            let is_behind = ours.is_none() || ours > theirs;
            is_behind.then_some((theirs, binding))
        });
        rivals.min_by_key(|(theirs, _)| *theirs).and_then(|(_, binding)| binding.claim())
    }

    pub(crate) async fn claim(&self, at: &ClaimRef) -> Result<Option<Box<Claim>>, Failure> {
        let api: Api<BucketClaim> = Api::namespaced(self.client.clone(), &at.namespace);
        let claim = api.get_opt(&at.name).await.map_err(|error| kubernetes::failure(&error))?;
        Ok(claim.map(|raw| Box::new(Claim::parse(&kept::claim_for_pass(&raw)))))
    }

    /// Lists the internal Secrets with a claim's UID live. A list that is older than the cache is
    /// an error, because it would set the claim back.
    pub(crate) async fn own(&self, uid: &ClaimUid) -> Result<Vec<Stored>, Failure> {
        let list = self.list(&format!("{}={}", wire::CLAIM_UID, wire::label_value(uid.as_str()))).await?;
        if self.internal.is_ahead_of(uid, list.metadata.resource_version.as_deref()) {
            return Err(Failure::Conflict);
        }
        Ok(self.found(list))
    }

    async fn credentials_for(&self, target: &Target) -> Result<Vec<Stored>, Failure> {
        let role = wire::Role::VirtualCredential.as_str();
        let bucket = wire::label_value(target.bucket.as_str());
        let list = self.list(&format!("{}={role},{}={bucket}", wire::ROLE, wire::BUCKET)).await?;
        if self.internal.is_ahead_at(&target.bucket, list.metadata.resource_version.as_deref()) {
            return Err(Failure::Conflict);
        }
        let mut secrets = self.found(list);
        secrets.retain(|secret| self.is_key_to(secret, target));
        Ok(secrets)
    }

    /// Lists internal Secrets. A list that shows Secrets which we have deleted is an error too.
    async fn list(&self, labels: &str) -> Result<ObjectList<Secret>, Failure> {
        let api: Api<Secret> = Api::namespaced(self.client.clone(), &self.setting.operator_namespace);
        let list = api.list(&ListParams::default().labels(labels)).await;
        let list = list.map_err(|error| kubernetes::failure(&error))?;
        if self.internal.has_deleted(&list.items) { Err(Failure::Conflict) } else { Ok(list) }
    }

    /// Converts a live list of internal Secrets.
    fn found(&self, list: ObjectList<Secret>) -> Vec<Stored> {
        let secrets = list.items.into_iter().map(|secret| self.internal.kept(secret));
        secrets.inspect(|secret| self.internal.read_live(secret)).map(Stored).collect()
    }

    /// Reads an internal Secret by name.
    pub(crate) async fn internal_secret(&self, name: &str) -> Result<Option<Stored>, Failure> {
        self.secret(&self.setting.operator_namespace, name, &self.internal).await
    }

    async fn secret(&self, namespace: &str, name: &str, cache: &SecretCache) -> Result<Option<Stored>, Failure> {
        let api: Api<Secret> = Api::namespaced(self.client.clone(), namespace);
        let secret = api.get_opt(name).await.map_err(|error| kubernetes::failure(&error))?;
        if cache.has_deleted(&secret) {
            // The server answered with an outdated state.
            return Err(Failure::Conflict);
        }
        let secret = secret.map(|secret| cache.kept(secret));
        match &secret {
            Some(secret) => cache.read_live(secret),
            None => cache.missed(namespace, name),
        }
        Ok(secret.map(Stored))
    }

    async fn bucket(&self, caller: &Arc<Caller>, target: &Target) -> Result<BucketSeen, Failure> {
        let seen = self.upstream(caller, target).await?.look(&target.bucket).await;
        seen.map_err(|error| upstream_failure(&error))
    }

    async fn owner(&self, caller: &Arc<Caller>, target: &Target) -> Result<OwnerSeen, Failure> {
        let seen = self.upstream(caller, target).await?.owner(&target.bucket).await;
        seen.map_err(|error| upstream_failure(&error))
    }

    async fn contents(&self, caller: &Arc<Caller>, target: &Target) -> Result<bool, Failure> {
        let empty = self.upstream(caller, target).await?.is_empty(&target.bucket).await;
        empty.map_err(|error| upstream_failure(&error))
    }

    async fn versioning(&self, caller: &Arc<Caller>, target: &Target) -> Result<VersioningSeen, Failure> {
        let seen = self.upstream(caller, target).await?.versioning(&target.bucket).await;
        seen.map_err(|error| upstream_failure(&error))
    }

    /// Returns the client of a target on behalf of this caller, if the backend still has the
    /// endpoint of the plan.
    pub(crate) async fn upstream(&self, caller: &Arc<Caller>, target: &Target) -> Result<Upstream, Failure> {
        let name = &target.backend;
        match self.backends.get(name) {
            Some(Ok(backend)) if backend.endpoint == target.endpoint => {
                let upstream = self.upstreams.get(&backend).await;
                let upstream = upstream.map_err(|error| Failure::NoUpstream(error.to_string()))?;
                Ok(upstream.on_behalf_of(caller))
            }
            Some(_) => Err(Failure::NoUpstream(format!("S3Backend {name} no longer points to {}", target.endpoint))),
            None => Err(Failure::NoUpstream(format!("there is no S3Backend {name}"))),
        }
    }
}

/// Classifies an error for the planner.
pub(crate) fn upstream_failure(error: &UpstreamError) -> Failure {
    match &error.class {
        Class::Forbidden(NoMandate::ReadOnly) => Failure::ReadOnly,
        // Another leader may have changed the bucket.
        Class::Forbidden(NoMandate::NotLeading) => Failure::Conflict,
        Class::Unsupported => Failure::Unsupported,
        Class::Denied { .. } => Failure::UpstreamDenied(error.to_string()),
        Class::Failing { asked: false } => Failure::NoUpstream(error.to_string()),
        Class::NoAnswer(_)
        | Class::Unusable(_)
        | Class::Failing { asked: true }
        | Class::Throttled
        | Class::Failed { .. } => Failure::Upstream(error.to_string()),
    }
}
