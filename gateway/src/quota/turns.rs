//! The order of scans: the bucket that has waited longest, in the namespace that has waited
//! longest.
//!
//! A tenant may have many buckets, and a bucket with many uploads takes minutes. So a scan is
//! paused after a while, and namespaces take turns.

use std::collections::BTreeMap;

use stowage_api::RecordName;
use tokio::time::Instant;

use crate::registry::Limited;

/// The time of the last scan of each, complete or partial.
#[derive(Debug, Default)]
pub(super) struct Turns {
    groups: BTreeMap<String, Instant>,
    buckets: BTreeMap<RecordName, Instant>,
}

/// A rank in the queue. The lowest is next. Buckets that were never scanned come first.
pub(super) type Rank = (Option<Instant>, Option<Instant>);

impl Turns {
    /// Returns the rank of a bucket.
    pub(super) fn rank(&self, limited: &Limited) -> Rank {
        (self.groups.get(&group(limited)).copied(), self.buckets.get(&limited.id).copied())
    }

    /// Records that a bucket had its turn.
    pub(super) fn had(&mut self, limited: &Limited, now: Instant) {
        self.groups.insert(group(limited), now);
        self.buckets.insert(limited.id.clone(), now);
    }

    /// Forgets all other buckets.
    pub(super) fn keep<'a>(&mut self, buckets: impl Iterator<Item = &'a Limited>) {
        let (mut groups, mut ids) = (BTreeMap::new(), BTreeMap::new());
        for limited in buckets {
            ids.extend(self.buckets.remove_entry(&limited.id));
            groups.extend(self.groups.remove_entry(&group(limited)));
        }
        (self.groups, self.buckets) = (groups, ids);
    }
}

/// Returns the group in which a bucket takes turns: its namespace, if known.
fn group(limited: &Limited) -> String {
    match &limited.namespace {
        Some(namespace) => format!("namespace {namespace}"),
        None => format!("bucket {}", limited.id),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::collections::BTreeMap as Map;
    use std::sync::Arc;
    use std::time::Duration;

    use stowage_api::{AddressingStyle, BucketName, Endpoint, Limits};

    use super::*;
    use crate::registry::{Backend, SecretName, Unusable};

    /// Returns a limited bucket of the backend `main`.
    pub(in crate::quota) fn limited(bucket: &str, namespace: Option<&str>) -> Limited {
        let endpoint = Endpoint::parse("http://s3.example").expect("a URL");
        let bucket = BucketName::parse(bucket).expect("a name");
        let secret = SecretName { namespace: "system".into(), name: "admin".into() };
        let backend = Backend {
            name: "main".into(),
            revision: 1,
            endpoint: endpoint.clone(),
            former: Vec::new(),
            region: "us-east-1".into(),
            addressing: AddressingStyle::Path,
            cors: None,
            shared: Map::new(),
            access: Err(Unusable::NoSecret(secret)),
        };
        Limited {
            id: RecordName::of(&endpoint, &bucket),
            bucket,
            backend: Arc::new(backend),
            limits: Limits::default(),
            namespace: namespace.map(str::to_owned),
        }
    }

    // covers: 6.quota.scan.turns
    #[test]
    fn a_namespace_with_many_buckets_has_one_turn_of_two() {
        let mut all: Vec<Limited> = (0..20).map(|at| limited(&format!("many-{at}"), Some("team-a"))).collect();
        all.push(limited("one", Some("team-b")));
        all.push(limited("alone", None));
        let mut turns = Turns::default();
        let mut now = Instant::now();
        let mut scanned = Vec::new();
        for _ in 0..60 {
            turns.keep(all.iter());
            let next = all.iter().min_by_key(|limited| turns.rank(limited)).expect("there are some");
            scanned.push(next.bucket.to_string());
            now += Duration::from_secs(1);
            turns.had(next, now);
        }
        let of = |name: &str| scanned.iter().filter(|bucket| *bucket == name).count();
        assert_eq!((of("one"), of("alone")), (20, 20), "{scanned:?}");
        assert!((0..20).all(|at| of(&format!("many-{at}")) == 1), "{scanned:?}");
        turns.keep(all.iter().take(1));
        assert_eq!((turns.groups.len(), turns.buckets.len()), (1, 1));
    }
}
