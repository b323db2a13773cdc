//! Operations from the table of valid and invalid objects.

use std::sync::LazyLock;

use serde_json::Value;

use super::bodies;
use super::call::{Call, Kind, Operation, Verb};
use crate::objects::{self, Case, SecondWrite};

/// Number of cases per sequence.
const TOGETHER: usize = 10;

/// Cases of the kinds that sequences use, read once per process.
static CASES: LazyLock<Vec<(Kind, Case)>> = LazyLock::new(|| {
    let cases = objects::cases().into_iter().filter_map(|case| match case.kind {
        objects::Kind::BucketClaim => Some((Kind::BucketClaim, case)),
        objects::Kind::S3Backend => Some((Kind::S3Backend, case)),
        objects::Kind::BucketAccess => None,
    });
    cases.collect()
});

/// Returns the number of sequences that the table gives.
pub(super) fn len() -> usize {
    CASES.len().div_ceil(TOGETHER)
}

/// Returns the requests of some cases, each with its own object.
pub(super) fn sequence(index: usize) -> Vec<Operation> {
    let cases = CASES.iter().enumerate().skip(index * TOGETHER).take(TOGETHER);
    cases.flat_map(|(number, (kind, case))| requests(number, *kind, case)).collect()
}

fn requests(number: usize, kind: Kind, case: &Case) -> Vec<Operation> {
    let stated = case.create["metadata"]["name"].as_str();
    let name = stated.map_or_else(|| bodies::name(kind, &format!("case-{number}")), str::to_owned);
    let validation = case.field_validation.as_str();
    let whole = |object: &Value| whole(kind, &name, object);
    let call = |verb: Verb, target: Option<&str>| Call::new(verb, kind, target);
    let mut requests =
        vec![call(Verb::Post, None).query("fieldValidation", validation).body(whole(&case.create)).into()];
    if case.deleting {
        requests.push(call(Verb::Delete, Some(&name)).into());
    }
    match &case.then {
        SecondWrite::Nothing => {}
        SecondWrite::MergePatch(patch) => {
            let format = Verb::Patch("application/merge-patch+json");
            requests.push(call(format, Some(&name)).query("fieldValidation", validation).body(patch.clone()).into());
        }
        SecondWrite::Put(object) => {
            let mut object = whole(object);
            object["metadata"]["resourceVersion"] = format!("$(version {}/{name})", kind.plural()).into();
            requests.push(call(Verb::Put, Some(&name)).query("fieldValidation", validation).body(object).into());
        }
    }
    requests.push(call(Verb::Get, Some(&name)).into());
    requests
}

/// Returns the object of a case with the fields that the table leaves out.
fn whole(kind: Kind, name: &str, object: &Value) -> Value {
    let mut object = object.clone();
    let defaults = [("apiVersion", Value::from(kind.api_version())), ("kind", kind.as_str().into())];
    for (field, value) in defaults {
        if object[field].is_null() {
            object[field] = value;
        }
    }
    if object["metadata"]["name"].is_null() {
        object["metadata"]["name"] = name.into();
    }
    object
}
