//! The objects that an operator left, with all values masked that can't be equal on two servers;
//! and a comparison of its events in both API groups.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use anyhow::{Context as _, Result, anyhow, ensure};
use regex::Regex;
use serde_json::{Value, json};

use super::cluster::{Kind, Place, until};
use super::sites::Sites;

/// The operators' name as a field manager and event reporter.
const OWNER: &str = "example.org/websites";

static UID: LazyLock<Regex> =
    LazyLock::new(|| Regex::new("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}").expect("it is a pattern"));
static TIME: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?Z$").expect("it is a pattern"));

/// Returns the events about a website, by name: each as in the core group, and as in
/// `events.k8s.io`.
async fn events(sites: &Sites, name: &str) -> Result<BTreeMap<String, (Value, Value)>> {
    let website = sites.cluster.get(sites.website(name)).await?;
    let uid = website.as_ref().and_then(|it| it["metadata"]["uid"].as_str()).context("the website is gone")?;
    let fields = format!("involvedObject.kind=Website,involvedObject.name={name},involvedObject.uid={uid}");
    let core = sites.cluster.list(Kind::CoreEvent, &sites.namespace, &fields).await?;
    let mut both = BTreeMap::new();
    for event in core {
        let name = event["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let other = sites.cluster.get(Place(Kind::Event, &sites.namespace, &name)).await?;
        let other = other.with_context(|| format!("event {name} has no other face"))?;
        both.insert(name, (event, other));
    }
    Ok(both)
}

/// Waits for the event about the published page, and compares all events in both API groups.
pub(super) async fn of_events(sites: &Sites, name: &str) -> Result<()> {
    let published = async || {
        let events = events(sites, name).await?;
        let is_there = events.values().any(|(core, _)| core["reason"] == "Published");
        Ok(is_there.then_some(events))
    };
    let events = until("an event tells that the page is published", published).await?;
    let same = [
        ("/involvedObject", "/regarding"),
        ("/message", "/note"),
        ("/reportingComponent", "/reportingController"),
        ("/reportingInstance", "/reportingInstance"),
        ("/reason", "/reason"),
        ("/type", "/type"),
        ("/eventTime", "/eventTime"),
        ("/action", "/action"),
        ("/series", "/series"),
        ("/count", "/deprecatedCount"),
        ("/source", "/deprecatedSource"),
        ("/firstTimestamp", "/deprecatedFirstTimestamp"),
        ("/lastTimestamp", "/deprecatedLastTimestamp"),
        ("/metadata/uid", "/metadata/uid"),
    ];
    for (event, (core, other)) in &events {
        for (here, there) in same {
            let (here_value, there_value) = (present(core, here), present(other, there));
            ensure!(here_value == there_value, "event {event}: {here} is {here_value:?}, {there} is {there_value:?}");
        }
    }
    let core = events.values().map(|(core, _)| core).find(|it| it["reason"] == "Published");
    let core = core.context("it is gone")?;
    let told = (&core["reportingComponent"], &core["action"], &core["type"], core["eventTime"].is_string());
    ensure!(told == (&OWNER.into(), &"Publish".into(), &"Normal".into(), true), "its core face is {core}");
    Ok(())
}

/// Returns the value at this place. An empty source or name counts as missing, because one of the
/// API groups omits it.
fn present<'a>(event: &'a Value, pointer: &str) -> Option<&'a Value> {
    event.pointer(pointer).filter(|it| !it.is_null() && **it != json!({}) && **it != json!(""))
}

/// Waits until each event about a website was reported twice, and checks that it is still one
/// object.
pub(super) async fn counted(sites: &Sites, name: &str) -> Result<()> {
    let counted = async || {
        let events = events(sites, name).await?;
        let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
        for (core, _) in events.values() {
            *reasons.entry(core["reason"].as_str().unwrap_or_default()).or_default() += 1;
            let count = core["series"]["count"].as_u64().or(core["count"].as_u64());
            ensure!(count.is_some_and(|count| count > 1), "an event was told once: {core}");
        }
        ensure!(reasons.contains_key("Published"), "there is no event");
        let stored = reasons.iter().find(|(_, stored)| **stored > 1);
        stored.map_or(Ok(Some(())), |(reason, stored)| Err(anyhow!("{reason} is stored {stored} times")))
    };
    until("each event is counted", counted).await
}

/// Returns the objects of a website, masked: itself, its page, the operator's part of its
/// BucketClaim, and its events in both API groups.
pub(super) async fn of_website(sites: &Sites, name: &str) -> Result<Vec<Value>> {
    let page = format!("{name}-page");
    let mut seen = Vec::new();
    for place in [sites.website(name), Place(Kind::ConfigMap, &sites.namespace, &page), sites.claim(name)] {
        let mut object = sites.cluster.get(place).await?.with_context(|| format!("{place:?} is gone"))?;
        own(&mut object);
        if matches!(place.0, Kind::BucketClaim) {
            // The rest is written by Stowage's operator, which a control plane doesn't have.
            let (spec, metadata) = (object["spec"]["backendRef"].take(), object["metadata"].take());
            object =
                json!({"backendRef": spec, "owners": metadata["ownerReferences"], "fields": metadata["managedFields"]});
        }
        seen.push(object);
    }
    let mut told: Vec<(Value, Value)> = events(sites, name).await?.into_values().collect();
    told.sort_by_key(|(core, _)| core["reason"].as_str().unwrap_or_default().to_owned());
    for (core, other) in told {
        for mut event in [core, other] {
            // Random names, and counts that depend on timing.
            event["metadata"]["name"] = "NAME".into();
            event["metadata"]["generateName"].take();
            if event["source"]["component"].is_string() || event["deprecatedSource"]["component"].is_string() {
                // Through the core group: the simulator records its fields by their other names.
                event["metadata"]["managedFields"].take();
            }
            for count in ["/count", "/deprecatedCount", "/series/count"] {
                if let Some(count) = event.pointer_mut(count).filter(|it| it.is_number()) {
                    *count = "COUNT".into();
                }
            }
            seen.push(event);
        }
    }
    seen.iter_mut().for_each(mask);
    Ok(seen)
}

/// Removes the managed fields of other writers, and sorts the rest.
fn own(object: &mut Value) {
    let Some(managed) = object["metadata"]["managedFields"].as_array_mut() else { return };
    managed.retain(|it| it["manager"] != "stowage-e2e" && it["manager"] != "stowage-operator");
    managed.sort_by_key(|it| format!("{}{}{}", it["manager"], it["operation"], it["subresource"]));
}

/// Masks random values and times.
fn mask(value: &mut Value) {
    match value {
        Value::String(text) if TIME.is_match(text) => *text = "TIME".to_owned(),
        Value::String(text) if UID.is_match(text) => *text = UID.replace_all(text, "UID").into_owned(),
        Value::Array(items) => items.iter_mut().for_each(mask),
        Value::Object(fields) => {
            for (name, mut field) in std::mem::take(fields) {
                if name == "resourceVersion" {
                    field = "VERSION".into();
                }
                mask(&mut field);
                // The name of a field in an owner reference contains the owner's UID.
                fields.insert(UID.replace_all(&name, "UID").into_owned(), field);
            }
        }
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Returns the differences between the objects that an operator left in two environments.
pub(super) fn differences(simulated: &[Value], real: &[Value]) -> Vec<String> {
    let mut found = Vec::new();
    compare("", &Value::from(simulated.to_vec()), &Value::from(real.to_vec()), &mut found);
    found
}

fn compare(path: &str, simulated: &Value, real: &Value, found: &mut Vec<String>) {
    match (simulated, real) {
        (Value::Object(one), Value::Object(other)) => {
            let names = one.keys().chain(other.keys().filter(|name| !one.contains_key(*name)));
            for name in names {
                let of = |it: &serde_json::Map<String, Value>| it.get(name).cloned().unwrap_or_default();
                compare(&format!("{path}/{name}"), &of(one), &of(other), found);
            }
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            for (index, (one, other)) in one.iter().zip(other).enumerate() {
                compare(&format!("{path}/{index}"), one, other, found);
            }
        }
        (one, other) if one == other => {}
        (one, other) => found.push(format!("{path}: simulator {one}, control plane {other}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_two_servers_cannot_have_alike_is_masked_and_the_rest_is_told() {
        let object = |uid: &str, time: &str, page: &str| {
            let metadata = json!({"uid": uid, "resourceVersion": "7", "creationTimestamp": time});
            let mut object = json!({"metadata": metadata, "data": {"page": page}});
            mask(&mut object);
            object
        };
        let one = object("0b7f7e52-9a5e-4c3c-8e73-3f6d6a1d2c11", "2026-01-01T00:00:00Z", "a");
        let same = object("1b7f7e52-9a5e-4c3c-8e73-3f6d6a1d2c11", "2026-01-02T00:00:00.123456Z", "a");
        assert_eq!(differences(std::slice::from_ref(&one), &[same]), [] as [String; 0]);
        let other = object("1b7f7e52-9a5e-4c3c-8e73-3f6d6a1d2c11", "2026-01-02T00:00:00Z", "b");
        assert_eq!(differences(&[one], &[other]), [r#"/0/data/page: simulator "a", control plane "b""#]);
        let mut owned = json!({"k:{\"uid\":\"0b7f7e52-9a5e-4c3c-8e73-3f6d6a1d2c11\"}": {}});
        mask(&mut owned);
        assert_eq!(owned, json!({"k:{\"uid\":\"UID\"}": {}}));
    }

    #[test]
    fn of_who_wrote_what_the_operators_part_is_left() {
        let mut object = json!({"metadata": {"managedFields": [
            {"manager": "b", "operation": "Apply"}, {"manager": "stowage-e2e"}, {"manager": "a", "operation": "Update"},
        ]}});
        own(&mut object);
        let left = json!([{"manager": "a", "operation": "Update"}, {"manager": "b", "operation": "Apply"}]);
        assert_eq!(object["metadata"]["managedFields"], left);
    }
}
