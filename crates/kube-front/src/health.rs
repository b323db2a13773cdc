//! Health and version of the server.

use bytes::Bytes;
use http::{Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full};
use serde_json::json;

use kube_sim::output::{self, ApiBody};
use kube_sim::route::Query;

/// The names of the health checks, as in `/readyz/{name}`.
const CHECKS: [&str; 2] = ["ping", "store"];

/// Returns the answer at and below `/healthz`, `/livez` and `/readyz`; `None` for other paths. The
/// answer is always `ok`: a server in memory that answers at all is healthy.
pub(super) fn answer(path: &str, query: &Query, verbose: bool) -> Option<Response<ApiBody>> {
    let mut parts = path.trim_matches('/').splitn(2, '/');
    let probe = parts.next().filter(|probe| matches!(*probe, "healthz" | "livez" | "readyz"))?;
    if let Some(check) = parts.next() {
        return CHECKS.contains(&check).then(|| text("ok".to_owned()));
    }
    if !verbose && query.get("exclude").is_none() {
        return Some(text("ok".to_owned()));
    }
    let lines: String = CHECKS.iter().map(|check| format!("[+]{check} ok\n")).collect();
    Some(text(if verbose { format!("{lines}{probe} check passed\n") } else { "ok".to_owned() }))
}

fn text(text: String) -> Response<ApiBody> {
    let mut response = Response::new(Full::new(Bytes::from(text)).boxed_unsync());
    *response.status_mut() = StatusCode::OK;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, header::HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(header::CACHE_CONTROL, header::HeaderValue::from_static("no-cache, private"));
    response
}

/// Returns the answer at `/version` for a version such as `1.34.4`. It is indented, as an API
/// server's always is.
pub(super) fn version(version: &str) -> Response<ApiBody> {
    let mut numbers = version.split('.');
    let (major, minor) = (numbers.next().unwrap_or_default(), numbers.next().unwrap_or_default());
    let document = json!({
        "major": major,
        "minor": minor,
        "gitVersion": format!("v{version}"),
        "gitCommit": "",
        "gitTreeState": "",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "",
        "platform": "simulated",
    });
    output::answer_text(StatusCode::OK, format!("{document:#}").into(), &[])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_check_has_a_path_of_its_own() {
        let query = Query::default();
        assert!(answer("/readyz/ping", &query, false).is_some());
        assert!(answer("/readyz/etcd", &query, false).is_none());
        assert!(answer("/ready", &query, false).is_none());
    }
}
