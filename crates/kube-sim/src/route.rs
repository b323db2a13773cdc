//! Paths and queries of the Kubernetes API.

use std::collections::BTreeMap;

use percent_encoding::percent_decode_str;

use super::status::{Failure, bad_request};

/// Target of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// API group, empty for the core group.
    pub group: String,
    /// API version, such as `v1`.
    pub version: String,
    /// Namespace, empty if the path has none.
    pub namespace: String,
    /// Resource name, such as `secrets`.
    pub plural: String,
    /// Name of the object; `None` for a collection.
    pub name: Option<String>,
    /// Subresource, such as `status`; `None` for the object itself.
    pub subresource: Option<String>,
}

impl Route {
    /// Parses a path; `None` if it is not that of a resource.
    pub fn parse(path: &str) -> Option<Self> {
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        let (group, version, rest) = match parts.as_slice() {
            ["api", version, rest @ ..] => ("", *version, rest),
            ["apis", group, version, rest @ ..] => (*group, *version, rest),
            _ => return None,
        };
        let (namespace, rest) = match rest {
            // `/namespaces/x` and `/namespaces/x/status` refer to the namespace itself.
            ["namespaces", namespace, plural, rest @ ..] if !(group.is_empty() && is_subresource(plural)) => {
                (*namespace, [&[*plural][..], rest].concat())
            }
            rest => ("", rest.to_vec()),
        };
        let (plural, name, subresource) = match rest.as_slice() {
            [plural] => (*plural, None, None),
            [plural, name] => (*plural, Some(*name), None),
            [plural, name, subresource] => (*plural, Some(*name), Some(*subresource)),
            _ => return None,
        };
        Some(Self {
            group: group.to_owned(),
            version: version.to_owned(),
            namespace: decode(namespace),
            plural: plural.to_owned(),
            name: name.map(decode),
            subresource: subresource.map(str::to_owned),
        })
    }
}

fn is_subresource(part: &str) -> bool {
    matches!(part, "status" | "finalize")
}

/// Decodes percent encoding.
fn decode(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

/// The parameters of a request. The last value of a repeated parameter is used.
#[derive(Clone, Debug, Default)]
pub struct Query(BTreeMap<String, String>);

impl Query {
    /// Parses the text after the `?`. Empty parts (kube sends `?&limit=…`) are skipped.
    pub fn parse(text: &str) -> Self {
        Self(form_urlencoded::parse(text.as_bytes()).into_owned().collect())
    }

    /// Returns a parameter, if it is present and not empty.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// Returns true if a parameter is `true` or `1`.
    pub fn flag(&self, name: &str) -> bool {
        matches!(self.get(name), Some("true" | "1"))
    }

    /// Returns a parameter as a number.
    ///
    /// # Errors
    /// 400 if it is not a number.
    pub fn number(&self, name: &str) -> Result<Option<u64>, Failure> {
        let parse = |text: &str| {
            text.parse().map_err(|_| bad_request(format!("invalid {name} {text:?}: not a non-negative number")))
        };
        self.get(name).map(parse).transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route(path: &str) -> (String, String, String, Option<String>, Option<String>) {
        let route = Route::parse(path).expect(path);
        (route.group, route.namespace, route.plural, route.name, route.subresource)
    }

    fn some(text: &str) -> Option<String> {
        Some(text.to_owned())
    }

    #[test]
    fn paths() {
        let (none, empty) = (None, String::new());
        assert_eq!(route("/api/v1/secrets"), (empty.clone(), empty.clone(), "secrets".into(), None, None));
        assert_eq!(
            route("/api/v1/namespaces/a/secrets/b"),
            (empty.clone(), "a".into(), "secrets".into(), some("b"), none.clone())
        );
        assert_eq!(route("/api/v1/namespaces/a"), (empty.clone(), empty.clone(), "namespaces".into(), some("a"), none));
        assert_eq!(
            route("/api/v1/namespaces/a/status"),
            (empty.clone(), empty, "namespaces".into(), some("a"), some("status"))
        );
        assert_eq!(
            route("/apis/g.io/v1/namespaces/a/things/b/status"),
            ("g.io".into(), "a".into(), "things".into(), some("b"), some("status"))
        );
        assert!(Route::parse("/version").is_none());
        assert!(Route::parse("/api/v1").is_none());
    }

    #[test]
    fn queries() {
        let query = Query::parse("&limit=500&labelSelector=a%3Db%2Cc&continue=&watch=true");
        assert_eq!(query.get("labelSelector"), Some("a=b,c"));
        assert_eq!(query.get("continue"), None);
        assert_eq!(query.number("limit").ok().flatten(), Some(500));
        assert!(query.flag("watch"));
        assert!(query.number("labelSelector").is_err());
    }

    #[test]
    fn percent_signs_that_encode_nothing_stay() {
        assert_eq!(decode("100%"), "100%");
        assert_eq!(decode("%zz%41"), "%zzA");
    }

    #[test]
    fn a_plus_is_a_space_in_a_query_only() {
        assert_eq!(Query::parse("labelSelector=a+in+%28b%29").get("labelSelector"), Some("a in (b)"));
        assert_eq!(decode("a+b"), "a+b");
    }
}
