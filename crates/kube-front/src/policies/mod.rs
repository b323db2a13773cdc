//! ValidatingAdmissionPolicies (`admissionregistration.k8s.io/v1`): validate writes through a
//! front, as the API server's plugin does
//! (`k8s.io/apiserver/pkg/admission/plugin/policy/validating`).
//!
//! [`matching`] selects the requests of a policy, [`params`] finds its parameters, [`expressions`]
//! evaluates it. The server's own writes, and writes through `Cluster`'s methods, are not
//! validated. Not modelled: `authorizer`, audit annotations, CEL's type checker and cost budget. A
//! policy applies at once, while a server takes a moment to observe it.

mod expressions;
mod matching;
mod params;

use k8s_openapi::api::admissionregistration::v1::{
    MatchCondition, ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
};
use kube::core::response::StatusCause;
use kube_sim::kind::Kind;
use kube_sim::meta;
use kube_sim::status::{self, Failure, FieldError};
use kube_sim::store::{Place, Tables};
use serde::Deserialize as _;
use serde::de::DeserializeOwned;
use serde_json::Value;

use self::expressions::{Evaluation, Program};
pub(crate) use self::matching::{in_selected, names, selects};
use crate::asked::{Asked, GROUP, VERSION};

const POLICIES: &str = "validatingadmissionpolicies";
const BINDINGS: &str = "validatingadmissionpolicybindings";

/// A failed validation of a policy, for one of its bindings.
struct Verdict<'a> {
    policy: &'a str,
    binding: &'a str,
    message: String,
    /// The reason of the refusal; `Invalid` unless the policy sets another one.
    reason: Option<String>,
    actions: &'a [String],
}

/// Validates a write by all policies. Returns the warnings of bindings that only warn.
///
/// # Errors
/// Returns the refusal of the first policy, by name, that denies the write.
pub(crate) fn admit(state: &Tables, asked: &Asked<'_>) -> Result<Vec<String>, Failure> {
    let policies = all::<ValidatingAdmissionPolicy>(state, POLICIES);
    // Policies and webhook configurations are exempt, or nobody could repair a broken one.
    if policies.is_empty() || asked.kind.group == GROUP {
        return Ok(Vec::new());
    }
    let bindings = all::<ValidatingAdmissionPolicyBinding>(state, BINDINGS);
    let mut warnings = Vec::new();
    for policy in &policies {
        for verdict in verdicts(state, policy, &bindings, asked) {
            let has = |action: &str| verdict.actions.iter().any(|one| one == action);
            if has("Deny") {
                return Err(refusal(asked, &verdict));
            }
            if has("Warn") {
                let Verdict { policy, binding, message, .. } = &verdict;
                warnings.push(format!(
                    "Validation failed for ValidatingAdmissionPolicy '{policy}' with binding '{binding}': {message}"
                ));
            }
        }
    }
    Ok(warnings)
}

/// Returns the objects of a kind that can be decoded. Others are refused when they are written.
fn all<K: DeserializeOwned>(state: &Tables, plural: &str) -> Vec<K> {
    let Some(kind) = state.kind(GROUP, VERSION, plural) else { return Vec::new() };
    state.objects(&kind).filter_map(|(_, object)| K::deserialize(object.tree().as_ref()).ok()).collect()
}

fn verdicts<'a>(
    state: &Tables,
    policy: &'a ValidatingAdmissionPolicy,
    bindings: &'a [ValidatingAdmissionPolicyBinding],
    asked: &Asked<'_>,
) -> Vec<Verdict<'a>> {
    let Some(spec) = &policy.spec else { return Vec::new() };
    let name = policy.metadata.name.as_deref().unwrap_or_default();
    let namespace = namespace_of(state, asked);
    let is_about = |constraints: Option<_>| matching::matches(constraints, asked, namespace.as_ref());
    if !spec.match_constraints.as_ref().is_some_and(|constraints| is_about(Some(constraints))) {
        return Vec::new();
    }
    // A request that can't be evaluated is refused, unless the failure policy is `Ignore`.
    let is_open = spec.failure_policy.as_deref() == Some("Ignore");
    let mut verdicts = Vec::new();
    for binding in bindings {
        let Some(bound) = &binding.spec else { continue };
        let is_bound = bound.policy_name.as_deref() == Some(name);
        if !is_bound || !bound.match_resources.as_ref().is_none_or(|resources| is_about(Some(resources))) {
            continue;
        }
        let actions = bound.validation_actions.as_deref().unwrap_or_default();
        let binding = binding.metadata.name.as_deref().unwrap_or_default();
        let say = |message, reason| Verdict { policy: name, binding, message, reason, actions };
        let params = match params::of(state, spec.param_kind.as_ref(), bound.param_ref.as_ref(), asked.namespace()) {
            Ok(params) => params,
            Err(_) if is_open => continue,
            Err(why) => {
                verdicts.push(say(format!("failed to configure binding: {why}"), None));
                continue;
            }
        };
        let request = asked.request(&asked.kind.version, &asked.kind.version);
        for params in params {
            let evaluation = Evaluation::new(asked, &request, params.as_ref(), namespace.as_ref());
            let failed = evaluation.failures(spec);
            verdicts.extend(
                failed
                    .into_iter()
                    .filter(|failure| !(failure.is_error && is_open))
                    .map(|failure| say(failure.message, failure.reason)),
            );
        }
    }
    verdicts
}

/// Returns true if all of these conditions are true for a request.
///
/// # Errors
/// Returns the message of a condition that can't be evaluated, unless another one is false.
pub(crate) fn conditions(
    asked: &Asked<'_>,
    request: &Value,
    namespace: Option<&Value>,
    conditions: &[MatchCondition],
) -> Result<bool, String> {
    if conditions.is_empty() {
        return Ok(true);
    }
    Evaluation::new(asked, request, None, namespace).conditions(conditions)
}

/// Returns the namespace of the object, or the object if it is a namespace.
pub(crate) fn namespace_of(state: &Tables, asked: &Asked<'_>) -> Option<Value> {
    let namespaces = state.kind("", "v1", "namespaces")?;
    if asked.kind.key() == namespaces.key() {
        return Some(asked.about().clone());
    }
    let found = state.get(&namespaces, &Place::new("", asked.namespace()));
    found.filter(|_| asked.kind.is_namespaced()).map(|found| found.tree().as_ref().clone())
}

fn refusal(asked: &Asked<'_>, verdict: &Verdict<'_>) -> Failure {
    let Verdict { policy, binding, message, .. } = verdict;
    let message = format!("ValidatingAdmissionPolicy '{policy}' with binding '{binding}' denied request: {message}");
    let mut status = status::forbidden(asked.kind, meta::name(asked.about()), &message);
    let reason = verdict.reason.as_deref().unwrap_or("Invalid");
    (status.reason, status.code) = (reason.to_owned(), code_of(reason));
    if let Some(details) = &mut status.details {
        details.causes.push(StatusCause { reason: String::new(), message, field: String::new() });
    }
    status
}

/// Like `reasonToCode` of the plugin.
fn code_of(reason: &str) -> u16 {
    match reason {
        "Forbidden" => 403,
        "Unauthorized" => 401,
        "RequestEntityTooLarge" => 413,
        _ => 422,
    }
}

/// Adds the errors of a policy or a binding that is to be stored: its form, or an expression that
/// doesn't compile.
pub(crate) fn check(kind: &Kind, object: &Value, out: &mut Vec<FieldError>) {
    if kind.group != GROUP {
        return;
    }
    let malformed = |error: serde_json::Error| FieldError::invalid("spec", Value::Null, error.to_string());
    match kind.plural.as_str() {
        POLICIES => match ValidatingAdmissionPolicy::deserialize(object) {
            Ok(policy) => check_expressions(&policy, out),
            Err(error) => out.push(malformed(error)),
        },
        BINDINGS => {
            out.extend(serde_json::from_value::<ValidatingAdmissionPolicyBinding>(object.clone()).err().map(malformed));
        }
        _ => {}
    }
}

fn check_expressions(policy: &ValidatingAdmissionPolicy, out: &mut Vec<FieldError>) {
    let Some(spec) = &policy.spec else { return };
    let mut check = |path: String, text: &str| check_expression(&path, text, out);
    for (index, condition) in spec.match_conditions.iter().flatten().enumerate() {
        check(format!("spec.matchConditions[{index}].expression"), &condition.expression);
    }
    for (index, variable) in spec.variables.iter().flatten().enumerate() {
        check(format!("spec.variables[{index}].expression"), &variable.expression);
    }
    for (index, validation) in spec.validations.iter().flatten().enumerate() {
        check(format!("spec.validations[{index}].expression"), &validation.expression);
        if let Some(message) = &validation.message_expression {
            check(format!("spec.validations[{index}].messageExpression"), message);
        }
    }
}

/// Adds the error of an expression that doesn't compile.
pub(crate) fn check_expression(path: &str, text: &str, out: &mut Vec<FieldError>) {
    if let Err(why) = Program::compile(text) {
        out.push(FieldError::invalid(path, text, format!("compilation failed: {why}")));
    }
}
