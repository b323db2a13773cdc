//! The pipeline of a request: authentication, routing and response format.

use std::sync::Arc;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full};
use kube::core::Status;
use kube::core::response::reason;
use kube_sim::Cluster;
use kube_sim::json::json_text;
use kube_sim::kind::Family;
use kube_sim::output::{self, ApiBody};
use kube_sim::route::{Query, Route};
use kube_sim::status::{self, Failure};
use serde_json::Value;

use super::accept::{self, Discovery};
use super::admission::RequestAdmission;
use super::authorize::{self, Authorizer};
use super::identity::{self, Identity};
use super::known::{Knowledge, Known};
use super::options::FrontOptions;
use super::resource::{Backing, Resource};
use super::tokens::{Issued, Tokens};
use super::webhooks::{Hearing, Next};
use super::{body, discovery, health, reviews, scale, stored};

/// The state that every request uses.
pub(super) struct Pipeline {
    cluster: Cluster,
    options: FrontOptions,
    knowledge: Knowledge,
    tokens: Tokens,
}

impl Pipeline {
    pub(super) fn new(cluster: Cluster, mut options: FrontOptions) -> Self {
        let tokens = Tokens::new(std::mem::take(&mut options.issued), options.keep_issued.clone());
        Self { cluster, options, knowledge: Knowledge::default(), tokens }
    }

    /// Returns the ServiceAccount tokens that it knows.
    pub(super) fn issued(&self) -> Vec<Issued> {
        self.tokens.all()
    }

    /// Replaces the ServiceAccount tokens that it knows.
    pub(super) fn reissue(&self, issued: Vec<Issued>) {
        self.tokens.replace(issued);
    }

    /// Answers a request after calling the webhooks that review it.
    pub(super) async fn answer(&self, head: &Parts, body: &Bytes) -> Response<ApiBody> {
        let webhooks = self.options.webhooks.as_ref().filter(|_| head.method != Method::GET);
        let Some(webhooks) = webhooks else { return self.attempt(head, body, None) };
        let hearing = Arc::new(Hearing::new(self.options.random.clone()));
        loop {
            let mut answer = self.attempt(head, body, Some(&hearing));
            match hearing.go_on(webhooks.as_ref()).await {
                Next::Again => {}
                Next::Answered(warnings) => {
                    output::warn(answer.headers_mut(), &warnings);
                    return answer;
                }
                Next::TooLate => return output::refusal(&status::too_late()),
            }
        }
    }

    /// Answers a request with the answers of webhooks known so far. If more are needed, the attempt
    /// has changed nothing and its answer is discarded.
    fn attempt(&self, head: &Parts, body: &Bytes, hearing: Option<&Arc<Hearing>>) -> Response<ApiBody> {
        let (identity, answer) = match self.caller(&head.headers) {
            Ok(identity) => {
                let mut head = head.clone();
                let admission = RequestAdmission::new(identity.user_info(), hearing.cloned());
                admission.attach(&mut head.extensions);
                let answer = self.route(&identity, &head, body);
                (Some(identity), answer)
            }
            Err(failure) => (None, Err(failure)),
        };
        let mut answer = answer.unwrap_or_else(|failure| output::refusal(&failure));
        if let Some(identity) = identity {
            answer.extensions_mut().insert(identity);
        }
        answer
    }

    /// Returns the caller of a request.
    fn caller(&self, headers: &HeaderMap) -> Result<Identity, Failure> {
        let own = match identity::bearer(headers) {
            Some(token) => self.whose(token).ok_or_else(identity::unauthorized)?,
            None => self.options.anonymous.clone().ok_or_else(identity::unauthorized)?,
        };
        let own = own.authenticated();
        match identity::impersonated(headers)? {
            None => Ok(own),
            Some(other) => self.authorizer().require_impersonation(&own, &other).map(|()| other),
        }
    }

    fn authorizer(&self) -> Authorizer<'_> {
        Authorizer { cluster: &self.cluster, authorization: self.options.authorization }
    }

    /// Returns the user of a token.
    fn whose(&self, token: &str) -> Option<Identity> {
        let issued = || self.tokens.whose(&self.cluster, token);
        self.options.tokens.get(token).cloned().or_else(issued).map(Identity::authenticated)
    }

    fn route(&self, caller: &Identity, head: &Parts, body: &Bytes) -> Result<Response<ApiBody>, Failure> {
        let path = head.uri.path();
        let query = Query::parse(head.uri.query().unwrap_or_default());
        let verbose =
            form_urlencoded::parse(head.uri.query().unwrap_or_default().as_bytes()).any(|(name, _)| name == "verbose");
        if let Some(answer) = health::answer(path, &query, verbose) {
            return Ok(answer);
        }
        if path.trim_end_matches('/') == "/version" {
            return Ok(health::version(&self.options.server_version));
        }
        let known = self.knowledge.of(&self.cluster);
        if head.method == Method::GET
            && let Some(answer) = self.document(&known, path, &query, &head.headers)
        {
            return self.authorizer().require(caller, &authorize::wanted_of_path(head)).map(|()| answer);
        }
        let Some(route) = Route::parse(path) else { return Ok(output::page_not_found()) };
        self.authorizer().require(caller, &authorize::wanted(head, &route, &query))?;
        match known.catalog.find(&route.group, &route.version, &route.plural) {
            Some(resource) => self.resource(caller, resource, &route, head, body),
            None => self.cluster.nowhere(&route),
        }
    }

    /// Answers discovery and OpenAPI requests.
    fn document(&self, known: &Known, path: &str, query: &Query, headers: &HeaderMap) -> Option<Response<ApiBody>> {
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        let catalog = &known.catalog;
        let json = |document: &Value| output::answer(StatusCode::OK, document, &[]);
        match parts.as_slice() {
            ["api"] | ["apis"] => Some(match accept::discovery(headers) {
                Discovery::Aggregated(version) => {
                    let document = discovery::aggregated(catalog, parts == ["api"], version);
                    of_type(
                        &document,
                        &format!("application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList"),
                    )
                }
                Discovery::Legacy if parts == ["api"] => json(&discovery::core_versions(catalog)),
                Discovery::Legacy => json(&discovery::groups(catalog)),
            }),
            ["api", version] => discovery::resources(catalog, "", version).as_ref().map(json),
            ["apis", group] => discovery::group(catalog, group).as_ref().map(json),
            ["apis", group, version] => discovery::resources(catalog, group, version).as_ref().map(json),
            ["openapi", "v3"] => Some(json(&known.documents(&self.options.server_version).index)),
            ["openapi", "v3", rest @ ..] => {
                let documents = known.documents(&self.options.server_version);
                let (hash, text) = documents.by_path.get(&rest.join("/"))?;
                Some(schema_document(path, query, hash, text))
            }
            _ => None,
        }
    }

    fn resource(
        &self,
        caller: &Identity,
        resource: &Resource,
        route: &Route,
        head: &Parts,
        body: &Bytes,
    ) -> Result<Response<ApiBody>, Failure> {
        let Backing::Stored(kind, face) = &resource.backing else {
            return self.review(caller, resource, &route.namespace, head, body);
        };
        match (route.subresource.as_deref(), &route.name) {
            (Some("token"), Some(name)) if kind.family == Family::ServiceAccount && head.method == Method::POST => {
                let request = body::object(head, body)?;
                let random = (self.options.random)();
                let answer = self.tokens.issue(&self.cluster, &route.namespace, name, request, &random)?;
                Ok(output::answer(StatusCode::CREATED, &answer, &[]))
            }
            (Some("scale"), Some(name)) if resource.scale.is_some() => {
                scale::answer(&self.cluster, resource, &route.namespace, name, head, body)
            }
            (Some(part), Some(_)) if kind.family == Family::Pod && RUNNING.contains(&part) => Err(nothing_runs(part)),
            _ => stored::answer(&self.cluster, resource, kind, face, head, body),
        }
    }

    fn review(
        &self,
        caller: &Identity,
        resource: &Resource,
        namespace: &str,
        head: &Parts,
        body: &Bytes,
    ) -> Result<Response<ApiBody>, Failure> {
        match &resource.backing {
            Backing::Review(review) if head.method == Method::POST => {
                let question = body::object(head, body)?;
                let known = |token: &str| self.whose(token);
                let answer = reviews::answer(*review, question, namespace, caller, &self.authorizer(), known);
                Ok(output::answer(StatusCode::CREATED, &answer, &[]))
            }
            _ => Err(status::method_not_allowed()),
        }
    }
}

/// Subresources that exist only for a running pod.
const RUNNING: [&str; 6] = ["attach", "eviction", "exec", "log", "portforward", "proxy"];

/// Returns `404` for a subresource that needs a running pod.
fn nothing_runs(part: &str) -> Failure {
    let text = format!("no pod runs on this server, so there is no {part:?} of one: its pods are records alone");
    Status::failure(&text, reason::NOT_FOUND).with_code(404).with_details(status::no_details()).boxed()
}

/// Answers with an OpenAPI document. A request with an old hash is redirected to the current one.
fn schema_document(path: &str, query: &Query, hash: &str, text: &Bytes) -> Response<ApiBody> {
    if query.get("hash").is_some_and(|asked| asked != hash)
        && let Ok(location) = HeaderValue::from_str(&format!("{path}?hash={hash}"))
    {
        let mut answer = Response::new(Full::new(Bytes::new()).boxed_unsync());
        *answer.status_mut() = StatusCode::MOVED_PERMANENTLY;
        answer.headers_mut().insert(header::LOCATION, location);
        return answer;
    }
    output::answer_text(StatusCode::OK, text.clone(), &[])
}

/// Returns a JSON answer with a special media type.
fn of_type(document: &Value, media_type: &str) -> Response<ApiBody> {
    let mut answer = output::answer_text(StatusCode::OK, json_text(document), &[]);
    if let Ok(value) = HeaderValue::from_str(media_type) {
        answer.headers_mut().insert(header::CONTENT_TYPE, value);
    }
    answer.headers_mut().insert(header::VARY, HeaderValue::from_static("Accept"));
    answer
}
