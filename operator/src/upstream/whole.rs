//! Answers that were cut are refused.
//!
//! The SDK's XML reader takes the end of its input for the end of the document: a list that was cut
//! is a shorter list, tags that were cut are no tags, and a bucket that is full would pass for
//! empty. Length and chunking show a cut on most connections, but not on one that is closed at the
//! end of the body.

use aws_smithy_runtime_api::box_error::BoxError;
use aws_smithy_runtime_api::client::interceptors::Intercept;
use aws_smithy_runtime_api::client::interceptors::context::AfterDeserializationInterceptorContextRef;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::config_bag::ConfigBag;

/// Fails a call whose answer is the beginning of an XML document.
#[derive(Debug)]
pub(super) struct Whole;

impl Intercept for Whole {
    fn name(&self) -> &'static str {
        "Whole"
    }

    fn read_after_deserialization(
        &self,
        context: &AfterDeserializationInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        match context.response().body().bytes().map(std::str::from_utf8) {
            Some(Ok(body)) if !is_whole(body) => Err("the answer was cut".into()),
            _ => Ok(()),
        }
    }
}

/// Whether a document has the end of its root element. What is no XML is not judged.
fn is_whole(document: &str) -> bool {
    let document = document.trim();
    let Some(root) = root(document) else { return !document.starts_with('<') };
    let name = root.split(|c: char| c.is_whitespace() || matches!(c, '>' | '/')).next().unwrap_or_default();
    let closed_at_once = root.split_once('>').is_some_and(|(tag, rest)| tag.ends_with('/') && rest.is_empty());
    let end = document.strip_suffix('>').map(str::trim_end).and_then(|rest| rest.strip_suffix(name));
    closed_at_once || end.is_some_and(|rest| rest.ends_with("</"))
}

/// The document from the name of its root element on: behind declaration and comments.
pub(super) fn root(document: &str) -> Option<&str> {
    let mut rest = document;
    loop {
        rest = rest.trim_start().strip_prefix('<')?;
        let end = match rest {
            _ if rest.starts_with('?') => "?>",
            _ if rest.starts_with("!--") => "-->",
            _ => return Some(rest),
        };
        rest = rest.split_once(end)?.1;
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const DOCUMENT: &str =
        "<?xml version=\"1.0\"?>\n<!-- a > b --><Tagging xmlns=\"s3\"><TagSet><Tag/></TagSet></Tagging>";

    #[test]
    fn a_document_is_whole_to_its_last_character_and_not_before() {
        assert!(is_whole(DOCUMENT));
        assert!(is_whole(&format!("{DOCUMENT}\n")));
        for end in 1..DOCUMENT.len() {
            assert!(!is_whole(&DOCUMENT[..end]), "{}", &DOCUMENT[..end]);
        }
    }

    #[rstest]
    #[case("")]
    #[case("{\"not\": \"XML\"}")]
    #[case("<LocationConstraint xmlns=\"s3\"/>")]
    #[case("<Error></Error >")]
    fn these_are_whole(#[case] document: &str) {
        assert!(is_whole(document));
    }

    #[rstest]
    #[case("<Tagging><TagSet></Tagging2>")]
    #[case("<Tagging")]
    #[case("<Tagging><TagSet/>")]
    fn these_are_not(#[case] document: &str) {
        assert!(!is_whole(document));
    }
}
