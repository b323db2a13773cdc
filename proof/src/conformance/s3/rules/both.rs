//! Differences that MinIO and versitygw share, where Amazon S3 behaves differently or is undefined.

use std::collections::BTreeSet;

use serde_json::Value;

use super::super::super::difference::{Exchange, Leaf};
use super::super::super::rule::{Consequence, Rule, System};
use super::predicates::{MINIO, VERSITYGW, comes_after, error, field, is_of_refusal, is_pair};

const BOTH: &[System] = &[MINIO, VERSITYGW];

/// Error codes for malformed requests.
const MALFORMED: [&str; 13] = [
    "BadRequest",
    "IllegalVersioningConfigurationException",
    "InvalidArgument",
    "InvalidBucketName",
    "InvalidDigest",
    "InvalidLocationConstraint",
    "InvalidPartOrder",
    "InvalidRequest",
    "InvalidTag",
    "KeyTooLongError",
    "MalformedXML",
    "XMinioInvalidObjectName",
    "XMinioInvalidResourceName",
];

pub(super) const RULES: &[Rule] = &[
    Rule {
        name: "codes of a bad request",
        systems: BOTH,
        then: Consequence::GoesOn,
        reason: "A request that makes no sense is refused with 400 and one of several codes that say little more than \
                 that; which one is each store's own reading. Nobody acts on the difference.",
        applies: |exchange, leaf| {
            leaf.path == "body" && is_malformed(&exchange.answers.simulated) && is_malformed(&exchange.answers.real)
        },
    },
    Rule {
        name: "which of two errors",
        systems: BOTH,
        then: Consequence::GoesOn,
        reason: "A request that is wrong in two ways is refused for one of them: that it makes no sense, that something is \
                 not there or is a delete marker, that the bucket isn't in that state, that parts are in the wrong order, too small or others.",
        applies: |exchange, leaf| {
            let (ours, theirs) = (&exchange.answers.simulated, &exchange.answers.real);
            is_of_refusal(leaf) && (is_either_of_two(ours, theirs) || is_either_of_two(theirs, ours))
        },
    },
    Rule {
        name: "which of two things is missing",
        systems: BOTH,
        then: Consequence::GoesOn,
        reason: "Of a version that is not there either the key or the version is missing, and where a part is copied both \
                 the source and the upload may be. All are 404.",
        applies: |exchange, leaf| {
            let missing = |answer: &Value| ["NoSuchKey", "NoSuchVersion", "NoSuchUpload"].contains(&error(answer));
            leaf.path == "body" && missing(&exchange.answers.simulated) && missing(&exchange.answers.real)
        },
    },
    Rule {
        name: "delete marker of nothing",
        systems: BOTH,
        then: Consequence::Ends,
        reason: "Deleting a key that has no version makes a delete marker on Amazon S3, and none here, as the answer shows \
                 or, where that keeps quiet or pretends, a later list or the deletion of the bucket. Who empties a bucket \
                 deletes versions.",
        applies: is_marker_of_nothing,
    },
    Rule {
        name: "prefix of hidden keys",
        systems: BOTH,
        then: Consequence::GoesOn,
        reason: "A common prefix is listed also where delete markers hide all of its keys, because its directory is there. \
                 Not so on Amazon S3. A client finds nothing below it.",
        applies: |exchange, leaf| {
            let (ours, theirs) = (prefixes(&exchange.answers.simulated), prefixes(&exchange.answers.real));
            leaf.path != "code" && theirs.is_superset(&ours) && theirs != ours
        },
    },
    Rule {
        name: "one page more",
        systems: BOTH,
        then: Consequence::GoesOn,
        reason: "A page that just fits is not known to be the last: another one follows, which is empty.",
        applies: is_one_page_more,
    },
    Rule {
        name: "status under object lock",
        systems: BOTH,
        then: Consequence::GoesOn,
        reason: "InvalidBucketState and NoSuchObjectLockConfiguration come with 400 instead of the 409 and 404 that Amazon \
                 S3 documents. The codes are the same.",
        applies: |exchange, leaf| {
            let code = error(&exchange.answers.real);
            leaf.path == "code"
                && leaf.real == 400
                && ["InvalidBucketState", "NoSuchObjectLockConfiguration"].contains(&code)
                && error(&exchange.answers.simulated) == code
        },
    },
    Rule {
        name: "default retention and a legal hold",
        systems: BOTH,
        then: Consequence::Ends,
        reason: "An object that is written with a legal hold doesn't get the bucket's default retention. On Amazon S3 the \
                 two are independent. The hold holds it longer.",
        applies: |exchange, leaf| {
            let shown = leaf.path == "headers.x-amz-object-lock-mode"
                || leaf.path == "headers.x-amz-object-lock-retain-until-date"
                || (exchange.operation.contains("?retention") && is_of_refusal(leaf));
            let asked = ["<DefaultRetention>", "x-amz-object-lock-legal-hold: ON"];
            shown
                && (leaf.real.is_null() || is_pair(exchange, "", "NoSuchObjectLockConfiguration"))
                && asked.iter().all(|what| comes_after(exchange, what))
        },
    },
    Rule {
        name: "version of a copy's source",
        systems: BOTH,
        then: Consequence::GoesOn,
        reason: "The answer to a copy doesn't say which version was copied, as it does on Amazon S3. Who wants to know \
                 asks for one.",
        applies: |_, leaf| leaf.path == "headers.x-amz-copy-source-version-id" && leaf.real.is_null(),
    },
    Rule {
        name: "range of an empty object",
        systems: BOTH,
        then: Consequence::GoesOn,
        reason: "The last bytes of nothing are nothing: 206 with a malformed Content-Range on MinIO, 200 on versitygw. \
                 Amazon S3 answers 416, as HTTP has it.",
        applies: |exchange, _| {
            let real = &exchange.answers.real;
            exchange.operation.contains("range: bytes=-")
                && exchange.answers.simulated["code"] == 416
                && real["headers"]["content-length"].as_str().is_none_or(|length| length == "0")
                && [200, 206].iter().any(|code| real["code"] == *code)
        },
    },
];

fn is_malformed(answer: &Value) -> bool {
    answer["code"] == 400 && (answer["body"].is_null() || MALFORMED.contains(&error(answer)))
}

fn is_either_of_two(one: &Value, other: &Value) -> bool {
    let missing = other["code"] == 404 && (other["body"].is_null() || error(other).starts_with("NoSuch"));
    let otherwise =
        ["InvalidBucketState", "BucketAlreadyOwnedByYou", "BadDigest", "MethodNotAllowed"].contains(&error(other));
    let parts = ["InvalidPartOrder", "InvalidPart", "EntityTooSmall"];
    (one["code"] == 400 && missing)
        || (is_malformed(one) && otherwise)
        || (parts.contains(&error(one)) && parts.contains(&error(other)))
}

/// Returns true if the real store created no delete marker where the simulated one did.
fn is_marker_of_nothing(exchange: &Exchange, leaf: &Leaf) -> bool {
    let marked = |answer: &Value| answer["headers"]["x-amz-delete-marker"] == "true";
    let one = exchange.operation.starts_with("DELETE ")
        && !exchange.operation.contains("versionId=")
        && leaf.path.starts_with("headers.x-amz-")
        && marked(&exchange.answers.simulated)
        && !marked(&exchange.answers.real);
    let of_many = leaf.path.starts_with("body.DeleteResult.Deleted.")
        && ["DeleteMarker", "DeleteMarkerVersionId"].contains(&field(leaf))
        && leaf.real.is_null();
    let many_before = comes_after(exchange, "?delete");
    let listed = lacks_markers(exchange);
    let empty = exchange.operation.starts_with("DELETE ") && is_pair(exchange, "BucketNotEmpty", "");
    one || of_many || (many_before && (listed || (empty && is_of_refusal(leaf))))
}

/// Returns true if a real list of versions has all entries of the simulated one except delete
/// markers and prefixes of them. In a truncated list the entries after them have moved.
fn lacks_markers(exchange: &Exchange) -> bool {
    let entries = |answer: &Value, kinds: &[&str]| -> BTreeSet<String> {
        let pages = answer.as_array().map_or_else(|| vec![answer], |pages| pages.iter().collect());
        let lists = pages.into_iter().map(|page| &page["body"]["ListVersionsResult"]);
        let all = lists.flat_map(|list| kinds.iter().filter_map(|kind| list[*kind].as_array()).flatten());
        all.map(|entry| format!("{} {} {}", entry["Key"], entry["VersionId"], entry["Prefix"])).collect()
    };
    let both = [&exchange.answers.simulated, &exchange.answers.real];
    let [markers, known] = both.map(|answer| entries(answer, &["DeleteMarker", "CommonPrefixes"]));
    let [versions, known_versions] = both.map(|answer| entries(answer, &["Version"]));
    let is_part = exchange.operation.starts_with("GET ") && exchange.operation.contains("max-keys=");
    !markers.is_subset(&known) && (is_part || (markers.is_superset(&known) && versions == known_versions))
}

/// Returns the common prefixes on all pages of a list.
fn prefixes(answer: &Value) -> BTreeSet<&str> {
    let pages = answer.as_array().map_or_else(|| vec![answer], |pages| pages.iter().collect());
    let all = pages.into_iter().filter_map(|page| page["body"]["ListBucketResult"]["CommonPrefixes"].as_array());
    all.flatten().filter_map(|prefix| prefix["Prefix"].as_str()).collect()
}

/// Returns true if the real list continues where the simulated one ends, and the extra page, if it
/// was requested, is empty.
fn is_one_page_more(exchange: &Exchange, leaf: &Leaf) -> bool {
    let claims = field(leaf) == "IsTruncated" && leaf.simulated == "false" && leaf.real == "true";
    let marks = field(leaf).starts_with("Next") && leaf.simulated.is_null();
    let page = leaf.path.parse::<usize>().ok().filter(|_| leaf.simulated == "absent");
    let is_beyond = page.is_some_and(|page| {
        let document = exchange.answers.real[page]["body"].as_object().and_then(|body| body.values().next());
        let entries = ["Contents", "CommonPrefixes", "Version", "DeleteMarker", "Upload", "Part"];
        document.is_some_and(|document| entries.iter().all(|name| document[*name].is_null()))
    });
    claims || marks || is_beyond
}
