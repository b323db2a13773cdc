//! Differences of versitygw, with a file system as its backend, from MinIO and Amazon S3.

use serde_json::Value;

use super::super::super::difference::Exchange;
use super::super::super::rule::{Consequence, Rule, System};
use super::predicates::{VERSITYGW, comes_after, error, field, is_copy_onto_itself, is_of_refusal, is_pair};

const SYSTEMS: &[System] = &[VERSITYGW];
/// Error codes of versitygw for a version that does not exist.
const GONE: [&str; 2] = ["NoSuchVersion", "InvalidArgument"];

pub(super) const RULES: &[Rule] = &[
    Rule {
        name: "suspended versioning",
        systems: SYSTEMS,
        then: Consequence::Ends,
        reason: "versitygw loses versions once versioning is suspended: what is written or deleted then takes the place of \
                 the newest version, and `null` can't be read. What follows a suspension is compared with MinIO only.",
        applies: |exchange, _| comes_after(exchange, "Suspended"),
    },
    Rule {
        name: "version null",
        systems: SYSTEMS,
        then: Consequence::Ends,
        reason: "versitygw knows no version `null` in a bucket without versioning, and what was written before versioning \
                 was turned on can't be named, and comes back as the newest when a later version is deleted.",
        applies: |exchange, _| {
            let versioned = ["<Status>Enabled</Status>", "x-amz-bucket-object-lock-enabled: true"];
            let turned_on =
                exchange.after.iter().position(|operation| versioned.iter().any(|how| operation.contains(how)));
            let before = &exchange.after[..turned_on.unwrap_or(exchange.after.len())];
            let written = before.iter().any(|operation| operation.starts_with("PUT /$(place)-a/"));
            written && (turned_on.is_some() || exchange.operation.contains("versionId="))
        },
    },
    Rule {
        name: "copy of a delete marker",
        systems: SYSTEMS,
        then: Consequence::Ends,
        reason: "versitygw copies what a delete marker hides, and the marker itself, as if it were an object, \
                 and looks at conditions.",
        applies: |exchange, leaf| {
            let hidden = ["NoSuchKey", "NoSuchVersion", "MethodNotAllowed"];
            exchange.operation.contains("x-amz-copy-source: ")
                && is_of_refusal(leaf)
                && hidden.contains(&error(&exchange.answers.simulated))
                && exchange.answers.real["code"] != 404
        },
    },
    Rule {
        name: "copy onto itself",
        systems: SYSTEMS,
        then: Consequence::Ends,
        reason: "versitygw changes an object in place where it is copied onto itself: there is no new version, and headers \
                 that the copy doesn't name stay.",
        applies: |exchange, leaf| {
            let made = is_copy_onto_itself(&exchange.operation) && leaf.path == "headers.x-amz-version-id";
            let copied = exchange.after.iter().any(|operation| is_copy_onto_itself(operation));
            let kept = copied && leaf.path.starts_with("headers.") && leaf.simulated.is_null();
            made || kept
        },
    },
    Rule {
        name: "condition of a copy",
        systems: SYSTEMS,
        then: Consequence::GoesOn,
        reason: "versitygw answers a copy whose source is not to match with 304. MinIO and Amazon S3 answer 412, as nothing \
                 is read.",
        applies: |exchange, leaf| {
            exchange.operation.contains("x-amz-copy-source-if-none-match")
                && is_of_refusal(leaf)
                && error(&exchange.answers.simulated) == "PreconditionFailed"
                && exchange.answers.real["code"] == 304
        },
    },
    Rule {
        name: "status of a write of tags",
        systems: SYSTEMS,
        then: Consequence::GoesOn,
        reason: "versitygw answers PutBucketTagging with 204, MinIO with 200; Amazon S3 has done both.",
        applies: |exchange, leaf| {
            leaf.path == "code" && exchange.operation.contains("?tagging") && leaf.simulated == 200 && leaf.real == 204
        },
    },
    Rule {
        name: "nothing to delete",
        systems: SYSTEMS,
        then: Consequence::GoesOn,
        reason: "versitygw takes a DeleteObjects without objects for one that succeeds. MinIO and Amazon S3 refuse it.",
        applies: |exchange, leaf| {
            exchange.operation.contains("<Delete></Delete>")
                && is_of_refusal(leaf)
                && is_pair(exchange, "MalformedXML", "")
        },
    },
    Rule {
        name: "quiet",
        systems: SYSTEMS,
        then: Consequence::GoesOn,
        reason: "versitygw tells what a DeleteObjects has deleted also where it is not to.",
        applies: |exchange, leaf| {
            exchange.operation.contains("<Quiet>true")
                && leaf.path.starts_with("body.DeleteResult")
                && (leaf.simulated.is_null() || leaf.simulated == "")
                && (field(leaf) == "Deleted" || exchange.answers.real["body"]["DeleteResult"]["Error"].is_null())
        },
    },
    Rule {
        name: "no encoding",
        systems: SYSTEMS,
        then: Consequence::GoesOn,
        reason: "versitygw doesn't know encoding-type, and says so by not repeating it. Clients decode what is said to be \
                 encoded.",
        applies: |exchange, leaf| {
            exchange.operation.contains("encoding-type=url")
                && ["EncodingType", "Key", "Prefix", "NextMarker", "NextKeyMarker"].contains(&field(leaf))
        },
    },
    Rule {
        name: "deleting a version that is gone",
        systems: SYSTEMS,
        then: Consequence::GoesOn,
        reason: "versitygw refuses to delete a version that is not there, `null` too. MinIO and Amazon S3 say that it is \
                 deleted. Either way it is gone.",
        applies: |exchange, leaf| {
            exchange.operation.starts_with("DELETE ")
                && exchange.operation.contains("versionId=")
                && is_of_refusal(leaf)
                && GONE.iter().any(|code| is_pair(exchange, "", code))
        },
    },
    Rule {
        name: "deleting many of which some are gone",
        systems: SYSTEMS,
        then: Consequence::Ends,
        reason: "The same, one by one.",
        applies: |exchange, leaf| leaf.path.starts_with("body.DeleteResult") && are_refused(exchange, &GONE),
    },
    Rule {
        name: "default retention",
        systems: SYSTEMS,
        then: Consequence::Ends,
        reason: "versitygw applies a bucket's default retention when something is to be deleted, so that it holds what was \
                 there before as well, and no object shows it. On MinIO and Amazon S3 new objects get it.",
        applies: |exchange, leaf| {
            let held = is_of_refusal(leaf) && is_pair(exchange, "", "AccessDenied");
            let held_many = leaf.path.starts_with("body.DeleteResult")
                && are_refused(exchange, &["AccessDenied", GONE[0], GONE[1]]);
            let unseen = exchange.operation.contains("?retention")
                && is_of_refusal(leaf)
                && is_pair(exchange, "", "NoSuchObjectLockConfiguration");
            comes_after(exchange, "<DefaultRetention>") && (held || held_many || unseen)
        },
    },
    Rule {
        name: "strangers and missing buckets",
        systems: SYSTEMS,
        then: Consequence::GoesOn,
        reason: "versitygw and Amazon S3 tell also who doesn't sign that a bucket is missing; MinIO and the simulator deny \
                 access.",
        applies: |exchange, leaf| {
            exchange.operation.contains("signed by Nobody")
                && is_of_refusal(leaf)
                && is_pair(exchange, "AccessDenied", "NoSuchBucket")
        },
    },
    Rule {
        name: "name with two dots",
        systems: SYSTEMS,
        then: Consequence::Ends,
        reason: "versitygw makes buckets with two dots side by side in their names. MinIO and Amazon S3 refuse them.",
        applies: |exchange, leaf| {
            exchange.operation.starts_with("PUT /$(place)..a")
                && is_of_refusal(leaf)
                && is_pair(exchange, "InvalidBucketName", "")
        },
    },
    Rule {
        name: "head of a delete marker",
        systems: SYSTEMS,
        then: Consequence::GoesOn,
        reason: "versitygw doesn't say that it is a delete marker that hides the object.",
        applies: |exchange, leaf| {
            exchange.operation.starts_with("HEAD ") && leaf.path == "headers.x-amz-delete-marker" && leaf.real.is_null()
        },
    },
    Rule {
        name: "overwriting what is not there",
        systems: SYSTEMS,
        then: Consequence::GoesOn,
        reason: "versitygw answers If-Match on a missing key with PreconditionFailed. MinIO answers NoSuchKey, as Amazon S3 \
                 documents it.",
        applies: |exchange, leaf| is_of_refusal(leaf) && is_pair(exchange, "NoSuchKey", "PreconditionFailed"),
    },
    Rule {
        name: "writing where a delete marker is",
        systems: SYSTEMS,
        then: Consequence::Ends,
        reason: "To versitygw a key that a delete marker hides is there: If-None-Match doesn't let it be written, \
                 If-Match does.",
        applies: |exchange, leaf| {
            let absent = exchange.operation.contains("if-none-match: *") && is_pair(exchange, "", "PreconditionFailed");
            let present = exchange.operation.contains("if-match: ") && is_pair(exchange, "NoSuchKey", "");
            is_of_refusal(leaf) && (absent || present)
        },
    },
    Rule {
        name: "root of a retention",
        systems: SYSTEMS,
        then: Consequence::GoesOn,
        reason: "versitygw calls the document another name. SDKs don't look at it.",
        applies: |exchange, leaf| {
            let (ours, theirs) = (&exchange.answers.simulated["body"], &exchange.answers.real["body"]);
            (leaf.path == "body.Retention" || leaf.path == "body.ObjectLockRetention")
                && ours["Retention"] == theirs["ObjectLockRetention"]
        },
    },
    Rule {
        name: "tags of a delete marker",
        systems: SYSTEMS,
        then: Consequence::GoesOn,
        reason: "versitygw says MethodNotAllowed of a key that a delete marker hides. MinIO says NoSuchKey.",
        applies: |exchange, leaf| {
            exchange.operation.contains("?tagging")
                && is_of_refusal(leaf)
                && is_pair(exchange, "NoSuchKey", "MethodNotAllowed")
        },
    },
    Rule {
        name: "order of the uploads to one key",
        systems: SYSTEMS,
        then: Consequence::GoesOn,
        reason: "versitygw orders uploads to one key by their ids, which are random, not by age.",
        applies: |_, leaf| leaf.path.contains("ListMultipartUploadsResult.Upload.") && field(leaf) == "UploadId",
    },
    Rule {
        name: "completing what is no upload",
        systems: SYSTEMS,
        then: Consequence::GoesOn,
        reason: "Where there is an object, versitygw takes the completion of an unknown upload for a repetition, and says \
                 that it is done. MinIO and Amazon S3 answer NoSuchUpload.",
        applies: |exchange, leaf| {
            exchange.operation.starts_with("POST ")
                && exchange.operation.contains("<CompleteMultipartUpload>")
                && is_of_refusal(leaf)
                && is_pair(exchange, "NoSuchUpload", "")
        },
    },
    Rule {
        name: "pages of versions",
        systems: SYSTEMS,
        then: Consequence::GoesOn,
        reason: "versitygw's pages of ListObjectVersions overlap and leave out prefixes; whole lists are right. The operator \
                 deletes what a page shows and asks again until nothing is left, whatever it shows twice.",
        applies: |exchange, leaf| {
            let parameters = exchange.operation.split_once("?versions").map_or("", |(_, rest)| rest).split('&');
            let partly = |parameter: &str| {
                parameter.starts_with("key-marker=") || ["max-keys=1", "max-keys=2", "max-keys=3"].contains(&parameter)
            };
            parameters.into_iter().any(partly) && leaf.path != "code"
        },
    },
    Rule {
        name: "lock of a version",
        systems: SYSTEMS,
        then: Consequence::Ends,
        reason: "versitygw doesn't always tell of a lock where the object is read, and what was put on a version is gone with \
                 the next one.",
        applies: |exchange, leaf| {
            let unseen = leaf.path.starts_with("headers.x-amz-object-lock-") && leaf.real.is_null();
            let gone = is_pair(exchange, "", "NoSuchObjectLockConfiguration") || is_pair(exchange, "AccessDenied", "");
            unseen || (exchange.operation.contains("versionId=") && is_of_refusal(leaf) && gone)
        },
    },
    Rule {
        name: "pages of uploads",
        systems: SYSTEMS,
        then: Consequence::GoesOn,
        reason: "versitygw takes no marker of an upload that is not the first of its key, the second page is an \
                 InvalidArgument then; and it shows a prefix again that is the marker. Less than a thousand uploads are one \
                 page.",
        applies: |exchange, leaf| {
            let mut pages = exchange.answers.real.as_array().into_iter().flatten();
            let refused = pages.any(|page| error(page) == "InvalidArgument");
            let marked = exchange.operation.contains("&key-marker=") && leaf.path != "code";
            exchange.operation.contains("?uploads") && (refused || marked)
        },
    },
];

/// Returns true if the real store reports errors with these codes for some keys of a DeleteObjects
/// where the simulated one reports none.
fn are_refused(exchange: &Exchange, codes: &[&str]) -> bool {
    let errors = |answer: &Value| answer["body"]["DeleteResult"]["Error"].as_array().cloned().unwrap_or_default();
    let theirs = errors(&exchange.answers.real);
    let known = |error: &Value| error["Code"].as_str().is_some_and(|code| codes.contains(&code));
    !theirs.is_empty() && theirs.iter().all(known) && errors(&exchange.answers.simulated).is_empty()
}
