//! Trims Secrets to the parts that are cached: of one that a tenant may write, only our own (spec
//! §3.5).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

use crate::api::{ConsumerContent, Written, digest, kept, wire};

use super::compressed::compressed;

/// The annotations that are read of an internal Secret: those with the names of our labels, and its
/// expiry.
const INTERNAL_ANNOTATIONS: [&str; wire::LABELS.len() + 1] = {
    let mut names = [wire::EXPIRES_AT; wire::LABELS.len() + 1];
    let mut at = 0;
    while at < wire::LABELS.len() {
        names[at] = wire::LABELS[at];
        at += 1;
    }
    names
};

/// The party that writes the Secrets of a cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Whose {
    /// The operator and its administrators.
    #[default]
    Ours,
    /// Tenants, who may put a megabyte of other data into each, and create as many as they like.
    Tenants,
}

impl Whose {
    /// Trims a Secret to the parts that a pass reads.
    pub(super) fn kept(self, secret: Secret) -> Secret {
        match self {
            Self::Ours => {
                Secret { metadata: kept::metadata(&secret.metadata, &wire::LABELS, &INTERNAL_ANNOTATIONS), ..secret }
            }
            Self::Tenants => consumer(&secret),
        }
    }

    /// Trims a Secret further for the cache.
    ///
    /// Long output of templates is dropped: a pass that compares it reads the Secret live. Long
    /// texts of our own are compressed.
    pub(super) fn cached(self, kept: Arc<Secret>) -> Arc<Secret> {
        match self {
            Self::Ours => compressed(kept),
            Self::Tenants => match without_much(&kept) {
                Some(rest) => Arc::new(rest),
                None => kept,
            },
        }
    }
}

/// Returns the Secret without the output of templates, if that exceeds [`kept::MOST_TEMPLATE`].
fn without_much(kept: &Secret) -> Option<Secret> {
    let written = Written::of(kept);
    let (labels, annotations) = (kept.metadata.labels.as_ref(), kept.metadata.annotations.as_ref());
    let told = annotations.and_then(|all| all.get(wire::TEMPLATE))?;
    let of = |all: Option<&BTreeMap<String, String>>, names: &BTreeSet<String>| -> usize {
        names.iter().map(|name| ENTRY + name.len() + all.and_then(|all| all.get(name)).map_or(0, String::len)).sum()
    };
    let data: usize = written.data.iter().map(|name| ENTRY + name.len() + DIGEST).sum();
    let much = told.len() + of(labels, &written.labels) + of(annotations, &written.annotations) + data;
    if much <= kept::MOST_TEMPLATE {
        return None;
    }
    let mut rest = kept.clone();
    let ours = |all: &mut Option<BTreeMap<String, String>>, written: &BTreeSet<String>| {
        if let Some(all) = all {
            *all = std::mem::take(all).into_iter().filter(|(name, _)| !written.contains(name)).collect();
        }
    };
    ours(&mut rest.metadata.labels, &written.labels);
    ours(&mut rest.metadata.annotations, &written.annotations);
    let annotations = rest.metadata.annotations.get_or_insert_default();
    annotations.extend([wire::TEMPLATE, kept::TEMPLATE_LEFT_OUT].map(|name| (name.to_owned(), String::new())));
    let data = rest.data.take().into_iter().flatten();
    rest.data = Some(data.filter(|(name, _)| !written.data.contains(name)).collect());
    Some(rest)
}

/// Overhead in bytes of a map entry.
const ENTRY: usize = 2 * size_of::<String>();

/// Size of a digest in bytes.
const DIGEST: usize = 32;

fn consumer(secret: &Secret) -> Secret {
    let written = Written::of(secret);
    let data = |data: &BTreeMap<String, ByteString>| {
        let own = |key: &&str| Some(((*key).to_owned(), beginning(data.get(*key)?, longest(key))));
        let of_template = |key: &String| Some((key.clone(), ByteString(digest(&data.get(key)?.0))));
        let own = ConsumerContent::KEYS.iter().filter_map(own);
        own.chain(written.data.iter().filter_map(of_template)).collect()
    };
    let kind = |kind: &String| if kind.len() > kept::LONGEST { "too long".to_owned() } else { kind.clone() };
    let mut metadata = ObjectMeta {
        owner_references: secret.metadata.owner_references.as_deref().map(controllers),
        finalizers: None,
        ..kept::metadata(&secret.metadata, &wire::LABELS, &wire::LABELS)
    };
    add(&mut metadata.labels, secret.metadata.labels.as_ref(), written.labels.iter(), kept::LONGEST);
    let annotations = secret.metadata.annotations.as_ref();
    add(&mut metadata.annotations, annotations, written.annotations.iter(), kept::LONGEST);
    let told = [wire::TEMPLATE.to_owned()];
    add(&mut metadata.annotations, annotations, told.iter(), Written::LONGEST);
    Secret {
        metadata,
        data: secret.data.as_ref().map(data),
        type_: secret.type_.as_ref().map(kind),
        immutable: secret.immutable,
        string_data: None,
    }
}

/// Adds what templates have written. A longer value is not theirs.
fn add<'a>(
    kept: &mut Option<BTreeMap<String, String>>,
    all: Option<&BTreeMap<String, String>>,
    names: impl Iterator<Item = &'a String>,
    longest: usize,
) {
    let entry = |name: &String| all?.get_key_value(name).filter(|(_, value)| value.len() <= longest);
    let found = names.filter_map(entry).map(|(name, value)| (name.clone(), value.clone()));
    if let Some(kept) = kept {
        kept.extend(found);
    }
}

/// Returns a length in bytes that is longer than any value of ours under this key. The beginning of
/// a longer value shows that it isn't ours.
fn longest(key: &str) -> usize {
    match key {
        "BUCKET_NAMES" => ConsumerContent::LONGEST_NAMES + 1,
        _ if key.starts_with("AWS_ENDPOINT_URL") => ConsumerContent::LONGEST_ENDPOINT + 1,
        _ => kept::LONGEST,
    }
}

fn beginning(value: &ByteString, longest: usize) -> ByteString {
    ByteString(value.0[..value.0.len().min(longest)].to_vec())
}

/// Reduces owner references to the UID of the controller, which is all that is used. The server
/// accepts at most one controller, and assigns no UID as long as this.
fn controllers(owners: &[OwnerReference]) -> Vec<OwnerReference> {
    let is_one = |owner: &&OwnerReference| owner.controller == Some(true) && owner.uid.len() <= kept::LONGEST;
    let uid = |owner: &OwnerReference| OwnerReference {
        uid: owner.uid.clone(),
        controller: owner.controller,
        ..OwnerReference::default()
    };
    owners.iter().find(is_one).map(uid).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a Secret as full as a tenant can make it, and more.
    fn full(longest: usize, most: usize) -> Secret {
        let long = "x".repeat(longest);
        let map = || wire::LABELS.iter().map(|key| ((*key).to_owned(), long.clone()));
        let others = || (0..most).map(|number| (format!("broker.stowage.io/{number}"), long.clone()));
        let data = ConsumerContent::KEYS.iter().map(|key| (*key).to_owned()).chain(others().map(|(key, _)| key));
        let owner = |controller: bool| OwnerReference {
            api_version: long.clone(),
            kind: long.clone(),
            name: long.clone(),
            uid: long.clone(),
            controller: Some(controller),
            ..OwnerReference::default()
        };
        Secret {
            metadata: ObjectMeta {
                name: Some("photos-s3".to_owned()),
                generate_name: Some(long.clone()),
                labels: Some(map().chain(others()).collect()),
                annotations: Some(map().chain(others()).collect()),
                finalizers: Some(vec![long.clone(); most]),
                owner_references: Some((0..=most).map(|number| owner(number == most)).collect()),
                ..ObjectMeta::default()
            },
            data: Some(data.map(|key| (key, ByteString(long.clone().into_bytes()))).collect()),
            type_: Some(long.clone()),
            ..Secret::default()
        }
    }

    /// Allocated bytes of a Secret.
    fn size(secret: &Secret) -> usize {
        let text = |text: &String| size_of::<String>() + text.capacity();
        let map = |map: &Option<BTreeMap<String, String>>| -> usize {
            map.iter().flatten().map(|(key, value)| text(key) + text(value)).sum()
        };
        let meta = &secret.metadata;
        let finalizers = meta
            .finalizers
            .as_ref()
            .map_or(0, |all| all.capacity() * size_of::<String>() + all.iter().map(String::capacity).sum::<usize>());
        let owners = meta.owner_references.as_ref().map_or(0, |all| {
            let texts = |owner: &OwnerReference| {
                [&owner.api_version, &owner.kind, &owner.name, &owner.uid].map(String::capacity).iter().sum::<usize>()
            };
            all.capacity() * size_of::<OwnerReference>() + all.iter().map(texts).sum::<usize>()
        });
        let data: usize = secret.data.iter().flatten().map(|(key, value)| text(key) + 24 + value.0.capacity()).sum();
        let texts = [&meta.name, &meta.generate_name, &secret.type_].map(|it| it.as_ref().map_or(0, String::capacity));
        size_of::<Secret>()
            + map(&meta.labels)
            + map(&meta.annotations)
            + finalizers
            + owners
            + data
            + texts.iter().sum::<usize>()
    }

    // covers: 3.5.memory
    #[test]
    fn what_is_kept_of_a_tenants_secret_has_a_bound_by_capacity() {
        let most = |secret: Secret| size(&Whose::Tenants.cached(Arc::new(Whose::Tenants.kept(secret))));
        let bound = 16 << 10;
        for secret in [full(1 << 20, 0), full(kept::LONGEST, 5000), full(1100, 100), full(1, 100_000)] {
            let told = Written {
                data: (0..100_000).map(|number| number.to_string()).collect(),
                labels: secret.metadata.labels.iter().flatten().map(|(key, _)| key.clone()).collect(),
                annotations: secret.metadata.annotations.iter().flatten().map(|(key, _)| key.clone()).collect(),
            };
            let mut told_of = secret.clone();
            told_of.metadata.annotations.get_or_insert_default().insert(wire::TEMPLATE.to_owned(), told.text());
            for taken in [most(secret), most(told_of)] {
                assert!(taken < bound, "{taken} bytes");
            }
        }
        let names: Vec<String> = (0..24).map(|number| format!("{number:02}{}", "k".repeat(40))).collect();
        let map = || Some(names.iter().map(|name| (name.clone(), "v".repeat(kept::LONGEST))).collect());
        let mut secret = full(kept::LONGEST, 0);
        secret.metadata.labels = map();
        secret.metadata.annotations = map();
        secret.data = Some(names.iter().map(|name| (name.clone(), ByteString(vec![b'x'; 30_000]))).collect());
        let all: std::collections::BTreeSet<String> = names.into_iter().collect();
        let told = Written { labels: all.clone(), annotations: all.clone(), data: all };
        secret.metadata.annotations.get_or_insert_default().insert(wire::TEMPLATE.to_owned(), told.text());
        let kept = Whose::Tenants.kept(secret.clone());
        assert_eq!(kept.data.as_ref().map(BTreeMap::len), Some(24), "as much as a template may have");
        assert!(most(secret) < 2 << 10);
        let few = |names: usize| {
            let names: BTreeSet<String> = (0..names).map(|number| format!("example.com/{number}")).collect();
            let told = Written { annotations: names.clone(), ..Written::default() };
            let mut secret = Secret::default();
            secret.metadata.annotations = Some(names.into_iter().map(|name| (name, "v".repeat(100))).collect());
            secret.metadata.annotations.get_or_insert_default().insert(wire::TEMPLATE.to_owned(), told.text());
            Whose::Tenants.cached(Arc::new(Whose::Tenants.kept(secret))).metadata.annotations.clone()
        };
        assert_eq!(few(8).map(|all| all.len()), Some(9), "what is short stays");
        assert_eq!(few(100).map(|all| all.len()), Some(1), "templates have not so many names");
        assert_eq!(few(1000).map(|all| all.len()), Some(0), "nor is it told so of any");
        let left_out = [wire::TEMPLATE, kept::TEMPLATE_LEFT_OUT].map(|name| (name.to_owned(), String::new()));
        assert_eq!(few(32), Some(left_out.into()));
    }

    #[test]
    fn of_internal_secrets_all_data_is_kept_and_of_metadata_what_is_read() {
        let mut secret = full(1 << 20, 10);
        secret.metadata.annotations.get_or_insert_default().insert(wire::EXPIRES_AT.to_owned(), "soon".to_owned());
        let kept = Whose::Ours.kept(secret.clone());
        assert_eq!(kept.data, secret.data);
        let soon = BTreeMap::from([(wire::EXPIRES_AT.to_owned(), "soon".to_owned())]);
        assert_eq!((kept.metadata.annotations, kept.metadata.owner_references), (Some(soon), None));
        assert_eq!(kept.metadata.finalizers.map(|all| all.len()), Some(1), "it is known that there are some");
    }
}
