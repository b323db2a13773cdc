//! Lists: selectors, pages with continue tokens, and resource versions.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use kube::core::Status;
use kube::core::response::reason;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::kind::Kind;
use super::route::Query;
use super::selector::Filter;
use super::status::{self, Failure, FieldError, bad_request};
use super::store::{Place, Shared, Store};

/// Start of the next page, and the version of the list.
#[derive(Debug, Serialize, Deserialize)]
struct Token {
    version: u64,
    /// Namespace and name of the last object on the previous page.
    after: (String, String),
}

/// A list, or a page of one.
pub(crate) struct List {
    pub(crate) objects: Vec<Shared>,
    pub(crate) metadata: Value,
}

/// Lists the current objects.
///
/// # Errors
/// 400 for bad parameters, 410 for a version or token that has expired, 504 for a version in the
/// future.
pub(crate) fn list(state: &Store, kind: &Kind, filter: &Filter, query: &Query) -> Result<List, Failure> {
    list_at(state, state.version(), kind, filter, query)
}

/// Lists objects as a server whose newest version is `current`.
///
/// # Errors
/// Like [`list`].
pub(crate) fn list_at(
    state: &Store,
    current: u64,
    kind: &Kind,
    filter: &Filter,
    query: &Query,
) -> Result<List, Failure> {
    let limit = query.number("limit")?.unwrap_or(0) as usize;
    let (version, after) = start(current, query)?;
    let objects = state.objects_at(kind, version).ok_or_else(|| forgotten(query, version, current))?;
    let mut matching = objects
        .into_iter()
        .filter(|(place, object)| after.as_ref().is_none_or(|after| *place > after) && filter.matches(place, object));
    let page: Vec<_> = if limit == 0 { matching.by_ref().collect() } else { matching.by_ref().take(limit).collect() };
    // A page is the last if no objects follow it, whether or not the selector matches them.
    let last = page.last().map(|(place, _)| *place);
    let all = || state.objects_at(kind, version).into_iter().flatten();
    let beyond = |place: &Place| filter.reaches(place) && last.is_some_and(|last| place > last);
    let full = limit > 0 && page.len() == limit;
    let rest = if full { all().filter(|(place, _)| beyond(place)).count() } else { 0 };
    let mut metadata = json!({"resourceVersion": version.to_string()});
    if kind.is_custom() {
        metadata["continue"] = "".into();
    }
    if rest > 0
        && let Some((place, _)) = page.last()
    {
        let token = Token { version, after: (place.namespace.clone(), place.name.clone()) };
        let text = serde_json::to_vec(&token).expect("a token is JSON");
        metadata["continue"] = URL_SAFE_NO_PAD.encode(text).into();
        if !filter.selects() {
            metadata["remainingItemCount"] = rest.into();
        }
    }
    Ok(List { objects: page.into_iter().map(|(_, object)| object.clone()).collect(), metadata })
}

/// Returns the version to list at, and the place after which the page starts.
fn start(current: u64, query: &Query) -> Result<(u64, Option<Place>), Failure> {
    let asked = query.number("resourceVersion")?;
    let matching = query.get("resourceVersionMatch");
    if let Some(token) = query.get("continue") {
        if asked.is_some_and(|asked| asked != 0) {
            return Err(bad_request("specifying resource version is not allowed when using continue"));
        }
        let token: Option<Token> =
            URL_SAFE_NO_PAD.decode(token).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let token = token.ok_or_else(|| bad_request("invalid continue token: continue key is not valid"))?;
        return Ok((token.version, Some(Place::new(&token.after.0, &token.after.1))));
    }
    let refuse = |why: &str| {
        let error = FieldError::forbidden("resourceVersionMatch", why);
        status::invalid("meta.k8s.io", "ListOptions", "", &[error])
    };
    match (matching, asked) {
        (Some(_), None) => Err(refuse("resourceVersionMatch is forbidden unless resourceVersion is provided")),
        (Some("Exact"), Some(0)) => {
            Err(refuse("resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\""))
        }
        (_, Some(asked)) if asked > current => Err(status::version_too_large(asked, current)),
        (Some("Exact"), Some(asked)) => Ok((asked, None)),
        (Some("NotOlderThan") | None, _) => Ok((current, None)),
        (Some(other), _) => {
            let kind = super::status::FieldErrorKind::NotSupported;
            let detail = "supported values: \"Exact\", \"NotOlderThan\", \"\"";
            let error = FieldError::new(kind, "resourceVersionMatch", other.into(), detail);
            Err(status::invalid("meta.k8s.io", "ListOptions", "", &[error]))
        }
    }
}

fn forgotten(query: &Query, asked: u64, current: u64) -> Failure {
    if query.get("continue").is_none() {
        return status::expired(asked, current);
    }
    let text = "The provided continue parameter is too old to display a consistent list result. You must start a new list without the continue parameter.";
    Status::failure(text, reason::EXPIRED).with_code(410).boxed()
}
