//! Faults of calls to the Kubernetes API, and the answers to them.
//!
//! Every part of an answer that clients read is byte for byte what an API server sends.

use std::time::Duration;

use serde_json::{Value, json};

use crate::answer::Answered;
use crate::call::{Call, KubeCall, KubeVerb};
use crate::row::{Application, Calls, Lasts, Parameter, Refusal, Row, Vocabulary};
use crate::words;

/// Time that the API server waits for an admission webhook.
const WEBHOOK_TIMEOUT: Duration = Duration::from_secs(10);

/// A fault of the Kubernetes API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KubeFault {
    /// A Kubernetes write is refused because another client wrote first: 409, reason `Conflict`,
    /// not carried out.
    Conflict,
    /// The name of a create was taken by another object just before: 409, reason `AlreadyExists`.
    AlreadyExists(Rival),
    /// A Kubernetes write is answered with 500, reason `InternalError`.
    ServerError(Applied),
    /// A Kubernetes write is answered with 429 and a `Retry-After`, not carried out.
    Throttle {
        /// Seconds in `Retry-After`.
        seconds: u32,
    },
    /// A Kubernetes write is refused by RBAC: 403, reason `Forbidden`.
    Forbidden,
    /// A Kubernetes write is refused by an admission webhook without a code: 400, the API server's
    /// default.
    Denied,
    /// An admission webhook doesn't answer: after ten seconds 500, reason `InternalError`, not
    /// carried out.
    WebhookTimeout,
    /// A create is refused because a ResourceQuota is exceeded: 403, reason `Forbidden`.
    QuotaExceeded,
    /// A create is refused because its namespace is terminating: 403 with the cause
    /// `NamespaceTerminating`.
    NamespaceTerminating,
    /// A GET or LIST returns the state of the kind this many changes ago, including the client's
    /// own writes, with the resourceVersion of that time. A watch sends each event once this many
    /// further changes of its kind are stored, or after five seconds.
    Stale {
        /// Number of changes by which the answer is stale.
        changes: u32,
    },
    /// A LIST returns the state of the kind half of its history ago, with the resourceVersion of
    /// that time.
    Rewind,
    /// A watch collects changes for five seconds and sends one event per object: an object that was
    /// added and deleted in that time is never seen, and one that was deleted and created again
    /// appears as modified.
    Collapse,
    /// A watch ends instead of sending its first event.
    WatchCut,
    /// A watch begins with 410, because its resourceVersion is too old.
    WatchGone,
    /// A watch sends no events and never ends; only the caller's own deadline ends it.
    WatchSilent,
    /// A watch sends each event twice.
    WatchDuplicate,
    /// A LIST is answered with 410, reason `Expired`, as if its continue token were too old.
    ExpiredContinue,
    /// A LIST returns its items in reverse order.
    Shuffle,
    /// From this write on the cluster's own controllers (garbage collector, namespace controller)
    /// do nothing for a minute.
    GcLate,
}

words! {
    /// Effect of a request that is answered with an error.
    Applied {
        /// The request was carried out nevertheless.
        Applied = "applied",
        /// The request was not carried out.
        Not = "not",
    }
}

words! {
    /// Object that has taken a name.
    Rival {
        /// A stranger's object with other content and without labels.
        Foreign = "foreign",
        /// The object of the request itself, as if an earlier attempt had succeeded.
        Own = "own",
    }
}

const WRITES: Calls =
    Calls::kube(KubeVerb::is_write, "Kubernetes writes (create, update, patch, delete, deletecollection)");
const CREATES: Calls = Calls::kube(|verb| verb == KubeVerb::Create, "Kubernetes creates");
const MAY_CREATE: Calls = Calls::kube(KubeVerb::may_create, "Kubernetes writes that may create (create, patch)");
const READS: Calls = Calls::kube(|verb| !verb.is_write(), "Kubernetes reads (get, list, watch)");
const LISTS: Calls = Calls::kube(|verb| verb == KubeVerb::List, "Kubernetes lists");
const WATCHES: Calls = Calls::kube(|verb| verb == KubeVerb::Watch, "Kubernetes watches");

const REFUSED: Application = Application::Answer(Refusal::AtOnce);

impl Vocabulary for KubeFault {
    fn all() -> Vec<Self> {
        let mut all = vec![Self::Conflict];
        all.extend(Rival::ALL.map(Self::AlreadyExists));
        all.extend(Applied::ALL.map(Self::ServerError));
        all.push(Self::Throttle { seconds: 3 });
        all.extend([Self::Forbidden, Self::Denied, Self::WebhookTimeout, Self::QuotaExceeded]);
        all.extend([Self::NamespaceTerminating, Self::Stale { changes: 1 }, Self::Stale { changes: 5 }]);
        all.extend([Self::Rewind, Self::Collapse, Self::WatchCut, Self::WatchGone, Self::WatchSilent]);
        all.extend([Self::WatchDuplicate, Self::ExpiredContinue, Self::Shuffle, Self::GcLate]);
        all
    }

    fn row(self) -> Row<Self> {
        match self {
            Self::Conflict => Row::new("conflict", WRITES, REFUSED),
            Self::AlreadyExists(rival) => {
                Row::new("already-exists", CREATES, Application::World).with(Parameter::Word(rival.word()))
            }
            Self::ServerError(applied) => {
                let refusal = match applied {
                    Applied::Applied => Refusal::CarriedOut,
                    Applied::Not => Refusal::AtOnce,
                };
                Row::new("server-error", WRITES, Application::Answer(refusal)).with(Parameter::Word(applied.word()))
            }
            Self::Throttle { seconds } => Row::new("throttle", WRITES, REFUSED)
                .with(Parameter::Seconds { seconds, with: |seconds| Self::Throttle { seconds } }),
            Self::Forbidden => Row::new("forbidden", WRITES, REFUSED),
            Self::Denied => Row::new("denied", WRITES, REFUSED),
            Self::WebhookTimeout => {
                Row::new("webhook-timeout", WRITES, Application::Answer(Refusal::After(WEBHOOK_TIMEOUT)))
            }
            Self::QuotaExceeded => Row::new("quota-exceeded", MAY_CREATE, REFUSED),
            Self::NamespaceTerminating => Row::new("namespace-terminating", MAY_CREATE, REFUSED),
            Self::Stale { changes } => Row::new("stale", READS, Application::World)
                .with(Parameter::Count { count: changes, with: |changes| Self::Stale { changes } })
                .lasting(Lasts::Beyond),
            Self::Rewind => Row::new("rewind", LISTS, Application::World),
            Self::Collapse => Row::new("collapse", WATCHES, Application::World).lasting(Lasts::Beyond),
            Self::WatchCut => Row::new("watch-cut", WATCHES, Application::World),
            Self::WatchGone => Row::new("watch-gone", WATCHES, Application::World),
            Self::WatchSilent => Row::new("watch-silent", WATCHES, Application::World).lasting(Lasts::Beyond),
            Self::WatchDuplicate => Row::new("watch-duplicate", WATCHES, Application::World).lasting(Lasts::Beyond),
            Self::ExpiredContinue => Row::new("expired-continue", LISTS, REFUSED),
            Self::Shuffle => Row::new("shuffle", LISTS, Application::World),
            Self::GcLate => Row::new("gc-late", WRITES, Application::World).lasting(Lasts::Beyond),
        }
    }

    fn answer(self, call: &Call) -> Option<Answered> {
        match call {
            Call::Kube(call) => refusal(self, call).map(|refusal| answer(&refusal, call)),
            Call::S3(_) => None,
        }
    }
}

/// Answer of a fault to a Kubernetes client.
struct Refused {
    code: u16,
    reason: &'static str,
    message: String,
    retry_after: Option<u32>,
    causes: Value,
}

impl Refused {
    fn new(code: u16, reason: &'static str, message: String) -> Self {
        Self { code, reason, message, retry_after: None, causes: Value::Null }
    }
}

/// Returns the answer of a fault that refuses; `None` for other faults.
fn refusal(fault: KubeFault, call: &KubeCall) -> Option<Refused> {
    let object = format!("{} \"{}\"", call.qualified_resource(), call.name.as_deref().unwrap_or_default());
    let namespace = call.namespace.as_deref().unwrap_or_default();
    Some(match fault {
        KubeFault::Conflict => Refused::new(409, "Conflict", conflict_message(call, &object)),
        KubeFault::ServerError(_) => {
            Refused::new(500, "InternalError", "Internal error occurred: etcdserver: request timed out".to_owned())
        }
        KubeFault::Throttle { seconds } => Refused {
            retry_after: Some(seconds),
            ..Refused::new(
                429,
                "TooManyRequests",
                "The apiserver is currently overloaded, please try again later".to_owned(),
            )
        },
        KubeFault::Forbidden => Refused::new(403, "Forbidden", forbidden_message(call, &object)),
        KubeFault::Denied => Refused::new(
            400,
            "",
            "admission webhook \"policy.example.org\" denied the request: refused by policy".to_owned(),
        ),
        KubeFault::QuotaExceeded => Refused::new(
            403,
            "Forbidden",
            format!(
                "{object} is forbidden: exceeded quota: objects, requested: count/{0}=1, used: count/{0}=10, limited: count/{0}=10",
                call.qualified_resource()
            ),
        ),
        KubeFault::NamespaceTerminating => Refused {
            causes: json!([{
                "reason": "NamespaceTerminating",
                "message": format!("namespace {namespace} is being terminated"),
                "field": "metadata.namespace",
            }]),
            ..Refused::new(
                403,
                "Forbidden",
                format!(
                    "{object} is forbidden: unable to create new content in namespace {namespace} because it is being terminated"
                ),
            )
        },
        KubeFault::WebhookTimeout => Refused::new(
            500,
            "InternalError",
            "Internal error occurred: failed calling webhook \"policy.example.org\": failed to call webhook: Post \"https://policy.example.svc:443/validate?timeout=10s\": context deadline exceeded".to_owned(),
        ),
        KubeFault::ExpiredContinue => Refused::new(
            410,
            "Expired",
            "The provided continue parameter is too old to display a consistent list result. You must start a new list without the continue parameter.".to_owned(),
        ),
        _ => return None,
    })
}

/// Returns the message of a conflict. A create has no resourceVersion that could conflict; for it,
/// the conflict is in the accounting of the namespace's quota.
fn conflict_message(call: &KubeCall, object: &str) -> String {
    let object = match call.verb {
        KubeVerb::Create => "resourcequotas \"objects\"",
        _ => object,
    };
    format!(
        "Operation cannot be fulfilled on {object}: the object has been modified; please apply your changes to the latest version and try again"
    )
}

fn forbidden_message(call: &KubeCall, object: &str) -> String {
    let resource = match &call.subresource {
        Some(subresource) => format!("{}/{subresource}", call.resource),
        None => call.resource.clone(),
    };
    let scope = match &call.namespace {
        Some(namespace) => format!("in the namespace \"{namespace}\""),
        None => "at the cluster scope".to_owned(),
    };
    format!(
        "{object} is forbidden: User \"operator\" cannot {} resource \"{resource}\" in API group \"{}\" {scope}",
        call.verb, call.group
    )
}

fn answer(refusal: &Refused, call: &KubeCall) -> Answered {
    let mut details = json!({ "kind": call.resource });
    if let Some(name) = &call.name {
        details["name"] = json!(name);
    }
    if !call.group.is_empty() {
        details["group"] = json!(call.group);
    }
    if !refusal.causes.is_null() {
        details["causes"] = refusal.causes.clone();
    }
    if let Some(seconds) = refusal.retry_after {
        details["retryAfterSeconds"] = json!(seconds);
    }
    let mut status = json!({
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": refusal.message,
        "details": details,
        "code": refusal.code,
    });
    if !refusal.reason.is_empty() {
        status["reason"] = json!(refusal.reason);
    }
    let answer = Answered::new(refusal.code, "application/json", status.to_string());
    match refusal.retry_after {
        Some(seconds) => answer.retry_after(seconds),
        None => answer,
    }
}
