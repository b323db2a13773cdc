//! Invariants of every scenario, checked from outside by the operator's requests to API server and
//! store.

use std::collections::BTreeSet;

use anyhow::{Result, anyhow, bail, ensure};
use stowage_operator::api::{BucketName, Endpoint, RecordName};
use stowage_world::effects::{Call, Line};
use stowage_world::serve::S3Request;

use crate::audit::Request;

/// The operator's allowed writes (spec §2, §3.8): never whole claims, backends or namespaces. On a
/// backend it may record that it serves it.
const MAY: [(&str, &[&str]); 14] = [
    ("bucketclaims", &["patch", "update"]),
    ("bucketclaims/status", &["patch", "update"]),
    ("bucketaccesses", &["patch", "update"]),
    ("bucketaccesses/status", &["patch", "update"]),
    ("objectbucketclaims", &["patch"]),
    ("objectbucketclaims/status", &["patch"]),
    ("objectbuckets", &["create", "patch", "delete"]),
    ("objectbuckets/status", &["patch"]),
    ("configmaps", &["create", "patch"]),
    ("s3backends", &["patch"]),
    ("s3backends/status", &["patch", "update"]),
    ("secrets", &["create", "patch", "update", "delete"]),
    ("events", &["create", "patch", "update"]),
    ("leases", &["create", "patch", "update"]),
];

/// Resources that the operator also creates and deletes for ObjectBucketClaims (spec §9), with
/// names of this prefix.
const OF_OTHERS: [&str; 2] = ["bucketclaims", "bucketaccesses"];
const OF_OTHERS_NAMES: &str = "obc-";

/// Resources that a gateway writes: its counts for quotas, and its presence (spec §6).
const COUNTS: [&str; 2] = ["configmaps", "leases"];

/// S3 operations that destroy something.
const DESTROYS: [&str; 4] = ["DeleteBucket", "DeleteObject", "DeleteObjects", "AbortMultipartUpload"];

/// Fails if the operator wrote anything that it may not change, or sent a request that it has no
/// right to.
pub fn requests(asked: &[Request]) -> Result<()> {
    for request in asked {
        let (target, verb) = (request.target(), request.verb.as_str());
        let may = MAY.iter().any(|(resource, verbs)| *resource == target && verbs.contains(&verb));
        let may = may || makes_for_others(request);
        ensure!(may || !request.writes(), "the operator asked to {verb} {target} {}", place(request));
        ensure!(!request.forbidden(), "the operator has no right to {verb} {target} {}", place(request));
    }
    Ok(())
}

/// True if the request creates or deletes an object that does the work for an ObjectBucketClaim.
fn makes_for_others(request: &Request) -> bool {
    let is_it = OF_OTHERS.contains(&request.target().as_str()) && ["create", "delete"].contains(&request.verb.as_str());
    is_it && request.object_ref.name.starts_with(OF_OTHERS_NAMES)
}

/// Fails if the gateway wrote anything but its counts, or sent a request that it has no right to.
pub fn reader(asked: &[Request]) -> Result<()> {
    for request in asked {
        let (target, verb) = (request.target(), request.verb.as_str());
        let may = COUNTS.contains(&target.as_str());
        ensure!(may || !request.writes(), "the gateway asked to {verb} {target} {}", place(request));
        ensure!(!request.forbidden(), "the gateway has no right to {verb} {target} {}", place(request));
    }
    Ok(())
}

/// Fails if the operator sent a request that the API server could not make sense of. This uses the
/// responses that the proxy saw, because the audit log records 500 or 504 for a caller that was
/// killed.
pub fn answers(calls: &[Line]) -> Result<()> {
    // Conflicts, deletions and terminating namespaces are part of normal operation; these codes
    // never are.
    let senseless =
        |line: &&Line| matches!(line.call, Call::Kube(_)) && matches!(line.world, Some(400 | 405 | 406 | 415 | 500));
    match calls.iter().find(senseless) {
        Some(line) => Err(anyhow!("the operator asked what makes no sense: {line}")),
        None => Ok(()),
    }
}

fn place(request: &Request) -> String {
    format!("{}/{}", request.object_ref.namespace, request.object_ref.name)
}

/// True if the request is a successful change of the store by this user.
pub fn changes(request: &S3Request, user: &str) -> bool {
    let reads = ["Get", "Head", "List"].iter().any(|reads| request.operation.name().starts_with(reads));
    request.who.as_deref() == Some(user) && !reads && request.status.is_some_and(|status| status < 300)
}

/// Fails if the operator created a bucket before its record was stored, or destroyed anything in a
/// bucket that it did not create.
pub fn store(endpoint: &str, changes: &[S3Request], asked: &[Request]) -> Result<()> {
    let endpoint = Endpoint::parse(endpoint)?;
    let mut created = BTreeSet::new();
    for change in changes {
        let bucket = change.bucket.as_deref().unwrap_or_default();
        if change.operation.name() == "CreateBucket" {
            let name = BucketName::parse(bucket)?;
            recorded_before(change, &RecordName::of(&endpoint, &name), asked)?;
            created.insert(bucket);
        } else if DESTROYS.contains(&change.operation.name()) && !created.contains(bucket) {
            bail!("the operator did {} in bucket {bucket}, which it had not created", change.operation);
        }
    }
    Ok(())
}

fn recorded_before(change: &S3Request, record: &RecordName, asked: &[Request]) -> Result<()> {
    let recorded = asked.iter().any(|request| {
        // The audit log shows 504 for a create with a killed caller, although the object was
        // stored. A later write proves that it was.
        ["create", "patch", "update"].contains(&request.verb.as_str())
            && request.target() == "secrets"
            // The path of a POST has no name, but its response does.
            && request.object_ref.name == record.as_str()
            && request.succeeded()
            && request.stage_timestamp <= change.at
    });
    let bucket = change.bucket.as_deref().unwrap_or_default();
    ensure!(recorded, "bucket {bucket} was created before its record {record} was stored");
    Ok(())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;
    use stowage_world::effects::{CallOutcome, KubeCall, S3Operation};

    use super::*;

    const ENDPOINT: &str = "http://127.0.0.1:9000";

    fn asked(verb: &str, resource: &str, subresource: &str, name: &str, code: u16) -> Request {
        serde_json::from_value(json!({
            "verb": verb, "user": {"username": "operator"},
            "objectRef": {"resource": resource, "subresource": subresource, "namespace": "ns", "name": name},
            "responseStatus": {"code": code}, "stageTimestamp": "2026-01-01T00:00:01Z",
        }))
        .unwrap()
    }

    fn changed(second: i64, operation: &'static str, bucket: &str) -> S3Request {
        S3Request {
            at: "2026-01-01T00:00:00Z".parse::<jiff::Timestamp>().unwrap() + jiff::SignedDuration::from_secs(second),
            who: Some("OPERATOR".to_owned()),
            operation: S3Operation::named(operation).unwrap(),
            bucket: Some(bucket.to_owned()),
            key: None,
            status: Some(200),
        }
    }

    fn record(bucket: &str) -> Request {
        let name = RecordName::of(&Endpoint::parse(ENDPOINT).unwrap(), &BucketName::parse(bucket).unwrap());
        asked("create", "secrets", "", name.as_str(), 201)
    }

    #[rstest]
    #[case("patch", "bucketclaims", "status", 200, true)]
    #[case("patch", "bucketclaims", "", 409, true)]
    #[case("list", "namespaces", "", 200, true)]
    #[case("create", "secrets", "", 403, true)]
    #[case("list", "secrets", "", 500, true)]
    #[case("delete", "bucketclaims", "", 200, false)]
    #[case("deletecollection", "secrets", "", 200, false)]
    #[case("patch", "s3backends", "", 200, true)]
    #[case("update", "s3backends", "", 200, false)]
    #[case("delete", "s3backends", "", 200, false)]
    #[case("delete", "bucketaccesses", "", 200, false)]
    #[case("delete", "configmaps", "", 200, false)]
    #[case("patch", "objectbucketclaims", "status", 200, true)]
    #[case("delete", "objectbucketclaims", "", 200, false)]
    fn only_some_requests_are_an_operators(
        #[case] verb: &str,
        #[case] resource: &str,
        #[case] subresource: &str,
        #[case] code: u16,
        #[case] right: bool,
    ) {
        assert_eq!(requests(&[asked(verb, resource, subresource, "x", code)]).is_ok(), right);
    }

    #[rstest]
    #[case(Some(200), true)]
    #[case(Some(409), true)]
    #[case(Some(500), false)]
    #[case(Some(400), false)]
    #[case(None, true)]
    fn senseless_requests_are_told_by_their_answers(#[case] world: Option<u16>, #[case] right: bool) {
        let uri = "/api/v1/namespaces/ns/secrets/x".parse().unwrap();
        let line = Line {
            number: 7,
            instance: 1,
            call: Call::Kube(KubeCall::read(&http::Method::PATCH, &uri)),
            fault: None,
            world,
            answer: CallOutcome::Died,
            began_ms: 0,
        };
        assert_eq!(answers(&[line]).is_ok(), right);
    }

    #[rstest]
    #[case("create", "bucketclaims", "obc-photos", true)]
    #[case("delete", "bucketaccesses", "obc-photos", true)]
    #[case("create", "bucketclaims", "photos", false)]
    #[case("delete", "secrets", "obc-photos", true)]
    #[case("deletecollection", "bucketclaims", "obc-photos", false)]
    fn what_is_made_for_others_is_told_by_its_name(
        #[case] verb: &str,
        #[case] resource: &str,
        #[case] name: &str,
        #[case] right: bool,
    ) {
        assert_eq!(requests(&[asked(verb, resource, "", name, 200)]).is_ok(), right);
    }

    fn refused(mut request: Request) -> Request {
        request.annotations.insert("authorization.k8s.io/decision".to_owned(), "forbid".to_owned());
        request
    }

    #[rstest]
    #[case(asked("watch", "secrets", "", "x", 200), "")]
    #[case(asked("update", "configmaps", "", "x", 200), "")]
    #[case(asked("patch", "secrets", "", "x", 200), "the gateway asked to patch secrets ns/x")]
    #[case(refused(asked("list", "secrets", "", "x", 403)), "the gateway has no right to list secrets ns/x")]
    fn a_gateway_reads_what_it_may(#[case] request: Request, #[case] expected: &str) {
        let told = reader(&[request]).map_or_else(|why| why.to_string(), |()| String::new());
        assert_eq!(told, expected);
    }

    #[test]
    fn a_right_that_the_operator_lacks_is_a_failure() {
        let refused = refused(asked("create", "secrets", "", "x", 403));
        let why = requests(&[refused]).unwrap_err().to_string();
        assert_eq!(why, "the operator has no right to create secrets ns/x");
    }

    #[test]
    fn a_bucket_is_created_after_its_record_and_not_before() {
        store(ENDPOINT, &[changed(2, "CreateBucket", "photos")], &[record("photos")]).unwrap();
        for (moment, asked) in [(0, record("photos")), (2, record("videos"))] {
            let why = store(ENDPOINT, &[changed(moment, "CreateBucket", "photos")], &[asked]).unwrap_err().to_string();
            assert!(why.contains("before its record"), "{why}");
        }
    }

    #[test]
    fn a_record_whose_creator_was_killed_is_shown_by_a_later_write() {
        let mut cut = record("photos");
        cut.response_status.code = 504;
        let made = [changed(2, "CreateBucket", "photos")];
        assert!(store(ENDPOINT, &made, &[cut.clone()]).is_err());
        let mut patched = record("photos");
        patched.verb = "patch".to_owned();
        store(ENDPOINT, &made, &[cut, patched]).unwrap();
    }

    #[rstest]
    #[case("DeleteBucket")]
    #[case("DeleteObjects")]
    #[case("AbortMultipartUpload")]
    fn only_what_was_created_is_destroyed(#[case] operation: &'static str) {
        let destroys = changed(3, operation, "photos");
        let made = changed(2, "CreateBucket", "photos");
        store(ENDPOINT, &[made.clone(), destroys.clone()], &[record("photos")]).unwrap();
        let why = store(ENDPOINT, &[destroys, made], &[record("photos")]).unwrap_err().to_string();
        assert!(why.contains("which it had not created"), "{why}");
    }

    #[test]
    fn changes_are_the_users_own_and_had_success() {
        let change = changed(0, "DeleteBucket", "photos");
        assert!(changes(&change, "OPERATOR") && !changes(&change, "ADMIN"));
        assert!(!changes(&S3Request { status: Some(409), ..change.clone() }, "OPERATOR"));
        assert!(!changes(&S3Request { operation: S3Operation::named("HeadBucket").unwrap(), ..change }, "OPERATOR"));
    }
}
