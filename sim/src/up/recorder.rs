//! A record of the actions of users in a running simulator since its start or its last reset, step
//! by step, for replay.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, Method, Request, Response, Uri, header};
use http_body_util::{BodyExt, Full};
use jiff::SignedDuration;
use kube::client::Body;
use kube_front::Front;
use kube_sim::ApiBody;
use parking_lot::Mutex;
use serde_json::Value;
use stowage_world::deeds::{Began, Deed, Deeds, LeftOut, MOST_STEPS, StandIns, Step};
use stowage_world::effects::{KubeCall, Line, Plan};
use tower::{BoxError, ServiceExt};

use super::befell::Befell;

/// Maximum size of all steps in bytes, as JSON.
const MOST_BYTES: usize = 2 << 20;

/// API groups of reviews: requests to them store nothing.
const QUESTIONS: [&str; 2] = ["authentication.k8s.io", "authorization.k8s.io"];

/// The record. Clones share it.
#[derive(Clone, Debug)]
pub(super) struct Recorder(Arc<Mutex<Book>>);

#[derive(Debug)]
struct Book {
    began: Began,
    obc: bool,
    steps: Vec<Step>,
    /// Size of the steps in bytes.
    bytes: usize,
    left_out: LeftOut,
    stand_ins: StandIns,
    befell: Befell,
    /// Time of the last step, or of the beginning.
    last: Instant,
}

/// A write as it was sent.
#[derive(Clone, Debug, PartialEq)]
struct Sent {
    deed: Deed,
    with: Value,
}

/// The relevance of a request for the record.
#[derive(Clone, Debug, PartialEq)]
enum Meaning {
    /// The request changes nothing.
    Question,
    /// A lease or an Event, which is not recorded.
    Routine,
    /// The format of the request is not supported.
    Unread,
    /// A write.
    Write(Sent),
}

impl Recorder {
    /// Creates an empty record.
    pub(super) fn new(began: Began, obc: bool) -> Self {
        Self(Arc::new(Mutex::new(Book::new(began, obc, 0))))
    }

    /// Starts again, after the operator's call with this number.
    pub(super) fn begin(&self, began: Began, last_call: u64) {
        let mut book = self.0.lock();
        *book = Book::new(began, book.obc, last_call);
    }

    /// Sends an external client's request to the Kubernetes API, and records its changes.
    ///
    /// # Errors
    /// Returns errors of the API.
    pub(super) async fn ask(&self, front: Front, head: Parts, body: Bytes) -> Result<Response<ApiBody>, BoxError> {
        let meaning = meaning(&head.method, &head.uri, &head.headers, &body);
        let answer = front.oneshot(Request::from_parts(head, Body::from(body))).await?;
        if !answer.status().is_success() {
            return Ok(answer);
        }
        match meaning {
            Meaning::Question => {}
            Meaning::Routine => self.0.lock().left_out.routine += 1,
            Meaning::Unread => self.0.lock().left_out.unread += 1,
            Meaning::Write(sent) if sent.is_nameless() => {
                // The server has generated a name. Later steps refer to the object by it.
                let (head, body) = answer.into_parts();
                let told = body.collect().await?.to_bytes();
                self.0.lock().write(sent.named_as(&told));
                return Ok(Response::from_parts(head, Full::new(told).boxed_unsync()));
            }
            Meaning::Write(sent) => self.0.lock().write(sent),
        }
        Ok(answer)
    }

    /// Records an action on the simulator itself.
    pub(super) fn note(&self, deed: Deed) {
        self.0.lock().write(Sent { deed, with: Value::Null });
    }

    /// Counts the operator's calls that were not counted yet.
    pub(super) fn see(&self, calls_after: impl Fn(u64) -> Vec<Line>) {
        loop {
            // The lock must not be held while calls are read.
            let last = self.0.lock().befell.last();
            let lines = calls_after(last);
            if lines.is_empty() {
                return;
            }
            let mut book = self.0.lock();
            for line in lines.iter().filter(|line| line.number > last) {
                // Another caller may have counted it meanwhile, or have started the record again.
                if line.number > book.befell.last() {
                    book.befell.see(line);
                }
            }
        }
    }

    /// Records faults that are armed.
    pub(super) fn armed(&self, plan: &Plan) {
        self.0.lock().befell.armed(plan);
    }

    /// Records that all faults were removed, this many milliseconds after the start.
    pub(super) fn calm(&self, now_ms: u64) {
        self.0.lock().befell.calm(now_ms);
    }

    /// Returns the actions so far.
    pub(super) fn deeds(&self) -> Deeds {
        let book = self.0.lock();
        Deeds {
            began: book.began,
            obc: book.obc,
            steps: book.steps.clone(),
            afterwards: book.since_last(),
            met: book.befell.met().to_vec(),
            left_out: book.left_out,
        }
    }

    /// Returns the faults that calls met.
    pub(super) fn befell(&self) -> Befell {
        self.0.lock().befell.clone()
    }
}

impl Book {
    fn new(began: Began, obc: bool, last_call: u64) -> Self {
        Self {
            began,
            obc,
            steps: Vec::new(),
            bytes: 0,
            left_out: LeftOut::default(),
            stand_ins: StandIns::default(),
            befell: Befell::after(last_call),
            last: Instant::now(),
        }
    }

    /// Returns the time since the last step, in whole milliseconds.
    fn since_last(&self) -> SignedDuration {
        SignedDuration::from_millis(i64::try_from(self.last.elapsed().as_millis()).unwrap_or(i64::MAX))
    }

    /// Records a step while there is room. When there is none, the last steps are left out: without
    /// the first ones the others make no sense. Nothing of those steps is kept, not even
    /// placeholders for the values of their Secrets.
    fn write(&mut self, Sent { deed, mut with }: Sent) {
        if self.left_out.beyond_room > 0 {
            self.left_out.beyond_room += 1;
            return;
        }
        self.stand_ins.redact(&deed, &mut with);
        let step = Step { after: self.since_last(), deed, with };
        let takes = serde_json::to_vec(&step).map_or(MOST_BYTES, |text| text.len());
        if self.steps.len() >= MOST_STEPS || self.bytes + takes > MOST_BYTES {
            self.left_out.beyond_room += 1;
            return;
        }
        self.last += step.after.unsigned_abs();
        self.bytes += takes;
        self.steps.push(step);
    }
}

impl Sent {
    fn is_nameless(&self) -> bool {
        matches!(self.deed, Deed::Create(_))
            && self.with["metadata"]["name"].is_null()
            && self.with["metadata"]["generateName"].is_string()
    }

    /// Sets the name that the answer contains.
    fn named_as(mut self, answer: &[u8]) -> Self {
        let answer: Value = serde_json::from_slice(answer).unwrap_or_default();
        if answer["metadata"]["name"].is_string() {
            self.with["metadata"]["name"] = answer["metadata"]["name"].clone();
        }
        self
    }
}

/// Classifies a request.
fn meaning(method: &Method, uri: &Uri, headers: &HeaderMap, body: &[u8]) -> Meaning {
    let call = KubeCall::read(method, uri);
    let query = uri.query().unwrap_or_default();
    let is_tried = query.split('&').any(|it| it.starts_with("dryRun="));
    let is_question = QUESTIONS.contains(&call.group.as_str()) || call.subresource.as_deref() == Some("token");
    if !call.verb.is_write() || call.resource.starts_with('/') || is_tried || is_question {
        return Meaning::Question;
    }
    let is_lease = call.group == "coordination.k8s.io" && call.resource == "leases";
    if call.is_event() || is_lease {
        return Meaning::Routine;
    }
    let content_type = headers.get(header::CONTENT_TYPE).and_then(|it| it.to_str().ok()).unwrap_or_default();
    let content_type = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let place = uri.path_and_query().map_or_else(|| uri.path().to_owned(), ToString::to_string);
    // Some clients send an empty first parameter.
    let place = place.replace("?&", "?").trim_end_matches(['?', '&']).to_owned();
    match (Deed::of(method, &content_type, place), read(&content_type, body)) {
        (Some(deed), Some(with)) if !is_dry(&with) => Meaning::Write(Sent { deed, with }),
        (Some(_), Some(_)) => Meaning::Question,
        (None, _) | (_, None) => Meaning::Unread,
    }
}

/// Parses a body in JSON, or in YAML if the content type says so; null for an empty one.
fn read(content_type: &str, body: &[u8]) -> Option<Value> {
    if body.is_empty() {
        return Some(Value::Null);
    }
    let yaml = || serde_saphyr::from_str(str::from_utf8(body).ok()?).ok();
    let value = serde_json::from_slice(body).ok();
    let value: Option<Value> = if content_type.ends_with("yaml") { value.or_else(yaml) } else { value };
    value.filter(|it| it.is_object() || it.is_array())
}

/// Returns true if the body of a deletion requests a dry run.
fn is_dry(with: &Value) -> bool {
    with["kind"] == "DeleteOptions" && with["dryRun"].as_array().is_some_and(|it| !it.is_empty())
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    fn of(method: &str, path: &str, content_type: &str, body: &str) -> Meaning {
        let headers = [(header::CONTENT_TYPE, HeaderValue::from_str(content_type).expect("a value"))].into_iter();
        let (method, uri) = (method.parse().expect("a method"), path.parse().expect("a path"));
        meaning(&method, &uri, &headers.collect(), body.as_bytes())
    }

    const SECRETS: &str = "/api/v1/namespaces/default/secrets";

    #[rstest]
    #[case("GET", SECRETS, "", "", Meaning::Question)]
    #[case("POST", "/api/v1/namespaces/default/secrets?dryRun=All", "application/json", "{}", Meaning::Question)]
    #[case(
        "DELETE",
        "/api/v1/namespaces/default/secrets/a",
        "application/json",
        r#"{"kind": "DeleteOptions", "dryRun": ["All"]}"#,
        Meaning::Question
    )]
    #[case(
        "POST",
        "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
        "application/json",
        "{}",
        Meaning::Question
    )]
    #[case("POST", "/api/v1/namespaces/default/serviceaccounts/a/token", "application/json", "{}", Meaning::Question)]
    #[case("POST", "/api/v1/namespaces/default/events", "application/json", "{}", Meaning::Routine)]
    #[case("PUT", "/apis/coordination.k8s.io/v1/namespaces/a/leases/b", "application/json", "{}", Meaning::Routine)]
    #[case("POST", SECRETS, "application/vnd.kubernetes.protobuf", "k8s\0\u{1}", Meaning::Unread)]
    #[case("PATCH", "/api/v1/namespaces/default/secrets/a", "application/else", "{}", Meaning::Unread)]
    fn what_is_no_step_is_known(
        #[case] method: &str,
        #[case] path: &str,
        #[case] content_type: &str,
        #[case] body: &str,
        #[case] expected: Meaning,
    ) {
        assert_eq!(of(method, path, content_type, body), expected);
    }

    #[test]
    fn an_applied_manifest_is_read_in_yaml_with_its_query() {
        let place = "/api/v1/namespaces/default/secrets/a?fieldManager=kubectl&force=true";
        let sent = place.replace('?', "?&");
        let meaning = of("PATCH", &sent, "application/apply-patch+yaml; charset=utf-8", "data: {a: Yg==}");
        let sent = Sent { deed: Deed::Apply(place.to_owned()), with: json!({"data": {"a": "Yg=="}}) };
        assert_eq!(meaning, Meaning::Write(sent));
    }

    fn namespace(name: &str) -> Sent {
        let with = json!({"metadata": {"name": name}});
        Sent { deed: Deed::Create("/api/v1/namespaces".to_owned()), with }
    }

    #[test]
    fn there_is_room_for_so_many_steps_and_what_comes_later_is_counted() {
        let mut book = Book::new(Began::Empty, false, 0);
        (0..MOST_STEPS + 3).for_each(|number| book.write(namespace(&number.to_string())));
        assert_eq!((book.steps.len(), book.left_out.beyond_room), (MOST_STEPS, 3));
    }

    #[test]
    fn there_is_room_for_so_many_bytes_and_nothing_follows_what_was_left_out() {
        let mut book = Book::new(Began::Empty, false, 0);
        book.write(namespace("small"));
        book.write(namespace(&"large".repeat(MOST_BYTES / 5)));
        book.write(namespace("small"));
        assert_eq!((book.steps.len(), book.left_out.beyond_room), (1, 2));
    }

    #[test]
    fn nothing_is_kept_of_secrets_for_which_there_is_no_room() {
        let secret = |value: &str| {
            let with = json!({"metadata": {"name": "admin"}, "stringData": {"key": value}});
            Sent { deed: Deed::Create(SECRETS.to_owned()), with }
        };
        let mut book = Book::new(Began::Empty, false, 0);
        book.write(secret("first"));
        book.write(namespace(&"large".repeat(MOST_BYTES / 5)));
        let kept = format!("{:?}", book.stand_ins);
        book.write(secret("second"));
        assert_eq!(format!("{:?}", book.stand_ins), kept);
        assert_eq!(book.left_out.beyond_room, 2);
    }

    #[test]
    fn what_a_secret_holds_never_comes_into_the_notes() {
        let recorder = Recorder::new(Began::Empty, false);
        let with = json!({"metadata": {"name": "admin"}, "stringData": {"key": "tiger"}});
        recorder.0.lock().write(Sent { deed: Deed::Create(SECRETS.to_owned()), with });
        let text = recorder.deeds().text().expect("it can be written");
        assert!(text.contains("admin") && !text.contains("tiger"), "{text}");
        assert!(!format!("{recorder:?}").contains("tiger"));
    }

    #[test]
    fn an_object_that_the_server_names_has_that_name() {
        let with = json!({"metadata": {"generateName": "a-"}});
        let sent = Sent { deed: Deed::Create(SECRETS.to_owned()), with };
        assert!(sent.is_nameless());
        let named = sent.named_as(br#"{"metadata": {"name": "a-x7"}}"#);
        assert_eq!((named.is_nameless(), &named.with["metadata"]["name"]), (false, &json!("a-x7")));
    }
}
