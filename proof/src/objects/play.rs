//! Playing cases through a client, with raw requests, so that invalid objects can be sent and
//! headers can be read.

use http::{Request as HttpRequest, header};
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, DeleteParams, PostParams};
use kube::client::Body;
use kube::core::ObjectMeta;
use serde_json::{Value, json};
use stowage_operator::api::{GROUP, VERSION};

use super::judge::{CaseAnswer, Mismatch};
use super::table::{Case, Request, Rules, SecondWrite};

/// Result of one case.
#[derive(Clone, Debug)]
pub struct CaseOutcome {
    /// Name of the case.
    pub name: String,
    /// `Ok` if the server answered as expected.
    pub result: Result<(), Mismatch>,
}

/// Plays the cases in a namespace that is created for them and deleted afterwards. The cluster must
/// serve all kinds of these rules.
///
/// # Errors
/// Returns an error if the namespace cannot be created or deleted.
pub async fn run(client: &kube::Client, rules: Rules, cases: &[Case]) -> kube::Result<Vec<CaseOutcome>> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let metadata = ObjectMeta { generate_name: Some("object-table-".to_owned()), ..ObjectMeta::default() };
    let made = namespaces.create(&PostParams::default(), &Namespace { metadata, ..Namespace::default() }).await?;
    let namespace = made.metadata.name.unwrap_or_default();
    let outcomes = play(client, rules, &namespace, cases).await;
    namespaces.delete(&namespace, &DeleteParams::default()).await?;
    Ok(outcomes)
}

/// Plays the cases in this namespace. Names of S3Backends begin with its name. Every object is
/// removed before the next case; only a call that is interrupted leaves one behind.
pub async fn play(client: &kube::Client, rules: Rules, namespace: &str, cases: &[Case]) -> Vec<CaseOutcome> {
    let mut outcomes = Vec::with_capacity(cases.len());
    for (index, case) in cases.iter().enumerate().filter(|(_, case)| case.is_about(rules)) {
        let player = Player { client, namespace, case, name: name_of(case, namespace, index) };
        let result = match player.play().await {
            Ok(answer) => case.judge(rules, &answer),
            Err(why) => Err(Mismatch::NoAnswer(why)),
        };
        outcomes.push(CaseOutcome { name: case.name.clone(), result });
    }
    outcomes
}

fn name_of(case: &Case, namespace: &str, index: usize) -> String {
    match case.create["metadata"]["name"].as_str() {
        Some(name) => name.to_owned(),
        None => format!("{namespace}-{index}"),
    }
}

/// One case while it is played.
struct Player<'a> {
    client: &'a kube::Client,
    namespace: &'a str,
    case: &'a Case,
    name: String,
}

impl Player<'_> {
    /// Sends the requests up to the last one or the first that fails, and removes the object.
    async fn play(&self) -> Result<CaseAnswer, String> {
        let created = self.write(Request::Create, "POST", &self.collection(), &self.whole(&self.case.create)).await?;
        if created.code != 201 {
            return Ok(created);
        }
        let last = self.after_create(created).await;
        self.remove().await?;
        last
    }

    async fn after_create(&self, created: CaseAnswer) -> Result<CaseAnswer, String> {
        if self.case.then == SecondWrite::Nothing {
            return Ok(created);
        }
        let mut version = created.body["metadata"]["resourceVersion"].clone();
        let item = self.item();
        if self.case.deleting {
            self.write(Request::Update, "DELETE", &item, &json!({})).await?;
            let now = self.write(Request::Update, "GET", &item, &Value::Null).await?;
            if now.body["metadata"]["deletionTimestamp"].is_null() {
                return Err(format!("the object is not being deleted: {}", now.body));
            }
            version = now.body["metadata"]["resourceVersion"].clone();
        }
        match &self.case.then {
            SecondWrite::Nothing => Ok(created),
            SecondWrite::MergePatch(patch) => self.write(Request::Update, "PATCH", &item, patch).await,
            SecondWrite::Put(object) => {
                let mut object = self.whole(object);
                object["metadata"]["resourceVersion"] = version;
                self.write(Request::Update, "PUT", &item, &object).await
            }
        }
    }

    /// Deletes the object after removing its finalizers.
    async fn remove(&self) -> Result<(), String> {
        let item = self.item();
        self.write(Request::Update, "PATCH", &item, &json!({"metadata": {"finalizers": null}})).await?;
        self.write(Request::Update, "DELETE", &item, &json!({})).await.map(|_| ())
    }

    /// Fills in `apiVersion`, `kind` and metadata where absent.
    fn whole(&self, object: &Value) -> Value {
        let mut object = object.clone();
        let fill = |place: &mut Value, value: &str| {
            if place.is_null() {
                *place = value.into();
            }
        };
        fill(&mut object["apiVersion"], &format!("{GROUP}/{VERSION}"));
        fill(&mut object["kind"], self.case.kind.as_str());
        fill(&mut object["metadata"]["name"], &self.name);
        if self.case.kind.is_namespaced() {
            fill(&mut object["metadata"]["namespace"], self.namespace);
        }
        object
    }

    fn collection(&self) -> String {
        let plural = self.case.kind.plural();
        match self.case.kind.is_namespaced() {
            true => format!("/apis/{GROUP}/{VERSION}/namespaces/{}/{plural}", self.namespace),
            false => format!("/apis/{GROUP}/{VERSION}/{plural}"),
        }
    }

    fn item(&self) -> String {
        format!("{}/{}", self.collection(), self.name)
    }

    async fn write(&self, on: Request, method: &str, path: &str, body: &Value) -> Result<CaseAnswer, String> {
        let describe = |error: &dyn std::fmt::Display| format!("{method} {path}: {error}");
        let media_type = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
        let uri = match method {
            "POST" | "PUT" | "PATCH" => format!("{path}?fieldValidation={}", self.case.field_validation.as_str()),
            _ => path.to_owned(),
        };
        let bytes = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let request = HttpRequest::builder()
            .method(method)
            .uri(uri)
            .header(header::CONTENT_TYPE, media_type)
            .header(header::ACCEPT, "application/json")
            .body(Body::from(bytes))
            .map_err(|error| describe(&error))?;
        let response = self.client.send(request).await.map_err(|error| describe(&error))?;
        let code = response.status().as_u16();
        let headers = response.headers().get_all(header::WARNING);
        let warnings = headers.iter().filter_map(|value| warning_text(value.to_str().ok()?)).collect();
        let bytes = response.into_body().collect_bytes().await.map_err(|error| describe(&error))?;
        let body = serde_json::from_slice(&bytes).map_err(|error| describe(&error))?;
        Ok(CaseAnswer { on, code, warnings, body })
    }
}

/// Returns the text of a warning, `299 - "text"`, where the text is an HTTP quoted string.
fn warning_text(header: &str) -> Option<String> {
    let quoted = header.splitn(3, ' ').nth(2)?;
    let inner = quoted.trim().strip_prefix('"')?.strip_suffix('"')?;
    let mut text = String::with_capacity(inner.len());
    let mut characters = inner.chars();
    while let Some(character) = characters.next() {
        text.push(if character == '\\' { characters.next()? } else { character });
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_is_read_out_of_its_quotes() {
        let text = warning_text(r#"299 - "unknown field \"spec.x\"""#);
        assert_eq!(text.as_deref(), Some(r#"unknown field "spec.x""#));
        assert_eq!(warning_text("299"), None);
    }
}
