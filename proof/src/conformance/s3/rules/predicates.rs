//! What rules ask of an operation and of the two answers to it.

use serde_json::Value;

use super::super::super::difference::{Exchange, Leaf};
use super::super::super::rule::System;
use super::super::server::Server;
use super::super::sign::encoded;

pub(super) const MINIO: System = System::S3(Server::MinIo);
pub(super) const VERSITYGW: System = System::S3(Server::VersityGw);

/// The code of the error that an answer is; empty for one that is none, or none that says more than
/// its status.
pub(super) fn error(answer: &Value) -> &str {
    answer["body"].as_str().filter(|_| answer["code"].as_u64() >= Some(300)).unwrap_or_default()
}

/// Whether the two sides answered with these codes; `""` stands for a success.
pub(super) fn is_pair(exchange: &Exchange, simulated: &str, real: &str) -> bool {
    let is = |answer: &Value, code: &str| match code {
        "" => answer["code"].as_u64() < Some(300),
        code => error(answer) == code,
    };
    is(&exchange.answers.simulated, simulated) && is(&exchange.answers.real, real)
}

/// The last step of a place's path.
pub(super) fn field(leaf: &Leaf) -> &str {
    leaf.path.rsplit('.').next().unwrap_or_default()
}

/// Whether it is a copy of an object onto itself.
pub(super) fn is_copy_onto_itself(operation: &str) -> bool {
    let copied = operation.strip_prefix("PUT /").and_then(|rest| rest.split_once(" x-amz-copy-source: /"));
    let Some((to, from)) = copied else { return false };
    let Some((bucket, key)) = to.split_once('/') else { return false };
    from.split([' ', '?']).next() == Some(&format!("{bucket}/{}", encoded(key, "/")))
}

/// Whether this stands in an operation before it.
pub(super) fn comes_after(exchange: &Exchange, what: &str) -> bool {
    exchange.after.iter().any(|operation| operation.contains(what))
}

/// Whether the place is where an error shows: in its status, in its code, and in what an answer
/// that is none would have.
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
