//! The API server as a tower service: parses a request, takes the lock once, and answers.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header, request::Parts};
use http_body_util::StreamBody;
use kube::client::Body;
use parking_lot::MutexGuard;
use serde_json::{Value, json};

use super::admission::{self, AdmissionContext};
use super::decode::{self, FieldValidation, Origin};
use super::definitions;
use super::delete::{self, Deleted, Deletion};
use super::disturbance::Disturbance;
use super::kind::{Family, SharedKind};
use super::list;
use super::observer::{Asked, Author};
use super::options::{self, Ownership, Part, WriteOptions, Written};
use super::output::{self, ApiBody, Form};
use super::patch::{self, PatchFormat};
use super::route::{Query, Route};
use super::selector::Filter;
use super::shared_store::SharedStore;
use super::status::{self, Failure, FieldError, FieldErrorKind};
use super::store::{Place, Shared, Store, Tables};
use super::watch;
use super::write;

/// The HTTP interface of a [`crate::Cluster`]: a [`tower::Service`] that answers like an API
/// server.
///
/// It never fails as a service: errors are responses with a `Status` body. Requests take effect one
/// at a time, in the order in which their bodies are complete.
#[derive(Clone)]
pub struct ApiService {
    store: SharedStore,
}

impl ApiService {
    pub(super) fn new(store: SharedStore) -> Self {
        Self { store }
    }
}

impl std::fmt::Debug for ApiService {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ApiService").finish_non_exhaustive()
    }
}

impl tower::Service<Request<Body>> for ApiService {
    type Response = Response<ApiBody>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<ApiBody>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let store = self.store.clone();
        Box::pin(async move {
            let (head, body) = request.into_parts();
            let answer = match body.collect_bytes().await {
                Ok(body) => dispatch(&store, &head, &body, Way::Direct),
                Err(error) => Err(status::bad_request(format!("the body of the request broke off: {error}"))),
            };
            Ok(answer.unwrap_or_else(|failure| output::refusal(&failure)))
        })
    }
}

/// A request for a served kind.
struct Call<'a> {
    store: &'a SharedStore,
    kind: SharedKind,
    route: Route,
    query: Query,
    head: &'a Parts,
    body: &'a Bytes,
    part: Part,
    form: Form,
    disturbance: Option<Disturbance>,
    author: Option<Author>,
    way: Way,
}

/// Entry point through which a request was received.
#[derive(Clone, Debug, Default)]
pub enum Way {
    /// The service itself.
    #[default]
    Direct,
    /// A front: definitions are writable.
    Front,
    /// A front, for the objects of a kind under the rules of another kind.
    As(SharedKind),
}

/// Answers a request whose body is complete.
///
/// # Errors
/// Returns the status of a request that fails.
pub(crate) fn dispatch(
    store: &SharedStore,
    head: &Parts,
    body: &Bytes,
    way: Way,
) -> Result<Response<ApiBody>, Failure> {
    if head.uri.path() == "/version" {
        let version = json!({"major": "1", "minor": "34", "gitVersion": "v1.34.4", "platform": "simulated"});
        return Ok(output::answer(StatusCode::OK, &version, &[]));
    }
    let Some(route) = Route::parse(head.uri.path()) else { return Ok(output::page_not_found()) };
    let served = match &way {
        Way::As(kind) => Some(kind.clone()),
        Way::Direct | Way::Front => store.lock().kind(&route.group, &route.version, &route.plural),
    };
    let Some(kind) = served else { return nowhere(&store.lock(), &route) };
    let part = match route.subresource.as_deref() {
        None => Part::Main,
        Some("status") if kind.status_subresource => Part::Status,
        Some(_) if kind.is_custom() => {
            return Err(status::not_found(&kind, route.name.as_deref().unwrap_or_default()));
        }
        Some(_) => return Err(status::no_such_resource()),
    };
    if !route.namespace.is_empty() && !kind.is_namespaced() {
        return nowhere(&store.lock(), &route);
    }
    let query = Query::parse(head.uri.query().unwrap_or_default());
    let form = Form::parse(&head.headers);
    let (disturbance, author) = (head.extensions.get().copied(), head.extensions.get().copied());
    Call { store, kind, route, query, head, body, part, form, disturbance, author, way }.answer()
}

/// Answers a request for something that is not a resource. In the server's own groups this is a
/// status; in groups of definitions and in unknown groups it is a page.
///
/// # Errors
/// The status, if the answer is one.
pub(crate) fn nowhere(stored: &Tables, route: &Route) -> Result<Response<ApiBody>, Failure> {
    let built_in = stored.kinds().any(|kind| !kind.is_custom() && kind.group == route.group);
    if built_in { Err(status::no_such_resource()) } else { Ok(output::page_not_found()) }
}

impl Call<'_> {
    fn answer(&self) -> Result<Response<ApiBody>, Failure> {
        let writes = self.head.method != Method::GET;
        if writes && self.kind.family == Family::Definition && matches!(self.way, Way::Direct) {
            return Err(status::method_not_allowed());
        }
        if writes && admission::is_first_try(self.head) {
            self.tell();
        }
        let homeless = self.kind.is_namespaced() && self.route.namespace.is_empty();
        match (&self.head.method, &self.route.name) {
            (&Method::GET, None) if self.query.flag("watch") => self.watch(),
            (&Method::GET, None) => self.list(),
            (_, _) if homeless => Err(status::method_not_allowed()),
            (&Method::GET, Some(name)) => self.get(name),
            (&Method::POST, None) => self.create(),
            (&Method::PUT, Some(name)) => self.replace(name),
            (&Method::PATCH, Some(name)) => self.patch(name),
            // The handler of custom resources checks for the name before the method.
            (&Method::POST, Some(_)) if self.kind.is_custom() && self.part == Part::Main => self.create(),
            (&Method::PUT | &Method::PATCH, None) if self.kind.is_custom() => {
                Err(status::bad_request("name must be provided"))
            }
            (&Method::DELETE, Some(name)) if self.part == Part::Main => self.delete(name),
            (&Method::DELETE, None) if self.kind.deletes_collections() => self.delete_collection(),
            _ => Err(status::method_not_allowed()),
        }
    }

    /// Locks the store for changes by the author of this request.
    fn state(&self) -> MutexGuard<'_, Store> {
        self.store.lock_for(self.author)
    }

    /// Notifies the observer of a requested write.
    fn tell(&self) {
        let Some(observer) = self.store.observers().observer() else { return };
        let content_type = self.head.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        observer.asked(
            self.author,
            Asked {
                method: self.head.method.clone(),
                plural: self.kind.plural.clone(),
                subresource: self.route.subresource.clone(),
                namespace: self.route.namespace.clone(),
                name: self.route.name.clone().unwrap_or_default(),
                content_type: content_type.unwrap_or_default().to_owned(),
                body: self.body.clone(),
            },
        );
    }

    fn place(&self, name: &str) -> Place {
        Place::new(&self.route.namespace, name)
    }

    fn filter(&self) -> Result<Filter, Failure> {
        let text = |name: &str| self.query.get(name).unwrap_or_default();
        Filter::parse(&self.kind, &self.route.namespace, text("labelSelector"), text("fieldSelector"))
    }

    fn dry_run(&self) -> Result<bool, Failure> {
        match self.query.get("dryRun") {
            None => Ok(false),
            Some("All") => Ok(true),
            Some(other) => {
                let options = match self.head.method {
                    Method::POST => "CreateOptions",
                    Method::PUT => "UpdateOptions",
                    Method::PATCH => "PatchOptions",
                    _ => "DeleteOptions",
                };
                let kind = FieldErrorKind::NotSupported;
                let error = FieldError::new(kind, "dryRun", json!([other]), "supported values: \"All\"");
                Err(status::invalid("meta.k8s.io", options, "", &[error]))
            }
        }
    }

    fn options(&self) -> Result<WriteOptions, Failure> {
        let validation = match self.query.get("fieldValidation") {
            None | Some("Warn") => FieldValidation::Warn,
            Some("Ignore") => FieldValidation::Ignore,
            Some("Strict") => FieldValidation::Strict,
            Some(other) => return Err(status::bad_request(format!("invalid fieldValidation {other:?}"))),
        };
        let agent = self.head.headers.get(header::USER_AGENT).and_then(|value| value.to_str().ok());
        let agent = agent.and_then(|text| text.split('/').next()).filter(|name| !name.is_empty());
        let manager = self.query.get("fieldManager").or(agent).unwrap_or("unknown").to_owned();
        let dry_run = self.dry_run()?;
        let admission = AdmissionContext::of(self.head, dry_run, || options::of_query(&self.query));
        Ok(WriteOptions { manager, dry_run, validation, admission })
    }

    fn ok(&self, object: &Shared) -> Response<ApiBody> {
        output::answer_text(StatusCode::OK, self.form.text(object), &[])
    }

    fn written(&self, written: &Written) -> Response<ApiBody> {
        let code = if written.created { StatusCode::CREATED } else { StatusCode::OK };
        output::answer_text(code, self.form.text(&written.object), &written.warnings)
    }

    fn get(&self, name: &str) -> Result<Response<ApiBody>, Failure> {
        let state = self.state();
        let place = self.place(name);
        let object = match self.version_read(&state) {
            None => state.get(&self.kind, &place),
            Some(version) => state.objects_at(&self.kind, version).and_then(|mut objects| objects.remove(&place)),
        };
        match object {
            Some(object) => Ok(self.ok(object)),
            None => Err(status::not_found(&self.kind, name)),
        }
    }

    /// Returns the version from which a read is answered, if it is not the current one.
    fn version_read(&self, state: &Store) -> Option<u64> {
        self.disturbance.and_then(|disturbance| disturbance.version_read(state, &self.kind))
    }

    fn list(&self) -> Result<Response<ApiBody>, Failure> {
        let state = self.state();
        let current = self.version_read(&state).unwrap_or_else(|| state.version());
        let mut list = list::list_at(&state, current, &self.kind, &self.filter()?, &self.query)?;
        if self.disturbance == Some(Disturbance::Shuffled) {
            list.objects.reverse();
        }
        Ok(output::answer_text(StatusCode::OK, self.form.list(&self.kind, &list), &[]))
    }

    fn watch(&self) -> Result<Response<ApiBody>, Failure> {
        let filter = self.filter()?;
        let state = self.state();
        let events =
            watch::watch(self.store, &state, self.kind.clone(), filter, self.form, &self.query, self.disturbance)?;
        let mut response = Response::new(ApiBody::new(StreamBody::new(events)));
        let json = header::HeaderValue::from_static("application/json");
        response.headers_mut().insert(header::CONTENT_TYPE, json);
        Ok(response)
    }

    fn create(&self) -> Result<Response<ApiBody>, Failure> {
        let options = self.options()?;
        let mut object = decode::json_object(&self.kind, self.body)?;
        decode::settle_envelope(&self.kind, &self.route.namespace, &mut object)?;
        let warnings = decode::shape(&self.kind, &mut object, options.validation, Origin::Body)?;
        let mut state = self.state();
        if let Some(rival) = self.disturbance.and_then(|disturbance| disturbance.rival(&self.kind, &object)) {
            // An error that affects the rival will affect the caller too.
            let _ = write::create(&mut state, &self.kind, rival, Ownership::Creator, &options);
        }
        let mut written = self.write(&mut state, object, &options, |state, object, options| {
            write::create(state, &self.kind, object, Ownership::Creator, options)
        })?;
        written.warnings.splice(0..0, warnings);
        Ok(self.written(&written))
    }

    fn replace(&self, name: &str) -> Result<Response<ApiBody>, Failure> {
        let options = self.options()?;
        let object = decode::json_object(&self.kind, self.body)?;
        let mut state = self.state();
        let place = self.place(name);
        let written = self.write(&mut state, object, &options, |state, object, options| {
            patch::replace(state, &self.kind, &place, self.part, object, options)
        })?;
        Ok(self.written(&written))
    }

    fn patch(&self, name: &str) -> Result<Response<ApiBody>, Failure> {
        let options = self.options()?;
        let content_type = self.head.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let format = PatchFormat::parse(&self.kind, content_type.unwrap_or_default())?;
        patch::check_options(format, self.query.get("fieldManager").is_some(), self.query.get("force").is_some())?;
        let place = self.place(name);
        let mut state = self.state();
        let (kind, part) = (&self.kind, self.part);
        let written = self.write(&mut state, Value::Null, &options, |state, _, options| match format {
            PatchFormat::Apply => {
                let force = self.query.flag("force");
                patch::server_side_apply(state, kind, &place, part, self.body, force, options)
            }
            _ => patch::patch(state, kind, &place, part, format, self.body, options),
        })?;
        Ok(self.written(&written))
    }

    /// Writes an object. For a definition, its effects on the served resources are included.
    fn write(
        &self,
        state: &mut Store,
        object: Value,
        options: &WriteOptions,
        write: impl Fn(&mut Store, Value, &WriteOptions) -> Result<Written, Failure>,
    ) -> Result<Written, Failure> {
        if self.kind.family == Family::Definition && self.part == Part::Main {
            definitions::write(state, &self.kind, options, |state, options| write(state, object.clone(), options))
        } else {
            write(state, object, options)
        }
    }

    fn deletion(&self) -> Result<Deletion, Failure> {
        let deletion = Deletion::parse(self.body, self.query.get("propagationPolicy"), self.dry_run()?)?;
        let options = || options::of_deletion(self.body, &self.query);
        let admission = AdmissionContext::of(self.head, deletion.dry_run, options);
        Ok(Deletion { admission, ..deletion })
    }

    fn delete(&self, name: &str) -> Result<Response<ApiBody>, Failure> {
        let deletion = self.deletion()?;
        let mut state = self.state();
        match self.delete_one(&mut state, &self.place(name), &deletion)? {
            Deleted::Marked(object) => Ok(self.ok(&object)),
            Deleted::Gone(object) => {
                Ok(output::answer(StatusCode::OK, &output::deleted_status(&self.kind, &object), &[]))
            }
        }
    }

    /// Deletes an object. A definition's objects are deleted first.
    fn delete_one(&self, state: &mut Store, place: &Place, deletion: &Deletion) -> Result<Deleted, Failure> {
        if self.kind.family == Family::Definition {
            definitions::delete(state, &self.kind, place, deletion)
        } else {
            delete::delete(state, &self.kind, place, deletion)
        }
    }

    fn delete_collection(&self) -> Result<Response<ApiBody>, Failure> {
        let deletion = Deletion { of_collection: true, ..self.deletion()? };
        let filter = self.filter()?;
        let mut state = self.state();
        let list = list::list(&state, &self.kind, &filter, &Query::default())?;
        // Runs admission for every object before deleting any.
        if deletion.admission.as_ref().is_some_and(|context| context.admission.may_suspend()) {
            let dry_run = Deletion { dry_run: true, ..deletion.clone() };
            for object in &list.objects {
                let _ = self.delete_one(&mut state, &Place::of(object), &dry_run);
            }
            AdmissionContext::require_answered(deletion.admission.as_ref())?;
        }
        for object in &list.objects {
            self.delete_one(&mut state, &Place::of(object), &deletion)?;
        }
        Ok(output::answer_text(StatusCode::OK, self.form.list(&self.kind, &list), &[]))
    }
}
