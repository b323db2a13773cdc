//! Differences of MinIO from versitygw and Amazon S3.

use serde_json::Value;

use super::super::super::difference::{Exchange, Leaf};
use super::super::super::rule::{Consequence, Rule, System};
use super::predicates::{MINIO, comes_after, error, field, is_copy_onto_itself, is_of_refusal, is_pair};

const SYSTEMS: &[System] = &[MINIO];

pub(super) const RULES: &[Rule] = &[
    Rule {
        name: "settings of a missing bucket",
        systems: SYSTEMS,
        then: Consequence::Ends,
        reason: "MinIO doesn't ask whether the bucket is there before it reads and writes its tags and its versioning: it \
                 answers NoSuchTagSet, or that it is done. versitygw and Amazon S3 answer NoSuchBucket.",
        applies: |exchange, leaf| {
            let settings = exchange.operation.contains("?tagging") || exchange.operation.contains("?versioning");
            let done = is_pair(exchange, "NoSuchBucket", "") || is_pair(exchange, "NoSuchBucket", "NoSuchTagSet");
            settings && is_of_refusal(leaf) && done
        },
    },
    Rule {
        name: "prefix of the list of buckets",
        systems: SYSTEMS,
        then: Consequence::GoesOn,
        reason: "MinIO lists all buckets whatever prefix is asked for. Nobody of ours asks for one.",
        applies: |exchange, leaf| {
            exchange.operation.starts_with("GET /?prefix=") && leaf.path.starts_with("body.ListAllMyBucketsResult")
        },
    },
    Rule {
        name: "aborting what is no upload",
        systems: SYSTEMS,
        then: Consequence::GoesOn,
        reason: "MinIO answers the abort of an unknown upload as if it had been one. versitygw and Amazon S3 answer \
                 NoSuchUpload.",
        applies: |exchange, leaf| {
            is_of_refusal(leaf) && exchange.operation.starts_with("DELETE ") && is_pair(exchange, "NoSuchUpload", "")
        },
    },
    Rule {
        name: "markers with a note",
        systems: SYSTEMS,
        then: Consequence::GoesOn,
        reason: "MinIO's markers are keys with a note to itself behind them, and none for the version `null`. Clients give \
                 them back as they are.",
        applies: |_, leaf| {
            let (ours, theirs) = (leaf.simulated.as_str().unwrap_or_default(), leaf.real.as_str().unwrap_or_default());
            let note = theirs.strip_prefix(ours).is_some_and(|rest| rest.contains("minio_cache"));
            (["NextMarker", "NextKeyMarker"].contains(&field(leaf)) && note)
                || (field(leaf) == "NextVersionIdMarker" && ours == "null" && leaf.real.is_null())
        },
    },
    Rule {
        name: "marker that nobody asked for",
        systems: SYSTEMS,
        then: Consequence::GoesOn,
        reason: "MinIO says where the next page of ListObjects begins also where there is no delimiter. Clients then go on \
                 from the last key, which is the same.",
        applies: |_, leaf| leaf.path.ends_with("ListBucketResult.NextMarker") && leaf.simulated.is_null(),
    },
    Rule {
        name: "marker outside of the prefix",
        systems: SYSTEMS,
        then: Consequence::GoesOn,
        reason: "MinIO answers NotImplemented where a marker doesn't begin with the prefix, and an empty list where \
                 `start-after` doesn't, whether the bucket is there or not. No list gives such a marker.",
        applies: |exchange, _| {
            (exchange.operation.contains("marker=") && error(&exchange.answers.real) == "NotImplemented")
                || (exchange.operation.contains("start-after=") && is_pair(exchange, "NoSuchBucket", ""))
        },
    },
    Rule {
        name: "uploads are listed by key",
        systems: SYSTEMS,
        then: Consequence::GoesOn,
        reason: "MinIO lists only the uploads of the one key that is given as prefix. It deletes a bucket with uploads, so \
                 who empties one need not see them.",
        applies: |exchange, leaf| {
            exchange.operation.contains("GET ")
                && exchange.operation.contains("?uploads")
                && (leaf.path != "code" || error(&exchange.answers.real) == "NotImplemented")
        },
    },
    Rule {
        name: "any region will do",
        systems: SYSTEMS,
        then: Consequence::Ends,
        reason: "MinIO makes a bucket in whatever region is asked for. versitygw and Amazon S3 refuse one that they don't \
                 know.",
        applies: |exchange, leaf| is_of_refusal(leaf) && is_pair(exchange, "InvalidLocationConstraint", ""),
    },
    Rule {
        name: "refusal under object lock",
        systems: SYSTEMS,
        then: Consequence::GoesOn,
        reason: "MinIO refuses to remove what is locked with InvalidRequest, 400. versitygw and Amazon S3 answer \
                 AccessDenied, 403. Of many it says so key by key, in an answer of 200: who empties a bucket takes either \
                 code for a refusal.",
        applies: |exchange, leaf| {
            let of_many = leaf.path.starts_with("body.DeleteResult.Error.")
                && leaf.simulated == "AccessDenied"
                && leaf.real == "InvalidRequest";
            (is_of_refusal(leaf) && is_pair(exchange, "AccessDenied", "InvalidRequest")) || of_many
        },
    },
    Rule {
        name: "object lock of a bucket that was made without",
        systems: SYSTEMS,
        then: Consequence::Ends,
        reason: "MinIO has object lock only for buckets that were made with it. Amazon S3 and versitygw take it for any \
                 that is versioned.",
        applies: |exchange, leaf| {
            exchange.operation.contains("?object-lock")
                && is_of_refusal(leaf)
                && is_pair(exchange, "", "InvalidBucketState")
        },
    },
    Rule {
        name: "size of a delete marker",
        systems: SYSTEMS,
        then: Consequence::GoesOn,
        reason: "MinIO's lists give delete markers a size of 0 and a storage class.",
        applies: |_, leaf| {
            leaf.path.contains(".DeleteMarker.")
                && ["Size", "StorageClass"].contains(&field(leaf))
                && leaf.simulated.is_null()
        },
    },
    Rule {
        name: "copy onto itself that changes little",
        systems: SYSTEMS,
        then: Consequence::Ends,
        reason: "MinIO takes a copy of an object onto itself where tags are replaced or the version is named, though it is \
                 the same. versitygw and Amazon S3 refuse it.",
        applies: |exchange, leaf| {
            let changes = ["x-amz-tagging-directive: REPLACE", "?versionId="];
            is_copy_onto_itself(&exchange.operation)
                && changes.iter().any(|change| exchange.operation.contains(change))
                && is_of_refusal(leaf)
                && is_pair(exchange, "InvalidRequest", "")
        },
    },
    Rule {
        name: "version that is gone",
        systems: SYSTEMS,
        then: Consequence::GoesOn,
        reason: "MinIO doesn't name the version that it is asked to delete where it is gone already.",
        applies: |exchange, leaf| {
            exchange.operation.starts_with("DELETE ")
                && exchange.operation.contains("versionId=")
                && leaf.path == "headers.x-amz-version-id"
                && leaf.real.is_null()
        },
    },
    Rule {
        name: "range of a part's source",
        systems: SYSTEMS,
        then: Consequence::GoesOn,
        reason: "A part that is to be copied from beyond the end of its source is an InvalidRange, 416, on MinIO, an \
                 InvalidArgument on versitygw and Amazon S3.",
        applies: |exchange, leaf| {
            exchange.operation.contains("x-amz-copy-source-range")
                && is_of_refusal(leaf)
                && is_pair(exchange, "InvalidArgument", "InvalidRange")
        },
    },
    Rule {
        name: "second delete marker",
        systems: SYSTEMS,
        then: Consequence::Ends,
        reason: "MinIO makes no delete marker for a key that is deleted already, and DeleteObjects answers as if it did, \
                 also for a key that never was. What it says it made is not there.",
        applies: is_second_marker,
    },
    Rule {
        name: "delete marker from before a suspension",
        systems: SYSTEMS,
        then: Consequence::Ends,
        reason: "Where versioning was suspended since, MinIO doesn't say that what a DELETE has removed was a delete marker. \
                 DeleteObjects, which empties buckets, is not affected.",
        applies: |exchange, leaf| {
            exchange.operation.starts_with("DELETE ")
                && exchange.operation.contains("versionId=")
                && leaf.path == "headers.x-amz-delete-marker"
                && leaf.real.is_null()
                && comes_after(exchange, "Suspended")
        },
    },
    Rule {
        name: "lock of a delete marker",
        systems: SYSTEMS,
        then: Consequence::GoesOn,
        reason: "MinIO says of the lock of a delete marker that key or version is missing, but where a retention is put on \
                 the newest version. versitygw always says MethodNotAllowed.",
        applies: |exchange, leaf| {
            let lock = exchange.operation.contains("?retention") || exchange.operation.contains("?legal-hold");
            let missing = ["NoSuchKey", "NoSuchVersion"];
            lock && is_of_refusal(leaf) && missing.iter().any(|code| is_pair(exchange, "MethodNotAllowed", code))
        },
    },
];

/// Returns true if the leaf shows that the real store created no second delete marker: in the
/// answer to the deletion, or later if that answer claimed to have created one.
fn is_second_marker(exchange: &Exchange, leaf: &Leaf) -> bool {
    let marked = |answer: &Value| answer["headers"]["x-amz-delete-marker"] == "true";
    let (ours, theirs) = (&exchange.answers.simulated, &exchange.answers.real);
    let same = exchange.operation.starts_with("DELETE ")
        && !exchange.operation.contains("versionId=")
        && leaf.path == "headers.x-amz-version-id"
        && marked(ours)
        && marked(theirs);
    let missing = marked(ours) && leaf.path == "headers.x-amz-delete-marker" && leaf.real.is_null();
    let head = ours["code"] == 405 && theirs["code"] == 404 && exchange.operation.starts_with("HEAD ");
    let unknown = is_of_refusal(leaf) && (head || is_pair(exchange, "MethodNotAllowed", "NoSuchVersion"));
    same || (comes_after(exchange, "?delete") && (missing || unknown))
}
