//! Recordings of user actions in a running simulator, step by step. `stowage-sim history` writes
//! them, and `stowage-proof replay --history` plays them again.
//!
//! A recording is plain data. A step is a write that was sent to the Kubernetes API, a move of the
//! clock, or a start or stop of the operator. Actions of the operator are not recorded, because it
//! performs them again. Values of Secrets are not recorded either: `redact` replaces them.

mod redact;

use std::fmt;

use faults::KubeCall;
use http::{Method, Uri};
use jiff::SignedDuration;
use jiff::fmt::serde::duration::friendly::compact;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use redact::StandIns;

/// Maximum number of steps in a recording.
pub const MOST_STEPS: usize = 10_000;

/// Maximum duration of a recording, including moves of the clock: a hundred years.
const MOST_TIME: SignedDuration = SignedDuration::from_hours(100 * 366 * 24);

/// Comment at the top of a recording file.
const HEAD: &str = "\
# What was done in a simulator: stowage-proof replay --history plays it again.
# Of Secrets only names are true: values are replaced, the same one for the same value. All else
# stands as it was sent. What the operator did is not in it, nor what went through the gateway.
";

/// A recording of user actions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Deeds {
    /// State before the first step.
    pub began: Began,
    /// True if ObjectBucketClaims are served.
    #[serde(default)]
    pub obc: bool,
    /// Steps, in order.
    pub steps: Vec<Step>,
    /// Duration after the last step.
    #[serde(serialize_with = "compact::required")]
    pub afterwards: SignedDuration,
    /// Calls that met a fault.
    #[serde(default)]
    pub met: Vec<Met>,
    /// Writes that were not recorded.
    #[serde(default)]
    pub left_out: LeftOut,
}

/// A call that met a fault.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Met {
    /// The fault as written in the plan.
    pub fault: String,
    /// The call.
    pub call: String,
}

/// State before the first step of a recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Began {
    /// An empty simulator.
    #[default]
    Empty,
    /// The contents of a data directory.
    WithData,
    /// The contents of a snapshot.
    FromSnapshot,
}

/// Numbers of writes that are not steps of the recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LeftOut {
    /// Writes after the recording was full.
    pub beyond_room: u64,
    /// Writes in a format that is not supported.
    pub unread: u64,
    /// Writes to Events and Leases by others.
    pub routine: u64,
}

/// One recorded action.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// Time since the previous step; for the first step, since the beginning.
    #[serde(serialize_with = "compact::required")]
    pub after: SignedDuration,
    /// The action.
    #[serde(flatten)]
    pub deed: Deed,
    /// Body of the request; null if there is none.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub with: Value,
}

/// A recorded action. A write has path and query at the Kubernetes API.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Deed {
    /// POST.
    Create(String),
    /// PUT.
    Replace(String),
    /// PATCH with server-side apply.
    Apply(String),
    /// PATCH with a merge patch.
    MergePatch(String),
    /// PATCH with a JSON patch.
    JsonPatch(String),
    /// PATCH with a strategic merge patch.
    StrategicPatch(String),
    /// DELETE.
    Delete(String),
    /// The clock was moved ahead while no operator was running.
    Advance(#[serde(serialize_with = "compact::required")] SignedDuration),
    /// A start or stop of the simulator's operator.
    Operator(Shift),
}

/// Start or stop of the operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Shift {
    /// The operator starts.
    Starts,
    /// The operator is stopped and ends.
    Stops,
}

impl Deed {
    /// Returns method, path and content type of the request; `None` if the action is not a write.
    pub fn request(&self) -> Option<(Method, &str, &'static str)> {
        Some(match self {
            Self::Create(place) => (Method::POST, place, "application/json"),
            Self::Replace(place) => (Method::PUT, place, "application/json"),
            Self::Apply(place) => (Method::PATCH, place, "application/apply-patch+yaml"),
            Self::MergePatch(place) => (Method::PATCH, place, "application/merge-patch+json"),
            Self::JsonPatch(place) => (Method::PATCH, place, "application/json-patch+json"),
            Self::StrategicPatch(place) => (Method::PATCH, place, "application/strategic-merge-patch+json"),
            Self::Delete(place) => (Method::DELETE, place, "application/json"),
            Self::Advance(_) | Self::Operator(_) => return None,
        })
    }

    /// Returns the write for a request; `None` for any other patch format.
    pub fn of(method: &Method, content_type: &str, place: String) -> Option<Self> {
        Some(match (method.as_str(), content_type) {
            ("POST", _) => Self::Create(place),
            ("PUT", _) => Self::Replace(place),
            ("DELETE", _) => Self::Delete(place),
            ("PATCH", "application/apply-patch+yaml") => Self::Apply(place),
            ("PATCH", "application/merge-patch+json") => Self::MergePatch(place),
            ("PATCH", "application/json-patch+json") => Self::JsonPatch(place),
            ("PATCH", "application/strategic-merge-patch+json") => Self::StrategicPatch(place),
            _ => return None,
        })
    }

    /// Returns the write as a call of the Kubernetes API.
    pub fn call(&self) -> Option<KubeCall> {
        let (method, place, _) = self.request()?;
        Some(KubeCall::read(&method, &place.parse::<Uri>().ok()?))
    }

    fn word(&self) -> &'static str {
        match self {
            Self::Create(_) => "creates",
            Self::Replace(_) => "replaces",
            Self::Apply(_) => "applies",
            Self::MergePatch(_) | Self::JsonPatch(_) | Self::StrategicPatch(_) => "patches",
            Self::Delete(_) => "deletes",
            Self::Advance(_) => "advances",
            Self::Operator(_) => "operates",
        }
    }
}

impl fmt::Display for Step {
    /// Formats `a user applies bucketclaims team-a/photos`, never the content of the object.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.deed {
            Deed::Advance(by) => return write!(f, "time is moved {by:#} ahead"),
            Deed::Operator(Shift::Starts) => return f.write_str("an operator is started"),
            Deed::Operator(Shift::Stops) => return f.write_str("an operator is stopped"),
            _ => {}
        }
        let Some(call) = self.deed.call() else { return f.write_str("a user asks for what can't be read") };
        let name = call.name.as_deref().or(self.with["metadata"]["name"].as_str()).unwrap_or("all of them");
        write!(f, "a user {} {}", self.deed.word(), call.resource)?;
        if let Some(subresource) = &call.subresource {
            write!(f, "/{subresource}")?;
        }
        match &call.namespace {
            Some(namespace) => write!(f, " {namespace}/{name}"),
            None => write!(f, " {name}"),
        }
    }
}

impl Deeds {
    /// Parses the output of [`Deeds::text`].
    ///
    /// # Errors
    /// Returns an error message that does not quote the text.
    pub fn read(text: &str) -> Result<Self, String> {
        let value: Value = match text.trim_start().starts_with('{') {
            true => serde_json::from_str(text).map_err(|error| error.to_string())?,
            false => serde_saphyr::from_str(text).map_err(|error| error.without_snippet().to_string())?,
        };
        let deeds: Self = serde_json::from_value(value).map_err(|error| error.to_string())?;
        if deeds.steps.len() > MOST_STEPS {
            return Err(format!("it has {} steps, and {MOST_STEPS} at most are played", deeds.steps.len()));
        }
        let mut takes = deeds.afterwards;
        for (number, step) in (1..).zip(&deeds.steps) {
            let leap = if let Deed::Advance(by) = step.deed { by } else { SignedDuration::ZERO };
            takes = takes.saturating_add(step.after).saturating_add(leap);
            let is_resource = |call: KubeCall| !call.resource.starts_with('/');
            let is_write = step.deed.request().is_some();
            if is_write && !step.deed.call().is_some_and(is_resource) {
                return Err(format!("step {number} names no path of the Kubernetes API"));
            }
            if step.after.is_negative() || leap.is_negative() {
                return Err(format!("step {number} goes back in time"));
            }
        }
        if deeds.afterwards.is_negative() || takes > MOST_TIME {
            return Err("it takes less than no time, or more than a hundred years".to_owned());
        }
        Ok(deeds)
    }

    /// Returns the recording as YAML, or as JSON if the YAML would be parsed differently.
    ///
    /// # Errors
    /// Returns an error message if it cannot be serialized.
    pub fn text(&self) -> Result<String, String> {
        let value = serde_json::to_value(self).map_err(|error| error.to_string())?;
        if let Ok(yaml) = serde_saphyr::to_string(&value) {
            let text = format!("{HEAD}{yaml}");
            if Self::read(&text).as_ref() == Ok(self) {
                return Ok(text);
            }
        }
        serde_json::to_string_pretty(&value).map_err(|error| error.to_string())
    }

    /// Returns the limitations of the recording, one sentence each.
    pub fn caveats(&self) -> Vec<String> {
        let LeftOut { beyond_room, unread, .. } = self.left_out;
        let began = match self.began {
            Began::Empty => None,
            Began::WithData => Some("the simulator began with what its directory held, which isn't in it"),
            Began::FromSnapshot => Some("the simulator went on from a snapshot, which isn't in it"),
        };
        let full = (beyond_room > 0).then(|| {
            format!("there was no more room: the last {beyond_room} writes are not in it, `reset` begins anew")
        });
        let unread = (unread > 0).then(|| format!("{unread} writes were of a form that isn't read, and are not in it"));
        let works = self.steps.iter().any(|step| step.deed == Deed::Operator(Shift::Starts));
        let idle = (!works).then(|| "no operator of the simulator's own was at work".to_owned());
        began.map(str::to_owned).into_iter().chain(full).chain(unread).chain(idle).collect()
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    fn deeds() -> Deeds {
        let step = |after, deed, with| Step { after: SignedDuration::from_millis(after), deed, with };
        let claims = "/apis/broker.stowage.io/v1alpha1/namespaces/team-a/bucketclaims";
        let claim = json!({"metadata": {"name": "photos"}, "spec": {"note": "two\nlines: \"yes\" # no", "on": "true"}});
        Deeds {
            steps: vec![
                step(0, Deed::Operator(Shift::Starts), Value::Null),
                step(1250, Deed::Create(claims.to_owned()), claim),
                step(0, Deed::JsonPatch(format!("{claims}/photos")), json!([{"op": "remove", "path": "/spec/on"}])),
                step(10, Deed::Advance(SignedDuration::from_hours(36)), Value::Null),
                step(5, Deed::Delete(format!("{claims}/photos?propagationPolicy=Background")), Value::Null),
            ],
            afterwards: SignedDuration::from_secs(90),
            met: vec![Met { fault: "#1 hang".to_owned(), call: "kube:list secrets".to_owned() }],
            left_out: LeftOut { routine: 3, ..LeftOut::default() },
            ..Deeds::default()
        }
    }

    #[test]
    fn a_file_is_read_as_it_was_written_and_is_one_that_people_read() {
        let text = deeds().text().expect("it can be written");
        assert!(text.starts_with('#') && text.contains("after: 1s 250ms") && text.contains("advance: 36h"), "{text}");
        assert_eq!(Deeds::read(&text), Ok(deeds()));
        let json = serde_json::to_string(&deeds()).expect("it is JSON");
        assert_eq!(Deeds::read(&json), Ok(deeds()));
    }

    #[rstest]
    #[case("- 1", "invalid type")]
    #[case("{began: empty, steps: [{after: 1s, deleted: /api/v1/namespaces/a}], afterwards: 1s}", "no variant")]
    #[case("{began: empty, steps: [{after: 1s, delete: /version}], afterwards: 1s}", "step 1 names no path")]
    #[case("{began: empty, steps: [{after: -1s, operator: stops}], afterwards: 1s}", "step 1 goes back")]
    #[case("{began: empty, steps: [{after: 1s, advance: 900000h}], afterwards: 1s}", "a hundred years")]
    #[case("{began: empty, steps: [], afterwards: 1s, more: 1}", "unknown field")]
    fn what_is_none_is_refused(#[case] text: &str, #[case] why: &str) {
        // The comment keeps the parser from treating the braces as JSON.
        let refused = Deeds::read(&format!("# a remark\n{text}")).expect_err("it is none");
        assert!(refused.contains(why), "{refused}");
    }

    #[test]
    fn a_step_is_told_by_its_names_alone() {
        let told: Vec<String> = deeds().steps.iter().map(ToString::to_string).collect();
        let expected = [
            "an operator is started",
            "a user creates bucketclaims team-a/photos",
            "a user patches bucketclaims team-a/photos",
            "time is moved 36h ahead",
            "a user deletes bucketclaims team-a/photos",
        ];
        assert_eq!(told, expected);
    }

    #[test]
    fn what_is_missing_is_said() {
        assert_eq!(deeds().caveats(), [] as [&str; 0]);
        let partly = Deeds {
            began: Began::FromSnapshot,
            left_out: LeftOut { beyond_room: 2, unread: 1, routine: 0 },
            ..Deeds::default()
        };
        let told = partly.caveats();
        assert_eq!(told.len(), 4, "{told:?}");
        assert!(told[0].contains("snapshot") && told[1].contains("last 2 writes"), "{told:?}");
    }
}
