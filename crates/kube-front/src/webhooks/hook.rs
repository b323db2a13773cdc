//! The configuration of webhooks.

use std::time::Duration;

use k8s_openapi::api::admissionregistration::v1::{
    MatchCondition, MutatingWebhook, NamedRuleWithOperations, RuleWithOperations, ValidatingWebhook,
    WebhookClientConfig,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube_sim::meta;
use kube_sim::store::Tables;
use serde::Deserialize as _;
use serde_json::Value;

use super::call::Place;
use crate::asked::{GROUP, VERSION};

/// Default timeout of a webhook, in seconds.
const TIMEOUT: u64 = 10;

/// The type of a webhook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sort {
    Mutating,
    Validating,
}

impl Sort {
    fn plural(self) -> &'static str {
        match self {
            Self::Mutating => "mutatingwebhookconfigurations",
            Self::Validating => "validatingwebhookconfigurations",
        }
    }

    /// Returns the type for the plural name of its configurations.
    pub(super) fn of(plural: &str) -> Option<Self> {
        [Self::Mutating, Self::Validating].into_iter().find(|sort| sort.plural() == plural)
    }
}

/// The handling of a request whose webhook can't be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OnFailure {
    Fail,
    Ignore,
}

/// The match policy: whether rules also match equivalent versions of the request's resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Versions {
    Exact,
    Equivalent,
}

/// The version of reviews.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReviewVersion {
    V1,
    V1Beta1,
}

/// One webhook.
#[derive(Clone, Debug)]
pub(super) struct Hook {
    /// Name of the webhook, and its whole configuration with the name of that. An answer is valid
    /// only while this value doesn't change.
    pub(super) identity: String,
    pub(super) sort: Sort,
    pub(super) name: String,
    pub(super) rules: Vec<NamedRuleWithOperations>,
    pub(super) namespace_selector: Option<LabelSelector>,
    pub(super) object_selector: Option<LabelSelector>,
    pub(super) conditions: Vec<MatchCondition>,
    pub(super) versions: Versions,
    pub(super) on_failure: OnFailure,
    pub(super) timeout: Duration,
    /// True if a dry run may call it.
    pub(super) is_harmless: bool,
    /// `None` if the webhook accepts no known version.
    pub(super) review_version: Option<ReviewVersion>,
    pub(super) client: WebhookClientConfig,
}

impl Hook {
    /// Returns the URL, with the timeout in seconds in the query; `None` if the configuration has
    /// neither a URL nor a Service, or both.
    pub(super) fn url(&self, timeout: Duration) -> Option<(String, Place)> {
        let seconds = timeout.as_secs() + u64::from(timeout.subsec_nanos() > 0);
        match (&self.client.url, &self.client.service) {
            (Some(url), None) => Some((format!("{}?timeout={seconds}s", with_path(url)), Place::Host)),
            (None, Some(service)) => {
                let (name, namespace, port) = (&service.name, &service.namespace, service.port.unwrap_or(443));
                let path = service.path.as_deref().unwrap_or("/");
                let slash = if path.starts_with('/') { "" } else { "/" };
                let url = format!("https://{name}.{namespace}.svc:{port}{slash}{path}?timeout={seconds}s");
                Some((url, Place::Service))
            }
            _ => None,
        }
    }
}

/// Adds a path to a URL that has none.
fn with_path(url: &str) -> String {
    let after_scheme = url.split_once("://").map_or(url, |(_, rest)| rest);
    if after_scheme.contains('/') { url.to_owned() } else { format!("{url}/") }
}

/// Returns true if any webhook of this type is configured.
pub(super) fn are_any(state: &Tables, sort: Sort) -> bool {
    let kind = state.kind(GROUP, VERSION, sort.plural());
    kind.is_some_and(|kind| state.objects(&kind).next().is_some())
}

/// Returns all webhooks of a type in the order of their calls. Those that can't be decoded, stored
/// before validation existed, are skipped.
pub(super) fn all(state: &Tables, sort: Sort) -> Vec<Hook> {
    let Some(kind) = state.kind(GROUP, VERSION, sort.plural()) else { return Vec::new() };
    let configurations = state.objects(&kind).map(|(_, object)| object.tree());
    configurations
        .flat_map(|object| {
            let webhooks = object["webhooks"].as_array().into_iter().flatten();
            webhooks.filter_map(|webhook| read(sort, meta::name(&object), webhook).ok()).collect::<Vec<_>>()
        })
        .collect()
}

/// Decodes one webhook of a configuration.
///
/// # Errors
/// Returns the decoding error.
pub(super) fn read(sort: Sort, configuration: &str, webhook: &Value) -> Result<Hook, serde_json::Error> {
    let own = match sort {
        Sort::Validating => ValidatingWebhook::deserialize(webhook)?,
        Sort::Mutating => {
            let own = MutatingWebhook::deserialize(webhook)?;
            ValidatingWebhook {
                admission_review_versions: own.admission_review_versions,
                client_config: own.client_config,
                failure_policy: own.failure_policy,
                match_conditions: own.match_conditions,
                match_policy: own.match_policy,
                name: own.name,
                namespace_selector: own.namespace_selector,
                object_selector: own.object_selector,
                rules: own.rules,
                side_effects: own.side_effects,
                timeout_seconds: own.timeout_seconds,
            }
        }
    };
    let ignores = own.failure_policy.as_deref() == Some("Ignore");
    let is_exact = own.match_policy.as_deref() == Some("Exact");
    let seconds = own.timeout_seconds.and_then(|seconds| u64::try_from(seconds).ok()).unwrap_or(TIMEOUT);
    let review_version = own.admission_review_versions.iter().find_map(|version| match version.as_str() {
        "v1" => Some(ReviewVersion::V1),
        "v1beta1" => Some(ReviewVersion::V1Beta1),
        _ => None,
    });
    Ok(Hook {
        identity: format!("{}/{configuration}: {webhook}", sort.plural()),
        sort,
        name: own.name,
        rules: own.rules.into_iter().flatten().map(rule).collect(),
        namespace_selector: own.namespace_selector,
        object_selector: own.object_selector,
        conditions: own.match_conditions.unwrap_or_default(),
        versions: if is_exact { Versions::Exact } else { Versions::Equivalent },
        on_failure: if ignores { OnFailure::Ignore } else { OnFailure::Fail },
        timeout: Duration::from_secs(seconds.clamp(1, 30)),
        is_harmless: matches!(own.side_effects.as_str(), "None" | "NoneOnDryRun"),
        review_version,
        client: own.client_config,
    })
}

/// Converts a rule to the type that policies use.
fn rule(rule: RuleWithOperations) -> NamedRuleWithOperations {
    let RuleWithOperations { api_groups, api_versions, operations, resources, scope } = rule;
    NamedRuleWithOperations { api_groups, api_versions, operations, resource_names: None, resources, scope }
}
