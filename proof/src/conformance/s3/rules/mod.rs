//! What is known to differ from real stores, and why that is as well. A rule names the stores that
//! it is about: what one of them does excuses no other.

mod both;
mod minio;
mod versitygw;

use serde_json::Value;

use super::super::difference::{Exchange, Leaf};
use super::super::rules::{Rule, System};
use super::server::Server;
use super::sign::encoded;

const MINIO: System = System::S3(Server::MinIo);
const VERSITYGW: System = System::S3(Server::VersityGw);

/// Every known difference.
pub(in crate::conformance) fn all() -> impl Iterator<Item = &'static Rule> {
    both::RULES.iter().chain(minio::RULES).chain(versitygw::RULES)
}

/// The code of the error that an answer is; empty for one that is none, or none that says more than
/// its status.
fn error(answer: &Value) -> &str {
    answer["body"].as_str().filter(|_| answer["code"].as_u64() >= Some(300)).unwrap_or_default()
}

/// Whether the two sides answered with these codes; `""` stands for a success.
fn is_pair(exchange: &Exchange, simulated: &str, real: &str) -> bool {
    let is = |answer: &Value, code: &str| match code {
        "" => answer["code"].as_u64() < Some(300),
        code => error(answer) == code,
    };
    is(&exchange.answers.simulated, simulated) && is(&exchange.answers.real, real)
}

/// The last step of a place's path.
fn field(leaf: &Leaf) -> &str {
    leaf.path.rsplit('.').next().unwrap_or_default()
}

/// Whether it is a copy of an object onto itself.
fn is_copy_onto_itself(operation: &str) -> bool {
    let copied = operation.strip_prefix("PUT /").and_then(|rest| rest.split_once(" x-amz-copy-source: /"));
    let Some((to, from)) = copied else { return false };
    let Some((bucket, key)) = to.split_once('/') else { return false };
    from.split([' ', '?']).next() == Some(&format!("{bucket}/{}", encoded(key, "/")))
}

/// Whether this stands in an operation before it.
fn comes_after(exchange: &Exchange, what: &str) -> bool {
    exchange.after.iter().any(|operation| operation.contains(what))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::super::difference::{AnswerPair, leaves};
    use super::super::super::rules::{Consequence, Sorted, sort};
    use super::*;

    fn sorted(server: Server, operation: &str, after: &[&str], simulated: Value, real: Value) -> Sorted {
        let found = leaves(&simulated, &real);
        let after = after.iter().map(|operation| (*operation).to_owned()).collect();
        let exchange = Exchange { operation: operation.to_owned(), after, answers: AnswerPair { simulated, real } };
        sort(System::S3(server), &exchange, found)
    }

    fn refusal(code: u16, error: &str) -> Value {
        json!({"code": code, "headers": {}, "body": error})
    }

    #[test]
    fn what_one_store_does_excuses_no_other() {
        let sort = |server| {
            let (simulated, real) = (refusal(404, "NoSuchBucket"), refusal(404, "NoSuchTagSet"));
            sorted(server, "GET /$(place)-a?tagging", &[], simulated, real)
        };
        let known = sort(Server::MinIo);
        assert_eq!((known.explained, known.then), (vec!["settings of a missing bucket"], Consequence::Ends));
        assert_eq!(sort(Server::VersityGw).rest.len(), 1);
        assert_eq!(sort(Server::Other).rest.len(), 1);
    }

    #[test]
    fn a_code_that_says_something_is_no_matter_of_taste() {
        let rest = |simulated: Value, real: Value| sorted(Server::MinIo, "PUT /b", &[], simulated, real).rest.len();
        assert_eq!(rest(refusal(400, "InvalidTag"), refusal(400, "MalformedXML")), 0);
        assert_eq!(rest(refusal(400, "InvalidTag"), refusal(400, "InvalidPart")), 1);
        assert_eq!(rest(refusal(404, "NoSuchKey"), refusal(404, "NoSuchBucket")), 1);
        assert_eq!(rest(refusal(403, "AccessDenied"), refusal(404, "NoSuchKey")), 2);
        assert_eq!(rest(refusal(409, "BucketNotEmpty"), json!({"code": 204, "headers": {}, "body": ""})), 2);
    }

    #[test]
    fn a_bucket_that_only_seems_empty_must_have_had_a_reason() {
        let empty = json!({"code": 204, "headers": {}, "body": ""});
        let sort = |after: &[&str]| {
            sorted(Server::MinIo, "DELETE /$(place)-a", after, refusal(409, "BucketNotEmpty"), empty.clone()).rest.len()
        };
        assert_eq!(sort(&["POST /$(place)-a?delete with <Delete></Delete>"]), 0);
        assert_eq!(sort(&["PUT /$(place)-a/k"]), 2);
    }

    #[test]
    fn an_empty_page_more_is_explained_and_a_full_one_is_not() {
        let page =
            |more: &str, keys: Value| json!({"body": {"ListBucketResult": {"IsTruncated": more, "Contents": keys}}});
        let (ours, key) = (json!([page("false", json!(["k"]))]), json!(["l"]));
        let rest = |last: Value| {
            let real = json!([page("true", json!(["k"])), page("false", last)]);
            sorted(Server::VersityGw, "all pages of GET /b", &[], ours.clone(), real).rest.len()
        };
        assert_eq!(rest(Value::Null), 0);
        assert_eq!(rest(key), 1);
    }

    #[test]
    fn a_copy_onto_itself_is_known_as_such() {
        assert!(is_copy_onto_itself("PUT /$(place)-a/k x-amz-copy-source: /$(place)-a/k?versionId=1 a: b"));
        assert!(!is_copy_onto_itself("PUT /$(place)-a/k x-amz-copy-source: /$(place)-a/l"));
        assert!(!is_copy_onto_itself("PUT /$(place)-a/k"));
        assert!(is_copy_onto_itself("PUT /$(place)-a/e f+% x-amz-copy-source: /$(place)-a/e%20f%2B%25 a: b"));
    }
}
