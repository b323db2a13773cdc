//! Webhooks as they are configured.

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

/// How long a webhook has that says nothing else, in seconds.
const TIMEOUT: u64 = 10;

/// What webhooks are asked for.
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

    /// The sort that the configurations of this plural are of.
    pub(super) fn of(plural: &str) -> Option<Self> {
        [Self::Mutating, Self::Validating].into_iter().find(|sort| sort.plural() == plural)
    }
}

/// What becomes of a request whose webhook can't be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OnFailure {
    Fail,
    Ignore,
}

/// Whether other versions of a resource than the one of the request count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Versions {
    Exact,
    Equivalent,
}

/// The form of reviews.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReviewVersion {
    V1,
    V1Beta1,
}

/// One webhook.
#[derive(Clone, Debug)]
pub(super) struct Hook {
    /// Its name and that of its configuration, and all that it says of itself: an answer counts as
    /// long as that stays as it is.
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
    /// Whether a dry run may ask it.
    pub(super) is_harmless: bool,
    /// `None` where it takes none that there is.
    pub(super) review_version: Option<ReviewVersion>,
    pub(super) client: WebhookClientConfig,
}

impl Hook {
    /// Where it is, with the seconds that it has in the query; `None` where it says neither or
    /// both.
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

/// A URL with a path at its end.
fn with_path(url: &str) -> String {
    let after_scheme = url.split_once("://").map_or(url, |(_, rest)| rest);
    if after_scheme.contains('/') { url.to_owned() } else { format!("{url}/") }
}

/// Whether anything is configured of a sort.
pub(super) fn are_any(state: &Tables, sort: Sort) -> bool {
    let kind = state.kind(GROUP, VERSION, sort.plural());
    kind.is_some_and(|kind| state.objects(&kind).next().is_some())
}

/// All webhooks of a sort, in the order in which they are asked. What can't be read was stored
/// before it was checked, and is passed over.
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

/// Reads one webhook of a configuration.
///
/// # Errors
/// What is wrong with its form.
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

/// A rule as policies have them.
fn rule(rule: RuleWithOperations) -> NamedRuleWithOperations {
    let RuleWithOperations { api_groups, api_versions, operations, resources, scope } = rule;
    NamedRuleWithOperations { api_groups, api_versions, operations, resource_names: None, resources, scope }
}
