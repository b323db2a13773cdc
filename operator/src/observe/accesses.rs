//! Live and cached reads for accesses, and for the consent to them (spec §8).

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::api::ListParams;
use kube::core::{DeserializeGuard, PartialObjectMeta};
use kube::runtime::reflector::ObjectRef;
use kube::{Api, ResourceExt};

use crate::api::{
    Access, AccessRecord, AccessRef, AccessUid, Backend, BucketAccess, BucketName, BucketRecord, Claim, ClaimRef,
    ClaimUid, Endpoint, Entry, EntryOf, NamespaceUid, S3Backend, kept, wire,
};
use crate::kubernetes;
use crate::plan::access::{
    AccessAnswer, AccessCached, AccessLook, AccessStep, AccessView, BucketWord, ClaimWord, EntrySeen, Lead, Place,
};
use crate::plan::{Asker, ConsentQuestion, ConsentSeen, Failure, Stored, Unasked, opened_record};

use super::Observer;

impl Observer {
    /// Reads the state that is needed before a bucket is opened to accesses, in the order of the
    /// contract: no later answer is older than the version of the record. Namespaces that aren't
    /// served are not read.
    pub(super) async fn consent(&self, claim: &Claim, asked: &ConsentQuestion) -> Result<ConsentSeen, Failure> {
        let record = self.internal_secret(asked.record.as_str()).await?;
        let own = self.own(&claim.uid).await?;
        let (mut askers, mut settled) = (Vec::new(), None);
        for access in &asked.accesses {
            if settled != Some(&access.namespace) && self.asks(access, &claim.at).await? {
                settled = Some(&access.namespace);
                askers.extend(self.namespace_live(&access.namespace).await?);
            }
        }
        let backend = self.backend_live(&asked.backend).await?;
        let claim = self.claim(&claim.at).await?;
        let read = record.as_ref().and_then(|stored| BucketRecord::read(&stored.0).ok());
        let unasked = read.map(|record| self.unasked(&record)).unwrap_or_default();
        Ok(ConsentSeen { record, own, askers, unasked, backend, claim })
    }

    /// Returns true if a live read shows an access that names the claim and is not being deleted.
    async fn asks(&self, access: &AccessRef, claim: &ClaimRef) -> Result<bool, Failure> {
        let api: Api<DeserializeGuard<BucketAccess>> = Api::namespaced(self.client.clone(), &access.namespace);
        let found = api.get_opt(&access.name).await.map_err(|error| kubernetes::failure(&error))?;
        let live = found.and_then(|it| it.0.ok()).filter(|it| it.metadata.deletion_timestamp.is_none());
        Ok(live.is_some_and(|live| Access::parse(&live).claims().any(|named| named == claim)))
    }

    /// Returns the recorded accesses in namespaces that a record of the claim is open to, and from
    /// which no access is known to name the claim.
    ///
    /// Accesses that the watch shows are left out: they name something else.
    pub(super) fn recorded(&self, asking: &BTreeSet<AccessRef>, own: &[Stored]) -> BTreeSet<AccessRef> {
        let records = own.iter().filter_map(|secret| BucketRecord::read(&secret.0).ok());
        let mut open: BTreeSet<NamespaceUid> = records.flat_map(|record| record.accesses.into_keys()).collect();
        for access in asking {
            if let Some(asker) = self.namespaces.get(&access.namespace) {
                open.remove(&asker.uid);
            }
        }
        if open.is_empty() {
            return BTreeSet::new();
        }
        let reach = &self.setting.reach;
        let of_open = open.iter().flat_map(|namespace| self.access_records_in(namespace));
        let of_open = of_open.filter(|record| reach.has(&record.access.namespace));
        of_open.filter(|record| !self.accesses.has(&record.access, &record.uid)).map(|record| record.access).collect()
    }

    /// Returns the records of accesses in the namespace with this UID.
    fn access_records_in(&self, namespace: &NamespaceUid) -> impl Iterator<Item = AccessRecord> {
        let records = self.internal.access_records_in(namespace).into_iter();
        records.filter_map(|secret| AccessRecord::read(&secret.0).ok())
    }

    /// Returns the namespaces that a record is open to and that this operator does not serve.
    ///
    /// A namespace is left out if an access's record shows that its name is served but now has
    /// another UID: it is deleted.
    pub(super) fn unasked(&self, record: &BucketRecord) -> Unasked {
        let reach = &self.setting.reach;
        if reach.is_whole() {
            return Unasked::new();
        }
        let unknown = record.accesses.keys().filter(|uid| self.namespaces.of_uid(uid).is_none());
        let named = unknown.map(|uid| (uid.clone(), self.name_of(uid)));
        named.filter(|(_, name)| name.as_ref().is_none_or(|name| !reach.has(name))).collect()
    }

    /// Returns the name of a namespace, as recorded for an access in it.
    fn name_of(&self, namespace: &NamespaceUid) -> Option<String> {
        self.access_records_in(namespace).next().map(|record| record.access.namespace)
    }

    /// Reads a namespace. Returns `None` if it doesn't exist or is being deleted.
    pub(crate) async fn namespace_live(&self, name: &str) -> Result<Option<Asker>, Failure> {
        let api: Api<Namespace> = Api::all(self.client.clone());
        let found: Option<PartialObjectMeta<Namespace>> =
            api.get_metadata_opt(name).await.map_err(|error| kubernetes::failure(&error))?;
        let live = found.filter(|it| it.metadata.deletion_timestamp.is_none());
        Ok(live.map(|it| Asker {
            namespace: name.to_owned(),
            uid: NamespaceUid::new(it.uid().unwrap_or_default()),
            labels: it.labels().clone(),
        }))
    }

    async fn backend_live(&self, name: &str) -> Result<Option<Arc<Backend>>, Failure> {
        let api: Api<DeserializeGuard<S3Backend>> = Api::all(self.client.clone());
        let found = api.get_opt(name).await.map_err(|error| kubernetes::failure(&error))?;
        Ok(found.and_then(|it| Backend::parse(it.0.as_ref().ok()?).ok()).map(Arc::new))
    }

    /// Builds the view of a pass over an access, from the caches.
    pub(crate) fn begin_access(&self, raw: &BucketAccess) -> AccessView {
        let access = Access::parse(raw);
        let internal = self.internal.of_access(&access.uid);
        let mut consumers = self.consumers.of_access(&access.uid);
        consumers.retain(|secret| secret.0.metadata.namespace.as_deref() == Some(&access.at.namespace));
        let bound = access.status.bound_secret_name.clone();
        for name in [Some(access.consumer_secret.clone()), bound].into_iter().flatten() {
            consumers.extend(self.consumers.get(&access.at.namespace, &name));
        }
        let namespace = self.namespaces.get(&access.at.namespace);
        let seen = access.entries.iter().map(|entry| self.entry(&access.at, namespace.as_ref(), entry));
        let entries: Vec<EntrySeen> = seen.collect();
        let lead = Lead::of(access.entries.iter().map(|entry| self.serves(entry)).zip(&entries));
        AccessView::new(self.setting.clone(), access, AccessCached { internal, consumers, namespace, entries, lead })
    }

    /// Returns true if this operator serves the claim or the S3Backend of an entry; `None` if no
    /// operator is noted on it. The note on a claim counts as in a pass over that claim.
    fn serves(&self, entry: &Entry) -> Option<bool> {
        let named = match entry.of.as_ref().ok()? {
            EntryOf::Bucket(backend, _) => return self.serves_backend(backend),
            EntryOf::Claim(named) => named,
        };
        let claim = self.claim_cached(named)?;
        match &claim.served_by {
            None => self.serves_backend(&claim.desired.as_ref().ok()?.backend),
            Some(by) if !self.setting.is_anothers(Some(by)) => Some(true),
            Some(_) => {
                let own = self.internal.of_claim(&claim.uid);
                if own.is_empty() {
                    // The claim's owner may have written its note. Only administrators can write
                    // that of the S3Backend.
                    return self.serves_backend(&claim.desired.as_ref().ok()?.backend);
                }
                let backends = own.iter().map(|secret| secret.text("backend"));
                Some(backends.map(|name| self.serves_backend(name?)).any(|serves| serves != Some(false)))
            }
        }
    }

    fn serves_backend(&self, name: &str) -> Option<bool> {
        let backend = self.backends.get(name)?.ok()?;
        Some(!self.setting.is_anothers(Some(backend.served_by.as_ref()?)))
    }

    /// Answers a look of a pass over an access.
    pub(crate) async fn answer_access(&self, view: &AccessView, look: &AccessLook) -> AccessAnswer {
        let answer = self.try_answer_access(view, look).await;
        answer.unwrap_or_else(|failure| AccessAnswer::Failed(AccessStep::Look(look.clone()), failure))
    }

    async fn try_answer_access(&self, view: &AccessView, look: &AccessLook) -> Result<AccessAnswer, Failure> {
        let access = view.access();
        Ok(match look {
            AccessLook::Access => AccessAnswer::Access(self.access(&access.at).await?),
            AccessLook::Namespace => AccessAnswer::Namespace(self.namespace_live(&access.at.namespace).await?),
            AccessLook::Own => AccessAnswer::Own(self.own_of_access(&access.uid).await?),
            AccessLook::Internal(name) => AccessAnswer::Internal(name.clone(), self.internal_secret(name).await?),
            AccessLook::Consumer(name) => {
                let found = self.secret(&access.at.namespace, name, &self.consumers).await?;
                AccessAnswer::Consumer(name.clone(), found)
            }
            AccessLook::Claim(claim) => {
                let word = self.claim_word_live(&access.at, view.namespace(), claim).await?;
                AccessAnswer::Claim(claim.clone(), word)
            }
        })
    }

    /// Returns the cached state of an entry.
    fn entry(&self, at: &AccessRef, namespace: Option<&Asker>, entry: &Entry) -> EntrySeen {
        match &entry.of {
            Err(error) => EntrySeen::Invalid(error.to_string()),
            Ok(EntryOf::Bucket(backend, bucket)) => EntrySeen::Bucket(self.shared_bucket(at, backend, bucket)),
            Ok(EntryOf::Claim(named)) => {
                if !self.setting.reach.has(&named.namespace) {
                    let uid = self.uid_of_unwatched(named);
                    let own = uid.as_ref().map(|uid| self.internal.of_claim(uid)).unwrap_or_default();
                    return EntrySeen::Claim(self.unwatched_word(namespace, uid, &own));
                }
                let claim = self.claim_cached(named);
                let own = claim.as_ref().map(|claim| self.internal.of_claim(&claim.uid)).unwrap_or_default();
                EntrySeen::Claim(self.claim_word(at, namespace, claim.as_ref(), &own))
            }
        }
    }

    /// Reads the claim of an entry live, by name.
    async fn claim_word_live(
        &self,
        at: &AccessRef,
        namespace: Option<&Asker>,
        named: &ClaimRef,
    ) -> Result<ClaimWord, Failure> {
        if !self.setting.reach.has(&named.namespace) {
            let uid = self.uid_of_unwatched(named);
            let own = self.own_by_record(uid.as_ref()).await?;
            return Ok(self.unwatched_word(namespace, uid, &own));
        }
        let claim = self.claim(named).await?;
        let own = self.own_by_record(claim.as_ref().map(|claim| &claim.uid)).await?;
        Ok(self.claim_word(at, namespace, claim.as_deref(), &own))
    }

    /// Returns the cached internal Secrets of a claim, with the record of its bucket read live,
    /// because the record decides what a key opens.
    ///
    /// A live list of the Secrets of each claim would be too expensive: each list costs as much as
    /// the Secrets of all claims.
    async fn own_by_record(&self, uid: Option<&ClaimUid>) -> Result<Vec<Stored>, Failure> {
        let Some(uid) = uid else { return Ok(Vec::new()) };
        let mut own = self.internal.of_claim(uid);
        let Some(record) = opened_record(uid, &own).map(|record| record.name()) else { return Ok(own) };
        let live = self.internal_secret(record.as_str()).await?;
        let cached = own.iter().position(|secret| secret.name() == record.as_str()).map(|at| own.remove(at));
        if live.iter().zip(&cached).any(|(live, cached)| live.reference().id.is_older_than(&cached.reference().id)) {
            // The server may have answered with an outdated state.
            return Err(Failure::Conflict);
        }
        own.extend(live);
        Ok(own)
    }

    fn claim_word(&self, at: &AccessRef, asker: Option<&Asker>, claim: Option<&Claim>, own: &[Stored]) -> ClaimWord {
        ClaimWord::of(at, asker, claim, own, |backend, endpoint| self.is_there(backend, endpoint))
    }

    fn unwatched_word(&self, asker: Option<&Asker>, uid: Option<ClaimUid>, own: &[Stored]) -> ClaimWord {
        ClaimWord::unwatched(asker, uid, own, |backend, endpoint| self.is_there(backend, endpoint))
    }

    /// Returns the UID of a claim in a namespace that isn't served, from its records. Returns
    /// `None` if records of two claims have its name, because it isn't known which of them exists.
    fn uid_of_unwatched(&self, named: &ClaimRef) -> Option<ClaimUid> {
        let records = self.internal.records_of(named).into_iter();
        let records = records.filter_map(|secret| BucketRecord::read(&secret.0).ok());
        let uids: BTreeSet<ClaimUid> = records.filter(|it| it.claim == *named).map(|it| it.uid).collect();
        let mut uids = uids.into_iter();
        uids.next().filter(|_| uids.next().is_none())
    }

    /// Returns true if the endpoint is a current or former one of the backend. Then the gateway
    /// finds the bucket.
    fn is_there(&self, backend: &str, endpoint: &Endpoint) -> bool {
        let backend = self.backends.get(backend).and_then(Result::ok);
        backend.is_some_and(|it| it.endpoint == *endpoint || it.former_endpoints.contains(endpoint))
    }

    fn claim_cached(&self, at: &ClaimRef) -> Option<Claim> {
        let found = self.claims.as_ref()?.get(&ObjectRef::new(&at.name).within(&at.namespace))?;
        found.0.as_ref().ok().map(Claim::parse)
    }

    /// Returns an administrator's consent for a bucket without a claim.
    fn shared_bucket(&self, at: &AccessRef, name: &str, bucket: &BucketName) -> BucketWord {
        let Some(Ok(backend)) = self.backends.get(name) else { return BucketWord::NotShared };
        let Some((namespaces, consent)) = backend.shared_buckets.get(bucket) else { return BucketWord::NotShared };
        if !namespaces.contains(&at.namespace) {
            return BucketWord::NotShared;
        }
        let is_here = |secret: &Stored| {
            let all = [&backend.endpoint].into_iter().chain(&backend.former_endpoints);
            secret.endpoint().is_none_or(|endpoint| all.clone().any(|own| own.is_alias_of(&endpoint)))
        };
        let holds = |secret: &&Stored| match wire::Role::of_internal(secret.name()) {
            Some(wire::Role::VirtualCredential) => true,
            // A record that can't be read may be of a claim that has the bucket.
            Some(wire::Role::BucketRecord) => BucketRecord::read(&secret.0).map_or(true, |record| record.has_begun()),
            Some(_) | None => false,
        };
        if self.internal.of_bucket(bucket).iter().filter(holds).any(is_here) {
            return BucketWord::Held;
        }
        let endpoint = backend.endpoint.clone();
        let place = Place { bucket: bucket.clone(), backend: name.to_owned(), endpoint, is_there: true };
        BucketWord::Shared { place, consent: consent.clone() }
    }

    /// Reads an access live.
    async fn access(&self, at: &AccessRef) -> Result<Option<Box<Access>>, Failure> {
        let api: Api<BucketAccess> = Api::namespaced(self.client.clone(), &at.namespace);
        let found = api.get_opt(&at.name).await.map_err(|error| kubernetes::failure(&error))?;
        Ok(found.map(|raw| Box::new(Access::parse(&kept::access_for_pass(&raw)))))
    }

    /// Lists the internal Secrets of an access live.
    pub(crate) async fn own_of_access(&self, uid: &AccessUid) -> Result<Vec<Stored>, Failure> {
        let api: Api<Secret> = Api::namespaced(self.client.clone(), &self.setting.operator_namespace);
        let labels = format!("{}={}", wire::ACCESS_UID, wire::label_value(uid.as_str()));
        let list = api.list(&ListParams::default().labels(&labels)).await;
        let list = list.map_err(|error| kubernetes::failure(&error))?;
        if self.internal.has_deleted(&list.items)
            || self.internal.is_ahead_of_access(uid, list.metadata.resource_version.as_deref())
        {
            return Err(Failure::Conflict);
        }
        let secrets = list.items.into_iter().map(|secret| self.internal.kept(secret));
        Ok(secrets.inspect(|secret| self.internal.read_live(secret)).map(Stored).collect())
    }
}
