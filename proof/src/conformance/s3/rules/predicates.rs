//! Predicates of rules on an operation and its two answers.

use serde_json::Value;

use super::super::super::difference::{Exchange, Leaf};
use super::super::super::rule::System;
use super::super::server::Server;
use super::super::sign::encoded;

pub(super) const MINIO: System = System::S3(Server::MinIo);
pub(super) const VERSITYGW: System = System::S3(Server::VersityGw);

/// Returns the error code of an answer; empty for a success, and for an error that has only a
/// status.
pub(super) fn error(answer: &Value) -> &str {
    answer["body"].as_str().filter(|_| answer["code"].as_u64() >= Some(300)).unwrap_or_default()
}

/// Returns true if the two sides answered with these codes; `""` means success.
pub(super) fn is_pair(exchange: &Exchange, simulated: &str, real: &str) -> bool {
    let is = |answer: &Value, code: &str| match code {
        "" => answer["code"].as_u64() < Some(300),
        code => error(answer) == code,
    };
    is(&exchange.answers.simulated, simulated) && is(&exchange.answers.real, real)
}

/// Returns the last segment of a leaf's path.
pub(super) fn field(leaf: &Leaf) -> &str {
    leaf.path.rsplit('.').next().unwrap_or_default()
}

/// Returns true if the operation copies an object onto itself.
pub(super) fn is_copy_onto_itself(operation: &str) -> bool {
    let copied = operation.strip_prefix("PUT /").and_then(|rest| rest.split_once(" x-amz-copy-source: /"));
    let Some((to, from)) = copied else { return false };
    let Some((bucket, key)) = to.split_once('/') else { return false };
    from.split([' ', '?']).next() == Some(&format!("{bucket}/{}", encoded(key, "/")))
}

/// Returns true if an earlier operation contains this text.
pub(super) fn comes_after(exchange: &Exchange, what: &str) -> bool {
    exchange.after.iter().any(|operation| operation.contains(what))
}

/// Returns true if the leaf is part of a refusal: the status, the error code, or what a successful
/// answer has instead.
pub(super) fn is_of_refusal(leaf: &Leaf) -> bool {
    leaf.path == "code" || leaf.path == "body" || leaf.path.starts_with("headers.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_onto_itself_is_known_as_such() {
        assert!(is_copy_onto_itself("PUT /$(place)-a/k x-amz-copy-source: /$(place)-a/k?versionId=1 a: b"));
        assert!(!is_copy_onto_itself("PUT /$(place)-a/k x-amz-copy-source: /$(place)-a/l"));
        assert!(!is_copy_onto_itself("PUT /$(place)-a/k"));
        assert!(is_copy_onto_itself("PUT /$(place)-a/e f+% x-amz-copy-source: /$(place)-a/e%20f%2B%25 a: b"));
    }
}
