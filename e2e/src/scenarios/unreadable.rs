//! A tenant's object that the API server accepts and the client's types can't parse.

use anyhow::{Context as _, Result, ensure};
use http::Request;
use serde_json::{Value, json};
use stowage_operator::api::wire;
use stowage_testbed::environment::Environment;
use stowage_testbed::environment::setup::Setup;

/// A time that Go can parse, but jiff, which k8s-openapi uses for times, can't.
const TIME: &str = "9999-12-31T23:59:59Z";

pub(super) async fn play(environment: &Environment) -> Result<String> {
    let setup = environment.setup("unreadable").await?;
    let mut operator = setup.start_operator(&[]).await?;
    setup.under(&mut operator, beside_it(&setup)).await?;
    operator.terminate().await?;
    let mut operator = setup.start_operator(&[]).await?;
    setup.under(&mut operator, bound(&setup, "last")).await?;
    operator.terminate().await?;
    Ok("other claims were served beside it, and after a restart".to_owned())
}

async fn beside_it(setup: &Setup<'_>) -> Result<()> {
    bound(setup, "first").await?;
    let labels = json!({wire::ROLE: wire::Role::ConsumerSecret.as_str()});
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "odd", "labels": labels}});
    write(setup, &format!("/api/v1/namespaces/{}/secrets", setup.tenant), secret).await?;
    bound(setup, "second").await
}

async fn bound(setup: &Setup<'_>, name: &str) -> Result<()> {
    setup.claim(name, json!({})).await?;
    setup.ready(name).await.map(|_| ())
}

/// Creates an object, and adds a managed field with a time in the last hours of the year 9999.
async fn write(setup: &Setup<'_>, path: &str, object: Value) -> Result<()> {
    let mut made = send(setup, Request::post(path), &object).await?;
    let at = format!("{path}/{}", object["metadata"]["name"].as_str().unwrap_or_default());
    let entry = json!({"manager": "odd", "operation": "Update", "apiVersion": object["apiVersion"], "time": TIME,
        "fieldsType": "FieldsV1", "fieldsV1": {"f:metadata": {"f:labels": {}}}});
    made["metadata"]["managedFields"].as_array_mut().context("there are no managedFields")?.push(entry);
    made["metadata"]["annotations"]["odd"] = "yes".into();
    let written = send(setup, Request::put(at), &made).await?;
    ensure!(written.to_string().contains(TIME), "the API server did not take the time {TIME}");
    Ok(())
}

async fn send(setup: &Setup<'_>, request: http::request::Builder, object: &Value) -> Result<Value> {
    let body = object.to_string().into_bytes();
    let request = request.header("content-type", "application/json").body(body)?;
    setup.environment.client.request(request).await.context("can't write the object")
}
