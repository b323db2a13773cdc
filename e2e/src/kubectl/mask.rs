//! Masks values in the output of two servers that can't be equal, such as random names and times.

use std::sync::LazyLock;

use regex::Regex;

/// Patterns with their replacements, in the order in which they are applied.
static MASKS: LazyLock<Vec<(Regex, &'static str)>> = LazyLock::new(|| {
    let masks = [
        // `managedFields`, line by line; other tests compare them.
        (r"(?m)^ *(-? *)?(f:|k:|v:|\.: ).*\n", ""),
        (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "UID"),
        (r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?Z", "TIME"),
        (r#"(resourceVersion"?: "?|Resource Version: +)\d+"#, "${1}VERSION"),
        (r"https://[0-9.:]+", "SERVER"),
        (r"-edit-\d+", "-edit-NUMBER"),
        // An age in a table.
        (r"\b(\d+[smhd])+\b|<unknown>|<invalid>", "AGE"),
        // The width of a column depends on its content.
        (r"[ \t]+", " "),
        (r"(?m) +$", ""),
    ];
    masks.map(|(pattern, with)| (Regex::new(pattern).expect("it is a pattern"), with)).into()
});

/// Returns the text with all such values masked.
pub(super) fn masked(text: &str) -> String {
    MASKS.iter().fold(text.to_owned(), |text, (pattern, with)| pattern.replace_all(&text, *with).into_owned())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("a   red   5m12s\n", "a red AGE\n")]
    #[case("uid: 0b7f7e52-9a5e-4c3c-8e73-3f6d6a1d2c11", "uid: UID")]
    #[case("resourceVersion: \"812\"", "resourceVersion: \"VERSION\"")]
    #[case("creationTimestamp: \"2026-01-01T00:00:00Z\"", "creationTimestamp: \"TIME\"")]
    #[case("dial https://127.0.0.1:6443/api", "dial SERVER/api")]
    #[case("replicas: 5", "replicas: 5")]
    fn what_cannot_be_alike_is_masked(#[case] text: &str, #[case] expected: &str) {
        assert_eq!(masked(text), expected);
    }
}
