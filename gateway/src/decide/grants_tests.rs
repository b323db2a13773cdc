use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::runtime::watcher::Event;
use rstest::rstest;
use serde_json::{Value, json};
use stowage_api::{
    AccessCredentialFacts, AccessMode, AccessRecord, AccessRef, AccessScope, AccessUid, BucketName, BucketRecord,
    ClaimUid, Consent, Endpoint, NamespaceUid, Prefix, SecretKey, Unlabelled,
};

use super::super::{Caller, Verdict, decide};
use super::*;
use crate::deletion::Deletion;
use crate::refusal::Code;
use crate::registry::{SeenBackend, Setting};

const NAMESPACE: &str = "stowage-system";
const HERE: &str = "http://s3.example:9000";

fn prefix(text: &str) -> Prefix {
    Prefix::parse(text).expect("a prefix")
}

fn bucket(name: &str) -> BucketName {
    BucketName::parse(name).expect("a name")
}

fn consent(mode: AccessMode, prefixes: &[&str]) -> Consent {
    Consent { max_mode: mode, prefixes: prefixes.iter().map(|text| prefix(text)).collect() }
}

/// The cluster state of a test case.
struct Known {
    scopes: Vec<AccessScope>,
    /// The consent in the record of `photos`, by namespace UID.
    consent: Vec<(&'static str, Consent)>,
    /// The claim that holds `photos`.
    holder: &'static str,
    ending: bool,
    /// The namespace UID in the record of the access. `None`: there is no record.
    namespace: Option<&'static str>,
    shared: Value,
    /// The claim has created the buckets of the records, or taken them over.
    has_begun: bool,
}

fn scope(name: &str, claim: Option<&str>, mode: AccessMode, prefixed: Option<&str>) -> AccessScope {
    AccessScope {
        bucket: bucket(name),
        backend: "main".to_owned(),
        endpoint: Endpoint::parse(HERE).expect("a URL"),
        claim: claim.map(ClaimUid::new),
        mode,
        prefix: prefixed.map(prefix),
    }
}

impl Default for Known {
    fn default() -> Self {
        Self {
            scopes: vec![scope("photos", Some("c-1"), AccessMode::ReadWrite, None)],
            consent: vec![("n-1", Consent::full())],
            holder: "c-1",
            ending: false,
            namespace: Some("n-1"),
            shared: json!(null),
            has_begun: true,
        }
    }
}

impl Known {
    fn tables(&self) -> Tables {
        let setting = Setting { namespaces: BTreeSet::from([NAMESPACE.to_owned()]), unlabelled: Unlabelled::Refused };
        let mut tables = Tables::new(setting);
        for secret in self.secrets() {
            tables.apply(Event::Apply(secret));
        }
        let mut backend = json!({
            "metadata": {"name": "main"},
            "spec": {"endpoint": HERE, "adminCredentialsSecretRef": {"name": "admin", "namespace": NAMESPACE}},
        });
        if !self.shared.is_null() {
            backend["spec"]["sharedBuckets"] = self.shared.clone();
        }
        let backend: SeenBackend = serde_json::from_value(backend).expect("a backend");
        [Event::Init, Event::InitApply(backend), Event::InitDone].into_iter().for_each(|it| tables.apply_backend(it));
        tables
    }

    fn secrets(&self) -> Vec<Secret> {
        let access = AccessRef { namespace: "team-b".into(), name: "reader".into() };
        let uid = AccessUid::new("a-1");
        let facts = AccessCredentialFacts {
            access: access.clone(),
            uid: uid.clone(),
            generation: 1,
            scopes: self.scopes.clone(),
        };
        let record = BucketRecord {
            uid: ClaimUid::new(self.holder),
            endpoint: Endpoint::parse(HERE).expect("a URL"),
            bucket: bucket("photos"),
            settled: self.has_begun,
            accesses: self.consent.iter().map(|(uid, it)| (NamespaceUid::new(*uid), it.clone())).collect(),
            ending: self.ending,
            ..BucketRecord::fixture()
        };
        let films = BucketRecord {
            bucket: bucket("films"),
            accesses: BTreeMap::from([(NamespaceUid::new("n-1"), Consent::full())]),
            ..record.clone()
        };
        let key = SecretKey::new("s3cr3t-of-a-test-0123456789-abcdefghijkl".into());
        let of_access = self.namespace.map(|namespace| AccessRecord {
            access,
            uid,
            namespace_uid: NamespaceUid::new(namespace),
            ..AccessRecord::fixture()
        });
        let contents = [Some(facts.content(NAMESPACE, Some(&key))), of_access.map(|it| it.content(NAMESPACE))];
        let records = [record, films].map(|it| Some(it.content(NAMESPACE)));
        contents.into_iter().chain(records).flatten().map(|content| content.to_secret()).collect()
    }

    fn decide(&self, wanted: &Wanted<'_>) -> Result<Verdict, Code> {
        let tables = self.tables();
        let facts = AccessCredentialFacts {
            access: AccessRef { namespace: String::new(), name: String::new() },
            uid: AccessUid::new("a-1"),
            generation: 1,
            scopes: Vec::new(),
        };
        let key = tables.key(facts.access_key_id().as_str()).expect("it is known");
        decide(Caller::Key(key), wanted, &tables, Timestamp::UNIX_EPOCH).map_err(|refusal| refusal.code)
    }

    fn allows(&self, wanted: &Wanted<'_>) -> bool {
        match self.decide(wanted) {
            Ok(Verdict::ReadDeletion) => false,
            Ok(_) => true,
            Err(code) => {
                assert!(matches!(code, Code::AccessDenied | Code::ServiceUnavailable), "{code:?}");
                false
            }
        }
    }
}

/// Every allowed operation on a bucket, and whether it names an object.
const ALL: [(Operation, bool); 31] = [
    (Operation::AbortMultipartUpload, true),
    (Operation::CompleteMultipartUpload, true),
    (Operation::CopyObject, true),
    (Operation::CreateBucket, false),
    (Operation::CreateMultipartUpload, true),
    (Operation::DeleteObject, true),
    (Operation::DeleteObjectTagging, true),
    (Operation::DeleteObjects, false),
    (Operation::GetBucketAcl, false),
    (Operation::GetBucketEncryption, false),
    (Operation::GetBucketLocation, false),
    (Operation::GetBucketTagging, false),
    (Operation::GetBucketVersioning, false),
    (Operation::GetObject, true),
    (Operation::GetObjectAcl, true),
    (Operation::GetObjectAttributes, true),
    (Operation::GetObjectLockConfiguration, false),
    (Operation::GetObjectTagging, true),
    (Operation::GetPublicAccessBlock, false),
    (Operation::HeadBucket, false),
    (Operation::HeadObject, true),
    (Operation::ListMultipartUploads, false),
    (Operation::ListObjectVersions, false),
    (Operation::ListObjects, false),
    (Operation::ListObjectsV2, false),
    (Operation::ListParts, true),
    (Operation::PostObject, true),
    (Operation::PutObject, true),
    (Operation::PutObjectTagging, true),
    (Operation::UploadPart, true),
    (Operation::UploadPartCopy, true),
];

fn wanted<'a>(operation: Operation, bucket: &'a BucketName, key: Option<&'a str>) -> Wanted<'a> {
    Wanted { key: key.map(str::as_bytes), ..Wanted::of_bucket(operation, bucket) }
}

fn allowed(known: &Known, prefixed: Option<&str>, key: &str) -> Vec<&'static str> {
    let photos = bucket("photos");
    let is_allowed = |(operation, names): &&(Operation, bool)| {
        let asked = Wanted {
            prefix: prefixed.map(str::as_bytes).filter(|_| operation.lists() && !names),
            ..wanted(*operation, &photos, Some(key).filter(|_| *names))
        };
        known.allows(&asked)
    };
    ALL.iter().filter(is_allowed).map(|(operation, _)| operation.name()).collect()
}

fn of_mode(mode: AccessMode) -> Known {
    Known { scopes: vec![scope("photos", Some("c-1"), mode, None)], ..Known::default() }
}

const READS: [&str; 16] = [
    "CreateBucket",
    "GetBucketAcl",
    "GetBucketEncryption",
    "GetBucketLocation",
    "GetBucketTagging",
    "GetBucketVersioning",
    "GetObject",
    "GetObjectAcl",
    "GetObjectAttributes",
    "GetObjectLockConfiguration",
    "GetObjectTagging",
    "GetPublicAccessBlock",
    "HeadBucket",
    "HeadObject",
    "ListObjects",
    "ListObjectsV2",
];
const STORES: [&str; 9] = [
    "AbortMultipartUpload",
    "CompleteMultipartUpload",
    "CopyObject",
    "CreateBucket",
    "CreateMultipartUpload",
    "PostObject",
    "PutObject",
    "UploadPart",
    "UploadPartCopy",
];

// covers: 8.mode.read, 8.mode.write, 8.mode.all
#[test]
fn every_operation_is_closed_that_its_mode_does_not_name() {
    assert_eq!(allowed(&of_mode(AccessMode::ReadOnly), None, "a"), READS);
    assert_eq!(allowed(&of_mode(AccessMode::WriteOnly), None, "a"), STORES);
    // DeleteObjects is missing: its keys aren't known yet.
    assert_eq!(allowed(&of_mode(AccessMode::ReadWrite), None, "a").len(), ALL.len() - 1);
}

// covers: 8.gateway.weaker
#[test]
fn the_weaker_of_scope_and_consent_counts() {
    for (asked, agreed) in [
        (AccessMode::ReadWrite, AccessMode::ReadOnly),
        (AccessMode::ReadOnly, AccessMode::ReadWrite),
        (AccessMode::ReadOnly, AccessMode::ReadOnly),
    ] {
        let known = Known { consent: vec![("n-1", consent(agreed, &[]))], ..of_mode(asked) };
        assert_eq!(allowed(&known, None, "a"), READS, "{asked:?} {agreed:?}");
    }
    let apart = Known { consent: vec![("n-1", consent(AccessMode::WriteOnly, &[]))], ..of_mode(AccessMode::ReadOnly) };
    assert_eq!(allowed(&apart, None, "a"), [] as [&str; 0]);
}

// covers: 8.mode.read
#[test]
fn a_reader_is_shown_no_version_that_is_past() {
    let photos = bucket("photos");
    for mode in AccessMode::ALL {
        for operation in [Operation::GetObject, Operation::HeadObject, Operation::GetObjectAttributes] {
            let past = Wanted { names_version: true, ..wanted(operation, &photos, Some("a")) };
            assert_eq!(of_mode(mode).allows(&past), mode == AccessMode::ReadWrite, "{mode:?} {operation:?}");
        }
    }
}

// covers: 8.prefix.covered, 8.prefix.lists
#[rstest]
#[case(Some("in/"), &[])]
#[case(Some("in/"), &["out/", "in/"])]
fn below_a_prefix_is_what_begins_with_it_byte_by_byte(#[case] asked: Option<&str>, #[case] agreed: &[&str]) {
    let known = Known {
        scopes: vec![scope("photos", Some("c-1"), AccessMode::ReadWrite, asked)],
        consent: vec![("n-1", consent(AccessMode::ReadWrite, agreed))],
        ..Known::default()
    };
    let all = allowed(&known, Some("in/a"), "in/a");
    assert_eq!(all.len(), ALL.len() - 1, "{all:?}");
    assert!(!all.contains(&"DeleteObjects"), "the keys of its body aren't known");
    for (prefixed, key) in [(None, "other"), (Some(""), "in"), (Some("in"), "In/a"), (Some("i"), "x/in/a")] {
        let of_no_object: Vec<&str> = ALL
            .iter()
            .filter(|(operation, names)| !names && !operation.lists() && *operation != Operation::DeleteObjects)
            .map(|(operation, _)| operation.name())
            .collect();
        assert_eq!(allowed(&known, prefixed, key), of_no_object, "{prefixed:?} {key}");
    }
}

/// Returns a key of an access to `photos`, limited to this prefix.
fn below(prefixed: Option<&str>, mode: AccessMode) -> Known {
    Known { scopes: vec![scope("photos", Some("c-1"), mode, prefixed)], ..Known::default() }
}

fn deletion(keys: &[&str]) -> Deletion {
    let object = |key: &&str| format!("<Object><Key>{key}</Key></Object>");
    let objects: String = keys.iter().map(object).collect();
    Deletion::read(format!("<Delete>{objects}</Delete>").as_bytes()).expect("a document")
}

// covers: 8.prefix.deleteObjects
#[rstest]
#[case::inside(&["in/a", "in/b/c", "in/"], true)]
#[case::one_outside(&["in/a", "out/b", "in/c"], false)]
#[case::the_last_outside(&["in/a", "in"], false)]
#[case::another_case(&["IN/a"], false)]
#[case::escaped_for_a_path(&["in%2Fa"], false)]
#[case::a_blank_before(&[" in/a"], false)]
fn many_objects_are_deleted_where_each_key_is_below(#[case] keys: &[&str], #[case] expected: bool) {
    let photos = bucket("photos");
    let read = deletion(keys);
    let unread = wanted(Operation::DeleteObjects, &photos, None);
    let asked = Wanted { deletion: Some(&read), ..unread };
    let known = below(Some("in/"), AccessMode::ReadWrite);
    assert_eq!(known.decide(&unread), Ok(Verdict::ReadDeletion), "its keys are asked for");
    assert_eq!(known.allows(&asked), expected);
    for mode in [AccessMode::ReadOnly, AccessMode::WriteOnly] {
        let known = below(Some("in/"), mode);
        assert_eq!(known.decide(&unread), Err(Code::AccessDenied), "before a body is read: {mode:?}");
        assert_eq!(known.decide(&asked), Err(Code::AccessDenied), "{mode:?}");
    }
}

// covers: 6.deleteObjects
#[test]
fn keys_are_asked_for_without_a_prefix_too() {
    let photos = bucket("photos");
    let (unread, read) = (wanted(Operation::DeleteObjects, &photos, None), deletion(&["a", "in/b"]));
    let known = below(None, AccessMode::ReadWrite);
    assert_eq!(known.decide(&unread), Ok(Verdict::ReadDeletion));
    assert!(known.allows(&Wanted { deletion: Some(&read), ..unread }));
}

// covers: 8.gateway.weaker
#[rstest]
#[case(None, &["in/"])]
#[case(Some("in/"), &["in/deep/"])]
#[case(Some("in/"), &["out/"])]
fn a_scope_that_consent_does_not_cover_is_closed(#[case] asked: Option<&str>, #[case] agreed: &[&str]) {
    let known = Known {
        scopes: vec![scope("photos", Some("c-1"), AccessMode::ReadWrite, asked)],
        consent: vec![("n-1", consent(AccessMode::ReadWrite, agreed))],
        ..Known::default()
    };
    for place in ["in/deep/a", "in/a", "out/a"] {
        assert_eq!(allowed(&known, Some(place), place), [] as [&str; 0], "{place}");
    }
}

// covers: 8.copy
#[rstest]
#[case(AccessMode::ReadOnly, None, "a", None, true)]
#[case(AccessMode::ReadWrite, None, "a", None, true)]
#[case(AccessMode::WriteOnly, None, "a", None, false)]
#[case(AccessMode::ReadOnly, None, "a", Some("v"), false)]
#[case(AccessMode::ReadWrite, None, "a", Some("v"), true)]
#[case(AccessMode::ReadOnly, Some("in/"), "in/a", None, true)]
#[case(AccessMode::ReadOnly, Some("in/"), "a", None, false)]
fn the_source_of_a_copy_needs_a_scope_of_its_own(
    #[case] mode: AccessMode,
    #[case] prefixed: Option<&str>,
    #[case] key: &str,
    #[case] version: Option<&str>,
    #[case] expected: bool,
) {
    let scopes =
        vec![scope("photos", Some("c-1"), AccessMode::WriteOnly, None), scope("films", Some("c-1"), mode, prefixed)];
    let known = Known { scopes, ..Known::default() };
    let header = version.map_or_else(|| format!("films/{key}"), |version| format!("films/{key}?versionId={version}"));
    let source = CopySource::parse(header.as_bytes()).expect("a source");
    let photos = bucket("photos");
    for operation in [Operation::CopyObject, Operation::UploadPartCopy] {
        let copy = Wanted { source: Some(&source), ..wanted(operation, &photos, Some("b")) };
        assert_eq!(known.allows(&copy), expected, "{operation:?}");
    }
    let elsewhere = CopySource::parse(b"books/a").expect("a source");
    let copy = Wanted { source: Some(&elsewhere), ..wanted(Operation::CopyObject, &photos, Some("b")) };
    assert!(!known.allows(&copy), "a bucket that is none of the key's");
}

// covers: 8.gateway.record, 8.gateway.holder, 8.ending, 8.gateway.namespace
#[rstest]
#[case::no_consent(Known { consent: Vec::new(), ..Known::default() })]
#[case::of_another_namespace(Known { consent: vec![("n-2", Consent::full())], ..Known::default() })]
#[case::namespace_was_made_again(Known { namespace: Some("n-2"), ..Known::default() })]
#[case::no_record_of_the_access(Known { namespace: None, ..Known::default() })]
#[case::another_claim_holds_it(Known { holder: "c-2", ..Known::default() })]
#[case::the_claim_ends(Known { ending: true, ..Known::default() })]
#[case::as_if_no_claim_had_it(Known { scopes: vec![scope("photos", None, AccessMode::ReadWrite, None)], ..Known::default() })]
#[case::another_bucket(Known { scopes: vec![scope("books", Some("c-1"), AccessMode::ReadWrite, None)], ..Known::default() })]
#[case::two_of_one_name(Known { scopes: vec![scope("photos", Some("c-1"), AccessMode::ReadWrite, None); 2], ..Known::default() })]
fn nothing_is_open_that_not_all_agree_on(#[case] known: Known) {
    assert_eq!(allowed(&known, None, "a"), [] as [&str; 0]);
    let photos = bucket("photos");
    let list = Wanted { bucket: None, ..Wanted::of_bucket(Operation::ListBuckets, &photos) };
    assert_eq!(known.decide(&list), Ok(Verdict::TellBuckets(Vec::new())), "nor is it named");
}

#[test]
fn a_list_of_buckets_names_what_is_open() {
    let scopes = vec![
        scope("photos", Some("c-1"), AccessMode::WriteOnly, None),
        scope("books", Some("c-1"), AccessMode::ReadWrite, None),
    ];
    let photos = bucket("photos");
    let list = Wanted { bucket: None, ..Wanted::of_bucket(Operation::ListBuckets, &photos) };
    let known = Known { scopes, ..Known::default() };
    let Ok(Verdict::TellBuckets(told)) = known.decide(&list) else { panic!("they are told") };
    assert_eq!(told.into_iter().map(|(bucket, _)| bucket).collect::<Vec<_>>(), [bucket("photos")]);
}

fn shared(name: &str, namespaces: &[&str]) -> Known {
    Known {
        scopes: vec![scope(name, None, AccessMode::ReadWrite, None)],
        shared: json!([{"name": name, "namespaces": namespaces, "maxMode": "ReadOnly"}]),
        ..Known::default()
    }
}

fn reads(known: &Known, name: &str) -> bool {
    known.allows(&wanted(Operation::GetObject, &bucket(name), Some("a")))
}

// covers: 8.shared.refused
#[test]
fn a_record_alone_of_a_claim_that_was_refused_the_bucket_voids_no_share() {
    let photos = Known { holder: "c-2", ..shared("photos", &["team-b"]) };
    assert!(!reads(&photos, "photos"), "it is the claim's");
    assert!(reads(&Known { has_begun: false, ..photos }, "photos"));
}

// covers: 8.shared.gateway, 8.shared.void
#[test]
fn an_administrator_opens_what_no_claim_holds() {
    let archive = shared("archive", &["team-b"]);
    assert!(reads(&archive, "archive"));
    assert!(!archive.allows(&wanted(Operation::PutObject, &bucket("archive"), Some("a"))), "beyond maxMode");
    assert!(!reads(&shared("archive", &["team-c"]), "archive"), "of another namespace");
    assert!(!reads(&Known { namespace: None, ..shared("archive", &["team-b"]) }, "archive"), "of no access");
    assert!(!reads(&Known { shared: json!(null), ..shared("archive", &["team-b"]) }, "archive"), "withdrawn");
    assert!(!reads(&shared("photos", &["team-b"]), "photos"), "a claim holds it");
    let of_claim = Known {
        scopes: vec![scope("archive", Some("c-1"), AccessMode::ReadWrite, None)],
        ..shared("archive", &["team-b"])
    };
    assert!(!reads(&of_claim, "archive"), "a scope for a claim's bucket is for no other");
}
