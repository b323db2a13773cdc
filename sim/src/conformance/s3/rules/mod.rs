//! What is known to differ from real stores, and why that is as well. A rule names the stores that it is about: what one
//! of them does excuses no other.

mod both;
mod minio;
mod versitygw;

use serde_json::Value;

use super::super::difference::{Exchange, Leaf};
use super::super::rules::{Rule, System};
use super::server::Server;

const MINIO: System = System::S3(Server::MinIo);
const VERSITYGW: System = System::S3(Server::VersityGw);

/// Every known difference.
pub(in crate::conformance) fn all() -> impl Iterator<Item = &'static Rule> {
    both::RULES.iter().chain(minio::RULES).chain(versitygw::RULES)
}

/// The code of the error that an answer is; empty for one that is none, or none that says more than its status.
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
    let to = operation.strip_prefix("PUT ").and_then(|rest| rest.split(' ').next());
    let from = operation.split_once("x-amz-copy-source: ").and_then(|(_, rest)| rest.split([' ', '?']).next());
    to.is_some() && to == from
}

/// Whether this stands in an operation before it.
fn comes_after(exchange: &Exchange, what: &str) -> bool {
    exchange.after.iter().any(|operation| operation.contains(what))
}
