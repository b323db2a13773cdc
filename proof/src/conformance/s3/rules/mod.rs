//! Known and justified differences from real stores. A rule names the stores that it is about; a
//! difference of one store excuses no other.

mod both;
mod minio;
mod predicates;
mod versitygw;

use super::super::rule::Rule;

/// Returns every known difference.
pub(in crate::conformance) fn all() -> impl Iterator<Item = &'static Rule> {
    both::RULES.iter().chain(minio::RULES).chain(versitygw::RULES)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::super::difference::{AnswerPair, Exchange, leaves};
    use super::super::super::rule::{Consequence, System};
    use super::super::super::rules::{Sorted, sort};
    use super::super::server::Server;

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
}
