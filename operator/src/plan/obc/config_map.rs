//! The ConfigMap with the location of the bucket (spec §9).

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::core::ObjectMeta;
use serde_json::{Value, json};

use crate::api::OBC_PROVISIONER;

use super::desired;
use super::halt::{Halt, Phase, Stop};
use super::step::{ObcAct, ObcLook};
use super::view::{ObcView, Seen};
use super::words::{CONFIG_KEYS, Pins, Told};

fn wanted(view: &ObcView, pins: &Pins) -> BTreeMap<&'static str, String> {
    let endpoint = desired::endpoint(&view.setting, pins);
    let [host, name, port, region, sub_region] = CONFIG_KEYS;
    [
        (host, endpoint.bucket_host),
        (name, endpoint.bucket_name),
        (port, endpoint.bucket_port.to_string()),
        (region, endpoint.region),
        (sub_region, endpoint.sub_region),
    ]
    .into()
}

/// Ensures that the ConfigMap exists with the wanted contents. A ConfigMap that the claim does not
/// control is left alone.
pub(super) fn ensure(view: &ObcView, pins: &Pins) -> Result<(), Halt> {
    let wanted = wanted(view, pins);
    let label = view.setting.label();
    let told = match &view.config_map {
        Seen::Unknown if view.is_map_taken => return Err(ObcLook::ConfigMap.into()),
        Seen::Unknown | Seen::Absent => {
            view.require_live()?;
            let metadata = ObjectMeta {
                name: Some(view.obc.at.name.clone()),
                namespace: Some(view.obc.at.namespace.clone()),
                labels: Some([(OBC_PROVISIONER.to_owned(), label)].into()),
                owner_references: Some(vec![view.obc.owner()]),
                ..ObjectMeta::default()
            };
            let data = wanted.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
            let content = ConfigMap { metadata, data: Some(data), ..ConfigMap::default() };
            return Err(ObcAct::CreateConfigMap(Box::new(content)).into());
        }
        Seen::Cached(told) | Seen::Live(told) => told,
    };
    let is_own = told.controller.as_deref() == Some(view.obc.uid());
    if is_own && told.data == wanted && told.label.as_ref() == Some(&label) {
        return Ok(());
    }
    if !view.config_map.is_live() {
        return Err(ObcLook::ConfigMap.into());
    }
    if !is_own {
        let why = format!("ConfigMap {} is there, and is not this claim's", view.obc.at.name);
        return Err(Stop::new(Phase::Pending, "NameTaken", why).into());
    }
    Err(ObcAct::PatchConfigMap(told.id.clone(), difference(told, &wanted, label)).into())
}

fn difference(told: &Told, wanted: &BTreeMap<&'static str, String>, label: String) -> Vec<Value> {
    let mut operations = Vec::new();
    if told.label.as_ref() != Some(&label) {
        operations.push(if told.labelled {
            json!({"op": "add", "path": format!("/metadata/labels/{OBC_PROVISIONER}"), "value": label})
        } else {
            json!({"op": "add", "path": "/metadata/labels", "value": {(OBC_PROVISIONER): label}})
        });
    }
    if !told.has_data {
        operations.push(json!({"op": "add", "path": "/data", "value": {}}));
    }
    for (key, value) in wanted.iter().filter(|(key, value)| told.data.get(*key) != Some(value)) {
        operations.push(json!({"op": "add", "path": format!("/data/{key}"), "value": value}));
    }
    operations
}
