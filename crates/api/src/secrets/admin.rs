//! The Secret with a store's credentials (spec §1). A backend references it. The Secret's owner
//! controls the endpoints to which its values may be sent, with a label and an annotation.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use k8s_openapi::api::core::v1::Secret;

use super::super::backend::AdminCredentialsSecretRef;
use super::super::names::Endpoint;
use super::super::wire::{self, Role};
use super::SecretKey;

/// Credentials of a store for one endpoint, created only by [`AdminKey::read`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdminKey {
    /// Access key id, which is sent unencrypted.
    pub id: String,
    /// Secret key, with which requests are signed.
    pub secret: SecretKey,
    /// Missing consent, if the Secret is used nevertheless.
    pub lack: Option<Lack>,
}

/// Policy for Secrets that have neither the label nor the annotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unlabelled {
    /// Unlabelled Secrets are not used.
    Refused,
    /// Unlabelled Secrets are used, for the duration of an upgrade.
    Accepted,
}

/// Error for a Secret that contains no usable credentials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AdminSecretError {
    /// The Secret is one of the operator's internal Secrets.
    Internal,
    /// The Secret's owner does not allow this use.
    Lacks(Lack),
    /// A field is missing, empty or not text.
    NoField(String),
}

/// Consent missing before the Secret's values may be sent to an endpoint. `Display` ends with the
/// lines to add to the Secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lack {
    endpoint: Endpoint,
    label: bool,
    annotation: Annotation,
}

/// Relation of a Secret's annotation to an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Annotation {
    /// The annotation names the endpoint.
    Names,
    /// The annotation is absent or empty.
    Absent,
    /// The annotation names only other endpoints.
    NamesOthers,
    /// The annotation does not name the endpoint, and this entry, counted from 1, is not a valid
    /// endpoint.
    Unreadable(usize),
}

/// Consent of a Secret's owner.
struct Consent {
    /// Value of the label; `None` if it is absent.
    label: Option<bool>,
    /// Endpoints in the annotation; `None` if it is absent.
    endpoints: Option<Endpoints>,
}

/// Endpoints named by an annotation.
struct Endpoints {
    named: BTreeSet<Endpoint>,
    /// First entry, counted from 1, that is not a valid endpoint.
    unreadable: Option<usize>,
}

impl AdminKey {
    /// Reads the key that `reference` names from `secret`, for use at `endpoint` only.
    ///
    /// # Errors
    /// Returns an error if the Secret's owner does not allow this use, or the Secret does not
    /// contain the key.
    pub fn read(
        secret: &Secret,
        reference: &AdminCredentialsSecretRef,
        endpoint: &Endpoint,
        unlabelled: Unlabelled,
    ) -> Result<Self, AdminSecretError> {
        if is_internal(secret) {
            return Err(AdminSecretError::Internal);
        }
        let consent = Consent::of(secret);
        let lack = consent.lack(endpoint);
        if let Some(lack) = lack.clone().filter(|_| !(consent.is_silent() && unlabelled == Unlabelled::Accepted)) {
            return Err(AdminSecretError::Lacks(lack));
        }
        let id = field(secret, &reference.access_key_field)?;
        Ok(Self { id, secret: SecretKey::new(field(secret, &reference.secret_key_field)?), lack })
    }
}

/// Returns true if the Secret has the name or the role of one of the operator's internal Secrets.
fn is_internal(secret: &Secret) -> bool {
    let role = secret.metadata.labels.as_ref().and_then(|labels| labels.get(wire::ROLE));
    let is_named_so = secret.metadata.name.as_deref().is_some_and(wire::is_internal_name);
    is_named_so || role.is_some_and(|role| Role::ALL.iter().any(|ours| ours.as_str() == role))
}

fn field(secret: &Secret, name: &str) -> Result<String, AdminSecretError> {
    let bytes = secret.data.as_ref().and_then(|data| data.get(name));
    let text = bytes.and_then(|bytes| std::str::from_utf8(&bytes.0).ok()).map(str::trim);
    let text = text.filter(|text| !text.is_empty());
    text.map(str::to_owned).ok_or_else(|| AdminSecretError::NoField(name.to_owned()))
}

impl Consent {
    fn of(secret: &Secret) -> Self {
        let value = |map: &Option<BTreeMap<String, String>>, key| map.as_ref()?.get(key).cloned();
        Self {
            label: value(&secret.metadata.labels, wire::BACKEND_CREDENTIALS).map(|value| value == "true"),
            endpoints: value(&secret.metadata.annotations, wire::ENDPOINTS).map(|text| Endpoints::parse(&text)),
        }
    }

    /// Returns true if the Secret has neither the label nor the annotation.
    fn is_silent(&self) -> bool {
        self.label.is_none() && self.endpoints.is_none()
    }

    /// Returns the consent missing for `endpoint`, if any.
    fn lack(&self, endpoint: &Endpoint) -> Option<Lack> {
        let label = self.label != Some(true);
        let annotation = self.endpoints.as_ref().map_or(Annotation::Absent, |named| named.say_of(endpoint));
        let lacks = label || annotation != Annotation::Names;
        lacks.then(|| Lack { endpoint: endpoint.clone(), label, annotation })
    }
}

impl Endpoints {
    /// Parses entries separated by commas or white space. An invalid entry names no endpoint.
    fn parse(text: &str) -> Self {
        let entries = text.split(|c: char| c == ',' || c.is_whitespace()).filter(|entry| !entry.is_empty());
        let (mut named, mut unreadable) = (BTreeSet::new(), None);
        for (number, entry) in (1..).zip(entries) {
            match Endpoint::parse(entry) {
                Ok(endpoint) => drop(named.insert(endpoint)),
                Err(_) => unreadable = unreadable.or(Some(number)),
            }
        }
        Self { named, unreadable }
    }

    fn say_of(&self, endpoint: &Endpoint) -> Annotation {
        match self.unreadable {
            _ if self.named.contains(endpoint) => Annotation::Names,
            Some(number) => Annotation::Unreadable(number),
            None if self.named.is_empty() => Annotation::Absent,
            None => Annotation::NamesOthers,
        }
    }
}

/// Writes the endpoint in quotes, because it is chosen by the editor of a backend. The lines to
/// copy therefore contain nothing else.
impl fmt::Display for Lack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "its owner has not said that its values may be sent to the backend's endpoint")?;
        if let Annotation::Unreadable(number) = self.annotation {
            write!(f, " (entry {number} of its annotation {} is no endpoint)", wire::ENDPOINTS)?;
        }
        write!(f, "; if they may, add:")?;
        if self.label {
            write!(f, "\nlabels:\n  {}: \"true\"", wire::BACKEND_CREDENTIALS)?;
        }
        let endpoint = self.endpoint.as_str();
        match self.annotation {
            Annotation::Names => Ok(()),
            Annotation::Absent => write!(f, "\nannotations:\n  {}: {endpoint:?}", wire::ENDPOINTS),
            Annotation::NamesOthers | Annotation::Unreadable(_) => {
                write!(f, "\nto the list in the annotation {}: {endpoint:?}", wire::ENDPOINTS)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;

    const HERE: &str = "http://s3.example:9000";

    fn reference() -> AdminCredentialsSecretRef {
        let reference = json!({"name": "admin", "namespace": "stowage-system"});
        serde_json::from_value(reference).expect("a reference")
    }

    fn secret(name: &str, labels: Value, annotations: Value) -> Secret {
        let data = json!({"AWS_ACCESS_KEY_ID": "aWQ=", "AWS_SECRET_ACCESS_KEY": "a2V5", "empty": ""});
        let metadata = json!({"name": name, "labels": labels, "annotations": annotations});
        serde_json::from_value(json!({"metadata": metadata, "data": data})).expect("a Secret")
    }

    fn opted_in(endpoints: &str) -> Secret {
        secret("admin", json!({wire::BACKEND_CREDENTIALS: "true"}), json!({wire::ENDPOINTS: endpoints}))
    }

    fn read(secret: &Secret, endpoint: &str, unlabelled: Unlabelled) -> Result<AdminKey, AdminSecretError> {
        AdminKey::read(secret, &reference(), &Endpoint::parse(endpoint).expect("a URL"), unlabelled)
    }

    fn lack(secret: &Secret, endpoint: &str) -> String {
        match read(secret, endpoint, Unlabelled::Refused) {
            Err(AdminSecretError::Lacks(lack)) => lack.to_string(),
            other => panic!("{other:?}"),
        }
    }

    // covers: 1.backend.credentials.endpoints
    #[rstest]
    #[case("http://s3.example:9000", true)]
    #[case("HTTP://S3.EXAMPLE:9000/", true)]
    #[case("http://other.example, http://s3.example:9000", true)]
    #[case("http://other.example\n\thttp://s3.example:9000\n", true)]
    #[case("nonsense,http://s3.example:9000", true)]
    #[case("https://s3.example:9000", false)]
    #[case("http://s3.example", false)]
    #[case("http://s3.example:9001", false)]
    #[case("http://s3.example.:9000", false)]
    #[case("http://evil.s3.example:9000", false)]
    #[case("http://*.example:9000", false)]
    #[case("http://s3.example:9000/path", false)]
    #[case("s3.example:9000", false)]
    #[case("", false)]
    fn an_endpoint_is_named_by_scheme_host_and_port(#[case] list: &str, #[case] named: bool) {
        assert_eq!(read(&opted_in(list), HERE, Unlabelled::Refused).is_ok(), named);
        let accepted = read(&opted_in(list), HERE, Unlabelled::Accepted);
        assert_eq!(accepted.is_ok(), named, "what the owner says counts whatever the operator was told");
    }

    // covers: 1.backend.credentials.optIn
    #[test]
    fn the_refusal_ends_with_what_is_to_be_added() {
        let silent = lack(&secret("admin", json!({}), json!({})), HERE);
        let lines = "; if they may, add:\nlabels:\n  broker.stowage.io/backend-credentials: \"true\"\nannotations:\n  \
                     broker.stowage.io/endpoints: \"http://s3.example:9000\"";
        assert!(silent.ends_with(lines), "{silent}");
        let unlabelled = lack(&secret("admin", json!({}), json!({wire::ENDPOINTS: HERE})), HERE);
        assert!(unlabelled.ends_with("backend-credentials: \"true\""), "{unlabelled}");
        let other = lack(&opted_in("http://other.example"), HERE);
        assert!(
            other.ends_with("\nto the list in the annotation broker.stowage.io/endpoints: \"http://s3.example:9000\"")
        );
        let unreadable = lack(&opted_in("http://other.example ://"), HERE);
        assert!(unreadable.contains("(entry 2 of its annotation broker.stowage.io/endpoints is no endpoint)"));
    }

    /// The endpoint is chosen by an attacker, and a host may contain quotes.
    #[test]
    fn what_is_to_be_copied_says_nothing_else() {
        let lack = lack(&secret("admin", json!({}), json!({})), "http://a\"b'$(id).example");
        let line = lack.lines().last().expect("a line").trim();
        assert_eq!(line, r#"broker.stowage.io/endpoints: "http://a\"b'$(id).example""#);
    }

    // covers: 1.backend.credentials.unlabelled
    #[test]
    fn a_secret_whose_owner_says_nothing_can_be_accepted_and_lacks_what_it_lacks() {
        let silent = secret("admin", json!({"app": "store"}), json!({}));
        assert!(read(&silent, HERE, Unlabelled::Accepted).is_ok_and(|key| key.lack.is_some()));
        let refused = secret("admin", json!({wire::BACKEND_CREDENTIALS: "false"}), json!({}));
        assert!(read(&refused, HERE, Unlabelled::Accepted).is_err());
    }

    // covers: 1.backend.credentials.internal
    #[rstest]
    #[case("br-0256d38414e1bdd362c6fc38acbb3d9931ec5283")]
    #[case("vc-akiasioprpitjzkgfnyl")]
    #[case("ab-0f7c5b1e-0000-4000-8000-000000000001")]
    #[case("ar-x")]
    #[case("va-x")]
    fn a_secret_of_the_operators_own_is_never_one(#[case] name: &str) {
        let mut own = opted_in(HERE);
        own.metadata.name = Some(name.to_owned());
        assert_eq!(read(&own, HERE, Unlabelled::Accepted).err(), Some(AdminSecretError::Internal));
    }

    // covers: 1.backend.credentials.internal
    #[test]
    fn a_role_of_ours_tells_a_secret_of_ours_whatever_it_is_called() {
        for role in Role::ALL {
            let mut own = opted_in(HERE);
            let labels = own.metadata.labels.get_or_insert_default();
            labels.insert(wire::ROLE.to_owned(), role.as_str().to_owned());
            assert_eq!(read(&own, HERE, Unlabelled::Refused).err(), Some(AdminSecretError::Internal));
        }
    }

    // covers: 1.backend.credentials.fields
    #[test]
    fn a_key_has_both_halves() {
        let key = read(&opted_in(HERE), HERE, Unlabelled::Refused).expect("a key");
        assert_eq!((key.id.as_str(), key.secret.expose(), key.lack), ("id", "key", None));
        for field in ["empty", "absent"] {
            let reference = AdminCredentialsSecretRef { secret_key_field: field.to_owned(), ..reference() };
            let here = Endpoint::parse(HERE).expect("a URL");
            let read = AdminKey::read(&opted_in(HERE), &reference, &here, Unlabelled::Refused);
            assert_eq!(read.err(), Some(AdminSecretError::NoField(field.to_owned())));
        }
    }
}
