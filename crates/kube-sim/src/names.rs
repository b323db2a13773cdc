//! Syntax of names, labels and keys, with the server's error messages
//! (`k8s.io/apimachinery/pkg/util/validation`).

/// Regular expressions as printed in the messages.
const LABEL_FORM: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const LABEL_1035_FORM: &str = "[a-z]([-a-z0-9]*[a-z0-9])?";
const SUBDOMAIN_FORM: &str = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const QUALIFIED_FORM: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";

fn too_long(limit: usize) -> String {
    format!("must be no more than {limit} characters")
}

fn is_label(text: &str) -> bool {
    let edge = |byte: Option<&u8>| byte.is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    let bytes = text.as_bytes();
    edge(bytes.first()) && edge(bytes.last()) && bytes.iter().copied().all(inner)
}

fn is_subdomain(text: &str) -> bool {
    text.split('.').all(is_label)
}

fn is_qualified_part(text: &str) -> bool {
    let bytes = text.as_bytes();
    let edge = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let inner = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    edge(bytes.first()) && edge(bytes.last()) && bytes.iter().copied().all(inner)
}

/// Returns the errors in a DNS-1123 label, such as a namespace's name.
pub(crate) fn dns_label(text: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if text.len() > 63 {
        errors.push(too_long(63));
    }
    if !is_label(text) {
        errors.push(if is_subdomain(text) {
            "must not contain dots".to_owned()
        } else {
            format!(
                "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '{LABEL_FORM}')"
            )
        });
    }
    errors
}

/// Returns the errors in a DNS-1035 label, such as a Service's name.
pub fn dns_1035_label(text: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if text.len() > 63 {
        errors.push(too_long(63));
    }
    if !is_label(text) || text.starts_with(|first: char| first.is_ascii_digit()) {
        errors.push(format!(
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '{LABEL_1035_FORM}')"
        ));
    }
    errors
}

/// Returns the errors in a DNS-1123 subdomain, such as the names of most objects.
pub fn dns_subdomain(text: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if text.len() > 253 {
        errors.push(too_long(253));
    }
    if !is_subdomain(text) {
        errors.push(format!(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '{SUBDOMAIN_FORM}')"
        ));
    }
    errors
}

/// Returns the errors in a qualified name, such as a finalizer or the key of a label or annotation.
pub(crate) fn qualified_name(text: &str) -> Vec<String> {
    let rule = || {
        format!(
            "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{QUALIFIED_FORM}')"
        )
    };
    let mut errors = Vec::new();
    let name = match text.split_once('/') {
        None => text,
        Some((_, name)) if name.contains('/') => {
            return vec![format!(
                "a qualified name {} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",
                rule()
            )];
        }
        Some((prefix, name)) => {
            if prefix.is_empty() {
                errors.push("prefix part must be non-empty".to_owned());
            } else {
                errors.extend(dns_subdomain(prefix).into_iter().map(|error| format!("prefix part {error}")));
            }
            name
        }
    };
    if name.is_empty() {
        errors.push("name part must be non-empty".to_owned());
    } else if name.len() > 63 {
        errors.push(format!("name part {}", too_long(63)));
    }
    if !is_qualified_part(name) {
        errors.push(format!("name part {}", rule()));
    }
    errors
}

/// Returns the errors in a name that only has to be a valid path segment.
pub(crate) fn path_segment(text: &str) -> Vec<String> {
    if matches!(text, "." | "..") {
        return vec![format!("may not be '{text}'")];
    }
    let banned = ["/", "%"].into_iter().filter(|banned| text.contains(banned));
    banned.map(|banned| format!("may not contain '{banned}'")).collect()
}

/// Returns the errors in a label's value.
pub(crate) fn label_value(text: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if text.len() > 63 {
        errors.push(too_long(63));
    }
    if !text.is_empty() && !is_qualified_part(text) {
        errors.push(format!(
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '({QUALIFIED_FORM})?')"
        ));
    }
    errors
}

/// Returns the errors in a key of a Secret's data.
pub(crate) fn data_key(text: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if text.len() > 253 {
        errors.push(too_long(253));
    }
    let fits = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    if text.is_empty() || !text.bytes().all(fits) {
        errors.push("a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')".to_owned());
    }
    match text {
        "." => errors.push("must not be '.'".to_owned()),
        ".." => errors.push("must not be '..'".to_owned()),
        other if other.starts_with("..") => errors.push("must not start with '..'".to_owned()),
        _ => {}
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_pass() {
        for name in ["a", "a-b.c", "0.1"] {
            assert!(dns_subdomain(name).is_empty(), "{name}");
        }
        for name in ["a", "example.com/A_b.c", "k8s.io/x"] {
            assert!(qualified_name(name).is_empty(), "{name}");
        }
        for value in ["", "a", "A.b-c_d"] {
            assert!(label_value(value).is_empty(), "{value}");
        }
        assert!(data_key("_.a-B").is_empty());
        assert!(dns_label("a-1").is_empty());
        assert!(dns_1035_label("a-1").is_empty());
    }

    #[test]
    fn names_that_do_not() {
        for name in ["", "A", "-a", "a.", "a..b", "a_b"] {
            assert!(!dns_subdomain(name).is_empty(), "{name}");
        }
        for name in ["", "/", "/a", "a/", "a/b/c", "A/b", "a b"] {
            assert!(!qualified_name(name).is_empty(), "{name}");
        }
        for value in ["a b", "-a", "a/b", &"x".repeat(64)] {
            assert!(!label_value(value).is_empty(), "{value}");
        }
        for key in ["", ".", "..", "..a", "a b", "ä"] {
            assert!(!data_key(key).is_empty(), "{key}");
        }
        for name in ["1a", "a.b", "A", "a-"] {
            assert!(!dns_1035_label(name).is_empty(), "{name}");
        }
        assert_eq!(dns_label("a.b"), ["must not contain dots"]);
    }
}
