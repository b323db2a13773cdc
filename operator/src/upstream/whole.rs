//! Rejects truncated answers, and successes that are not S3's.
//!
//! The SDK's XML reader takes the end of its input for the end of the document: a truncated list is
//! a shorter list, truncated tags are no tags, and a full bucket would count as empty. Length and
//! chunking reveal a truncation on most connections, but not on one that is closed at the end of
//! the body.
//!
//! The SDK also ignores a body where it expects none. A proxy in front of a store may answer
//! anything with a page and 200. A bucket would count as deleted whose deletion never reached the
//! store.

use std::error::Error;

use aws_smithy_runtime_api::box_error::BoxError;
use aws_smithy_runtime_api::client::interceptors::Intercept;
use aws_smithy_runtime_api::client::interceptors::context::AfterDeserializationInterceptorContextRef;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::config_bag::ConfigBag;

use super::silence::causes;

/// The answer reports success and is not S3's.
#[derive(Debug, thiserror::Error)]
#[error("it is not what S3 answers")]
struct NotS3;

/// Returns true if a call failed because its success is not an S3 answer.
pub(super) fn is_not_s3(error: &(dyn Error + 'static)) -> bool {
    causes(error).any(|cause| cause.is::<NotS3>())
}

/// Interceptor that rejects a truncated XML document, and a success that is not an S3 answer.
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
        let response = context.response();
        let success = response.status().is_success();
        match response.body().bytes().map(str::from_utf8) {
            Some(Ok(body)) if success && !is_s3(body) => Err(NotS3.into()),
            Some(Err(_)) if success => Err(NotS3.into()),
            Some(Ok(body)) if !is_whole(body) => Err("the answer was cut".into()),
            _ => Ok(()),
        }
    }
}

/// Returns true if the body of a success is one that S3 may send: a document, or nothing.
///
/// The SDK checks the root element's name only where it expects a document. Some stores send one
/// where S3 doesn't.
fn is_s3(body: &str) -> bool {
    match root_name(body) {
        Some(root) => root != "Error" && !root.eq_ignore_ascii_case("html"),
        None => body.trim().is_empty(),
    }
}

/// Returns true if a document has the end of its root element. Anything but XML counts as whole.
fn is_whole(document: &str) -> bool {
    let document = document.trim();
    let Some(root) = root(document) else { return !document.starts_with('<') };
    let name = root.split(|c: char| c.is_whitespace() || matches!(c, '>' | '/')).next().unwrap_or_default();
    let closed_at_once = root.split_once('>').is_some_and(|(tag, rest)| tag.ends_with('/') && rest.is_empty());
    let end = document.strip_suffix('>').map(str::trim_end).and_then(|rest| rest.strip_suffix(name));
    closed_at_once || end.is_some_and(|rest| rest.ends_with("</"))
}

/// Returns the document from the root element's name on, after declaration and comments.
fn root(document: &str) -> Option<&str> {
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

/// Returns the name of the root element of a document that begins like this.
pub(super) fn root_name(beginning: &str) -> Option<String> {
    const LONGEST: usize = 64;
    let name: String = root(beginning)?.chars().take_while(char::is_ascii_alphanumeric).take(LONGEST).collect();
    (!name.is_empty()).then_some(name)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use rstest::rstest;

    use super::super::scripted::{Reply, Store};
    use super::super::{Class, Flaw, UpstreamError};
    use super::*;
    use crate::api::{BucketName, Versioning};

    /// Returns the error of each operation if it is answered with success and this body.
    async fn told(body: &'static str) -> [Option<UpstreamError>; 9] {
        let upstream = Store::that(move |_, _| Reply::ok(body)).upstream();
        let bucket = BucketName::parse("photos").expect("a name");
        let tags = BTreeMap::from([("a".to_owned(), "b".to_owned())]);
        [
            upstream.create(&bucket).await.err(),
            upstream.delete(&bucket).await.err(),
            upstream.tag(&bucket, &tags).await.err(),
            upstream.set_versioning(&bucket, Versioning::Enabled).await.err(),
            upstream.look(&bucket).await.err(),
            upstream.owner(&bucket).await.err(),
            upstream.is_empty(&bucket).await.err(),
            upstream.versioning(&bucket).await.err(),
            upstream.probe().await.err(),
        ]
    }

    /// A proxy in front of a store may answer anything with 200.
    // covers: 3.5.success
    #[rstest]
    #[case("<html><body>nginx</body></html>")]
    #[case("<!DOCTYPE html>\n<HTML><body>under maintenance</body></HTML>")]
    #[case("<?xml version=\"1.0\"?><Error><Code>InternalError</Code></Error>")]
    #[case("{\"error\": \"unavailable\"}")]
    #[case("under maintenance")]
    #[tokio::test]
    async fn a_page_is_no_success_of_anything(#[case] body: &'static str) {
        for error in told(body).await {
            let class = error.expect("nothing has been said by S3").class;
            assert_eq!(class, Class::Unusable(Flaw::Unreadable));
        }
    }

    // covers: 3.5.success
    #[rstest]
    #[case("")]
    #[case("\n")]
    #[tokio::test]
    async fn an_answer_without_a_word_is_no_list_and_no_tags(#[case] body: &'static str) {
        let told = told(body).await;
        assert!(told[..4].iter().all(Option::is_none), "S3 answers these without a word: {told:?}");
        for error in told.into_iter().skip(4) {
            assert_eq!(error.map(|error| error.class), Some(Class::Unusable(Flaw::Unreadable)));
        }
    }

    // covers: 3.5.success
    #[tokio::test]
    async fn a_store_may_tell_what_it_made() {
        let told = told("<CreateBucketOutput><Location>/photos</Location></CreateBucketOutput>").await;
        assert_eq!(told[0], None);
    }

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
