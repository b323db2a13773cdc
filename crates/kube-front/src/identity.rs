//! The caller of a request: the owner of its token, an anonymous user, or an impersonated user.

use std::collections::BTreeMap;

use http::HeaderMap;
use http::header::AUTHORIZATION;
use kube::core::Status;
use serde_json::{Value, json};

use kube_sim::status::{Failure, bad_request};

/// The group of all users with a known token.
const AUTHENTICATED: &str = "system:authenticated";
/// The group of all other users.
const UNAUTHENTICATED: &str = "system:unauthenticated";

/// A caller as the API server identifies them. Plain data without secrets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// The user's name, such as `admin` or `system:serviceaccount:default:builder`.
    pub user: String,
    /// The groups of the user; `system:authenticated` and the like are added automatically.
    pub groups: Vec<String>,
    /// A unique id of the user, never reused; empty if there is none.
    pub uid: String,
    /// Additional attributes of the user, such as scopes.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl Identity {
    /// Creates a user in these groups, without further attributes.
    pub fn new(user: &str, groups: &[&str]) -> Self {
        let groups = groups.iter().map(|group| (*group).to_owned()).collect();
        Self { user: user.to_owned(), groups, ..Self::default() }
    }

    /// Creates the user of a ServiceAccount, with the API server's name for it.
    pub fn service_account(namespace: &str, name: &str, uid: &str) -> Self {
        let groups = ["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{namespace}")];
        let user = format!("system:serviceaccount:{namespace}:{name}");
        Self { user, groups: groups.to_vec(), uid: uid.to_owned(), extra: BTreeMap::new() }
    }

    /// Creates the user for requests without a token, where those are allowed.
    pub fn anonymous() -> Self {
        Self::new("system:anonymous", &[UNAUTHENTICATED])
    }

    /// Adds the group of authenticated users.
    pub(super) fn authenticated(mut self) -> Self {
        let in_one = self.groups.iter().any(|group| group == AUTHENTICATED || group == UNAUTHENTICATED);
        if !in_one {
            self.groups.push(AUTHENTICATED.to_owned());
        }
        self
    }

    /// Returns the user as reviews contain it (`authentication.k8s.io/v1` `UserInfo`).
    pub(super) fn user_info(&self) -> Value {
        let mut info = json!({"username": self.user, "groups": self.groups});
        if !self.uid.is_empty() {
            info["uid"] = self.uid.clone().into();
        }
        if !self.extra.is_empty() {
            info["extra"] = json!(self.extra);
        }
        info
    }
}

/// Returns the bearer token of a request; `None` for a request without one.
pub(super) fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(AUTHORIZATION)?.to_str().ok()?.trim().split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim()).filter(|token| !token.is_empty())
}

/// Returns the user to impersonate (`Impersonate-User` and related headers); `None` if the request
/// has no such headers.
///
/// # Errors
/// Returns 400 for groups or a UID without a user.
pub(super) fn impersonated(headers: &HeaderMap) -> Result<Option<Identity>, Failure> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let groups = headers.get_all("impersonate-group").iter().filter_map(|value| value.to_str().ok());
    let groups: Vec<String> = groups.map(str::to_owned).collect();
    let user = text("impersonate-user");
    if user.is_empty() {
        let more = !groups.is_empty() || headers.contains_key("impersonate-uid");
        return if more { Err(bad_request("requested groups or uid without impersonating a user")) } else { Ok(None) };
    }
    let account = user.strip_prefix("system:serviceaccount:").and_then(|rest| rest.split_once(':'));
    let mut identity = match account {
        Some((namespace, name)) if groups.is_empty() => Identity::service_account(namespace, name, ""),
        _ if user == "system:anonymous" => Identity::anonymous(),
        _ => Identity { user: user.to_owned(), groups, ..Identity::default() },
    };
    identity.uid = text("impersonate-uid").to_owned();
    for name in headers.keys() {
        let Some(key) = name.as_str().strip_prefix("impersonate-extra-") else { continue };
        let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok().map(str::to_owned));
        identity.extra.insert(key.to_owned(), values.collect());
    }
    Ok(Some(identity.authenticated()))
}

/// Returns `401`: the token is unknown, or the request needs one.
pub(super) fn unauthorized() -> Failure {
    Status::failure("Unauthorized", "Unauthorized").with_code(401).boxed()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, http::HeaderValue::from_static(value));
        }
        headers
    }

    #[test]
    fn a_token_is_read_whatever_the_case_of_its_scheme() {
        assert_eq!(bearer(&headers(&[("authorization", "bearer  abc ")])), Some("abc"));
        assert_eq!(bearer(&headers(&[("authorization", "Basic abc")])), None);
        assert_eq!(bearer(&headers(&[("authorization", "Bearer ")])), None);
    }

    #[test]
    fn whom_somebody_speaks_for_is_in_the_groups_that_they_name() {
        let pairs = [("impersonate-user", "ann"), ("impersonate-group", "a"), ("impersonate-group", "b")];
        let identity = impersonated(&headers(&pairs)).expect("sound").expect("somebody");
        assert_eq!(identity, Identity::new("ann", &["a", "b", "system:authenticated"]));
    }

    #[test]
    fn a_service_account_that_is_spoken_for_is_in_its_groups() {
        let pairs = [("impersonate-user", "system:serviceaccount:team:app")];
        let identity = impersonated(&headers(&pairs)).expect("sound").expect("somebody");
        assert!(identity.groups.contains(&"system:serviceaccounts:team".to_owned()));
    }

    #[test]
    fn groups_of_nobody_are_refused() {
        assert!(impersonated(&headers(&[("impersonate-group", "a")])).is_err());
        assert_eq!(impersonated(&headers(&[])).expect("sound"), None);
    }
}
