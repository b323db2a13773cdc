//! Installation of the project's CustomResourceDefinitions on a real server: its warnings, and how
//! much of the CEL cost budget is left.

use std::time::Duration;

use http::{Request, header};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::client::Body;
use kube::runtime::wait::{await_condition, conditions};
use kube::{Api, Client, ResourceExt as _};
use serde::Serialize;
use serde_json::Value;

const PATH: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
/// API group that no server serves, for definitions that are only tried.
const TRIED: &str = "conformance.stowage.invalid";
/// Time limit for a server to start serving a definition.
const PATIENCE: Duration = Duration::from_secs(30);
/// Largest multiple of the CEL cost that is tried.
const MOST: u32 = 64;

/// Result of installing the definitions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Accepted {
    /// Texts of the `Warning` headers. None are expected.
    pub warnings: Vec<String>,
    /// Per definition: by how much, at least, the cost of its rules could be multiplied before the
    /// server's CEL cost budget (per rule and for all rules together) is exceeded. At most 64 is
    /// tried.
    pub cel_room: Vec<(String, u32)>,
}

/// Installs the project's definitions and waits until the server serves them.
///
/// # Errors
/// Returns an error if the server refuses them or does not answer.
pub async fn accept(client: &Client) -> Result<Accepted, String> {
    let mut accepted = Accepted::default();
    for definition in stowage_operator::api::crds() {
        let name = definition.name_any();
        let value = serde_json::to_value(&definition).map_err(|error| error.to_string())?;
        let path = format!("{PATH}/{name}?fieldManager=stowage-conformance&force=true");
        let (code, warnings, body) = send(client, "PATCH", &path, &value).await?;
        if !matches!(code, 200 | 201) {
            return Err(format!("the server refuses {name}: {}", body["message"]));
        }
        accepted.warnings.extend(warnings);
        let api: Api<CustomResourceDefinition> = Api::all(client.clone());
        let established = await_condition(api, &name, conditions::is_crd_established());
        match tokio::time::timeout(PATIENCE, established).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => return Err(format!("waiting for {name}: {error}")),
            Err(_) => return Err(format!("{name} is not served after {} s", PATIENCE.as_secs())),
        }
        accepted.cel_room.push((name, cel_room(client, &value).await?));
    }
    Ok(accepted)
}

/// Returns the largest power of two by which the cost of every rule can be multiplied. Stores
/// nothing.
async fn cel_room(client: &Client, definition: &Value) -> Result<u32, String> {
    let mut room = 0;
    let mut times = 1;
    while times <= MOST {
        let (code, _, body) = send(client, "POST", &format!("{PATH}?dryRun=All"), &dearer(definition, times)).await?;
        match (code, body["message"].as_str()) {
            (201, _) => room = times,
            (422, Some(message)) if message.contains("budget") => break,
            (_, message) => return Err(format!("a definition that is only tried was answered {code}: {message:?}")),
        }
        times *= 2;
    }
    Ok(room)
}

/// Returns the definition in another group, with each rule repeated this many times.
fn dearer(definition: &Value, times: u32) -> Value {
    let mut definition = definition.clone();
    let plural = definition["spec"]["names"]["plural"].as_str().unwrap_or_default().to_owned();
    definition["metadata"] = serde_json::json!({"name": format!("{plural}.{TRIED}")});
    definition["spec"]["group"] = TRIED.into();
    repeat_rules(&mut definition, times);
    definition
}

fn repeat_rules(value: &mut Value, times: u32) {
    match value {
        Value::Object(fields) => {
            for rule in fields.get_mut("x-kubernetes-validations").and_then(Value::as_array_mut).into_iter().flatten() {
                let once = format!("({})", rule["rule"].as_str().unwrap_or_default());
                rule["rule"] = vec![once; times as usize].join(" && ").into();
            }
            fields.values_mut().for_each(|field| repeat_rules(field, times));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| repeat_rules(item, times)),
        _ => {}
    }
}

async fn send(client: &Client, method: &str, path: &str, body: &Value) -> Result<(u16, Vec<String>, Value), String> {
    let failed = |why: &dyn std::fmt::Display| format!("{method} {path}: {why}");
    let content_type = if method == "PATCH" { "application/apply-patch+yaml" } else { "application/json" };
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header(header::CONTENT_TYPE, content_type)
        .body(Body::from(body.to_string().into_bytes()))
        .map_err(|error| failed(&error))?;
    let (head, body) = client.send(request).await.map_err(|error| failed(&error))?.into_parts();
    let bytes = body.collect_bytes().await.map_err(|error| failed(&error))?;
    let body = serde_json::from_slice(&bytes).map_err(|error| failed(&error))?;
    let warnings = head.headers.get_all(header::WARNING).iter();
    let warnings = warnings.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()).collect();
    Ok((head.status.as_u16(), warnings, body))
}
