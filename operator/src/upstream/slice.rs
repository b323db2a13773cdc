//! The summed result of deleting a bucket's content: deleted, refused and failed items.

use super::error::{Class, UpstreamError, code, is_throttle};

/// Codes of per-key errors that are temporary.
const PASSING: [&str; 4] = ["InternalError", "ServiceUnavailable", "RequestTimeout", "OperationAborted"];

/// The result of deleting a slice of a bucket's content.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Slice {
    /// Number of deleted versions, delete markers and unfinished uploads.
    pub deleted: u64,
    /// True if the bucket's whole content was listed.
    pub complete: bool,
    /// S3's code for objects that the store refuses to delete, for example because of object lock;
    /// the first in alphabetical order.
    pub refused: Option<String>,
    /// A request that failed. The items it was to delete may be deleted or not.
    pub failed: Option<UpstreamError>,
}

impl Slice {
    /// Adds another batch.
    pub(super) fn add(&mut self, batch: Slice) {
        self.deleted += batch.deleted;
        self.complete |= batch.complete;
        self.refused = self.refused.take().into_iter().chain(batch.refused).min();
        // The most severe error is kept: a call that may still take effect, then a call that was
        // answered, then a call that was not sent.
        let weight = |error: &UpstreamError| match error.class {
            Class::NoAnswer(_) | Class::Failing { asked: true } => 2,
            Class::Failing { asked: false } => 0,
            _ => 1,
        };
        self.failed = match (self.failed.take(), batch.failed) {
            (Some(first), Some(other)) if weight(&other) > weight(&first) => Some(other),
            (first, other) => first.or(other),
        };
    }

    /// Returns the result of a failed request. If the bucket doesn't exist, its content is deleted.
    pub(super) fn broken(error: UpstreamError) -> Self {
        match &error.class {
            Class::Failed { code } if code == "NoSuchBucket" => Self { complete: true, ..Self::default() },
            _ => Self { failed: Some(error), ..Self::default() },
        }
    }

    /// Adds the result for one key.
    pub(super) fn judge(&mut self, operation: &'static str, told: &str) {
        match code(told).unwrap_or("no code") {
            "NoSuchKey" | "NoSuchVersion" | "NoSuchUpload" => self.deleted += 1,
            code if is_throttle(code) || PASSING.contains(&code) => {
                self.failed = Some(UpstreamError { operation, class: Class::Failed { code: code.to_owned() } });
            }
            code => self.refused = self.refused.take().into_iter().chain([code.to_owned()]).min(),
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::super::silence::Silence;
    use super::*;

    /// Stores differ in the code for a locked object: Amazon S3 and versitygw use AccessDenied,
    /// MinIO InvalidRequest.
    #[rstest]
    #[case("NoSuchVersion", 1, None, false)]
    #[case("SlowDown", 0, None, true)]
    #[case("SlowDownWrite", 0, None, true)]
    #[case("AccessDenied", 0, Some("AccessDenied"), false)]
    #[case("a code of any text", 0, Some("no code"), false)]
    #[case("InvalidRequest", 0, Some("InvalidRequest"), false)]
    fn what_a_store_says_of_a_key_is_gone_passing_or_a_refusal(
        #[case] code: &str,
        #[case] deleted: u64,
        #[case] refused: Option<&str>,
        #[case] failed: bool,
    ) {
        let mut slice = Slice::default();
        slice.judge("DeleteObjects", code);
        let found = (slice.deleted, slice.refused.as_deref(), slice.failed.is_some());
        assert_eq!(found, (deleted, refused, failed));
    }

    #[test]
    fn what_may_still_happen_is_told_whatever_else_went_wrong() {
        let failed =
            |class| Slice { failed: Some(UpstreamError { operation: "DeleteObjects", class }), ..Slice::default() };
        let denied = || failed(Class::Denied { code: "AccessDenied".into() });
        let unheard = || failed(Class::NoAnswer(Silence::Late));
        for order in [[denied(), unheard()], [unheard(), denied()]] {
            let mut all = Slice::default();
            order.into_iter().for_each(|slice| all.add(slice));
            assert_eq!(all.failed.map(|error| error.class), Some(Class::NoAnswer(Silence::Late)));
        }
    }
}
