//! What became of a bucket's contents, added up: what is gone, what the store refuses, what failed.

use super::error::{Class, UpstreamError, code, is_throttle};

/// Codes of per-key errors that pass by themselves.
const PASSING: [&str; 4] = ["InternalError", "ServiceUnavailable", "RequestTimeout", "OperationAborted"];

/// What deleting a slice of a bucket's contents came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Slice {
    /// Versions, delete markers and unfinished uploads that are gone.
    pub deleted: u64,
    /// Everything that the bucket held was listed.
    pub complete: bool,
    /// S3's code for objects that the store refuses to delete, under object lock for instance; the
    /// first in order.
    pub refused: Option<String>,
    /// A request failed; what it was to delete may be there or gone.
    pub failed: Option<UpstreamError>,
}

impl Slice {
    /// Adds another batch to this one.
    pub(super) fn add(&mut self, batch: Slice) {
        self.deleted += batch.deleted;
        self.complete |= batch.complete;
        self.refused = self.refused.take().into_iter().chain(batch.refused).min();
        // One that may still happen weighs more than one that was answered, and that more than one
        // that was not sent.
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

    /// A bucket that is gone holds nothing.
    pub(super) fn broken(error: UpstreamError) -> Self {
        match &error.class {
            Class::Failed { code } if code == "NoSuchBucket" => Self { complete: true, ..Self::default() },
            _ => Self { failed: Some(error), ..Self::default() },
        }
    }

    /// Takes in what the store said of one key.
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

    /// Stores differ in the code for what is locked: Amazon S3 and versitygw say AccessDenied,
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
