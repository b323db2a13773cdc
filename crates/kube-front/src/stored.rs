//! Requests for stored objects: converted to the stored version for the service, and answered in
//! the format that the client requests.

use bytes::Bytes;
use futures::FutureExt as _;
use http::request::Parts;
use http::{HeaderValue, Method, Response, Uri, header};
use http_body_util::{BodyExt as _, Full};
use kube_sim::json::json_text;
use kube_sim::kind::SharedKind;
use kube_sim::output::ApiBody;
use kube_sim::route::Query;
use kube_sim::status::{Failure, bad_request};
use kube_sim::{Cluster, Way};
use serde_json::Value;

use super::accept::{self, Wanted};
use super::admission::RequestAdmission;
use super::body;
use super::events;
use super::face::Face;
use super::media::media_type;
use super::resource::Resource;
use super::table;

/// The context for the conversion of an answer.
#[derive(Clone)]
struct Shown {
    cluster: Cluster,
    resource: Resource,
    kind: SharedKind,
    face: Face,
    wanted: Wanted,
    include: accept::Include,
}

/// Answers a request for stored objects of a resource.
///
/// # Errors
/// Returns the errors of the service, and errors of bodies that can't be decoded.
pub(super) fn answer(
    cluster: &Cluster,
    resource: &Resource,
    kind: &SharedKind,
    face: &Face,
    head: &Parts,
    sent: &Bytes,
) -> Result<Response<ApiBody>, Failure> {
    let query = Query::parse(head.uri.query().unwrap_or_default());
    let wanted = accept::wanted(&head.headers);
    let mut body = body::json(head, sent)?;
    if *face != Face::Same && head.method != Method::DELETE && !body.is_empty() {
        body = inward(kind, face, head, &body)?;
    }
    let inner = inner_head(kind, face, head, wanted)?;
    let way = if *face == Face::CoreEvent { Way::As(events::core_kind().clone()) } else { Way::Front };
    let answer = cluster.answer(&inner, &body, way);
    if *face == Face::Same && !matches!(wanted, Wanted::Table(_)) {
        return answer;
    }
    let include = accept::include(query.get("includeObject"));
    let shown = Shown {
        cluster: cluster.clone(),
        resource: resource.clone(),
        kind: kind.clone(),
        face: face.clone(),
        wanted,
        include,
    };
    let streams = head.method == Method::GET && query.flag("watch") && !named(head, resource);
    answer.map(|answer| if streams { shown.stream(answer) } else { shown.whole(answer) })
}

/// Returns true if the path names an object; such paths have no watches.
fn named(head: &Parts, resource: &Resource) -> bool {
    head.uri.path().trim_end_matches('/').rsplit('/').next() != Some(resource.plural.as_str())
}

/// Converts a body to the stored version.
fn inward(kind: &SharedKind, face: &Face, head: &Parts, body: &Bytes) -> Result<Bytes, Failure> {
    let parsed = serde_json::from_slice(body).ok().or_else(|| {
        // An apply may be YAML.
        let text = std::str::from_utf8(body).ok().filter(|_| media_type(head).ends_with("+yaml"))?;
        serde_saphyr::from_str(text).ok()
    });
    let mut value: Value = parsed.ok_or_else(|| bad_request("the body of the request can't be read"))?;
    face.inward(kind, &mut value);
    Ok(json_text(&value))
}

/// Returns the request for the service: at the stored version, for whole objects or metadata.
fn inner_head(kind: &SharedKind, face: &Face, head: &Parts, wanted: Wanted) -> Result<Parts, Failure> {
    let mut inner = head.clone();
    if let Face::Version(version) = face {
        let (from, to) =
            (format!("/apis/{}/{version}/", kind.group), format!("/apis/{}/{}/", kind.group, kind.version));
        let path = head.uri.path().replacen(&from, &to, 1);
        let query = head.uri.query().map(|query| format!("?{query}")).unwrap_or_default();
        inner.uri = format!("{path}{query}").parse::<Uri>().map_err(|_| bad_request("the path can't be read"))?;
        if let Some(admission) = head.extensions.get::<RequestAdmission>() {
            admission.at_version(version).attach(&mut inner.extensions);
        }
    }
    let accept = match wanted {
        Wanted::Metadata => "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
        Wanted::Whole | Wanted::Table(_) => "application/json",
    };
    inner.headers.insert(header::ACCEPT, HeaderValue::from_static(accept));
    let of_body = matches!(media_type(head), super::protobuf::MEDIA_TYPE | "application/yaml");
    if of_body {
        inner.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    }
    Ok(inner)
}

impl Shown {
    /// Converts an object or a list; a status is not converted.
    fn whole(&self, answer: Response<ApiBody>) -> Response<ApiBody> {
        let (mut head, body) = answer.into_parts();
        // The body of an answer other than a watch is available at once.
        let text = body.collect().now_or_never().and_then(Result::ok).map(|body| body.to_bytes()).unwrap_or_default();
        let text = match serde_json::from_slice::<Value>(&text) {
            Ok(value) if value["kind"] != "Status" && head.status.is_success() => json_text(&self.show(value, true)),
            _ => text,
        };
        head.headers.remove(header::CONTENT_LENGTH);
        Response::from_parts(head, Full::new(text).boxed_unsync())
    }

    /// Converts a watch: each frame is a line with one event.
    fn stream(self, answer: Response<ApiBody>) -> Response<ApiBody> {
        let mut first = true;
        let (head, body) = answer.into_parts();
        let shown = body.map_frame(move |frame| frame.map_data(|line| self.line(line, &mut first)));
        Response::from_parts(head, shown.boxed_unsync())
    }

    fn line(&self, line: Bytes, first: &mut bool) -> Bytes {
        let Ok(mut event) = serde_json::from_slice::<Value>(&line) else { return line };
        if event["type"] == "ERROR" {
            return line;
        }
        event["object"] = self.show(event["object"].take(), std::mem::take(first));
        [&json_text(&event)[..], b"\n"].concat().into()
    }

    /// Converts to the requested format. A table gets its columns only if `titled`.
    fn show(&self, mut answer: Value, titled: bool) -> Value {
        let Wanted::Table(api_version) = self.wanted else {
            self.face.outward(&self.kind, &mut answer);
            return answer;
        };
        let now = self.cluster.time();
        let form = table::Form { api_version, include: self.include, now };
        if titled {
            table::table(&self.resource, &answer, form)
        } else {
            table::untitled(&self.resource, &answer, form)
        }
    }
}
