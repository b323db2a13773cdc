//! Errors of the harness' commands, and their messages.

use std::error::Error as StdError;

use kube::core::Status;
use thiserror::Error;

/// Error of a command.
#[derive(Debug, Error)]
pub enum Failure {
    /// The command line is invalid.
    #[error(transparent)]
    Usage(#[from] clap::Error),
    /// The command was started and failed. Displayed as one sentence.
    #[error("{}", sentence(.0))]
    Run(#[from] anyhow::Error),
}

/// Formats an error and its causes as one sentence: the failed operation first, its first cause
/// last.
pub fn sentence(error: &anyhow::Error) -> String {
    let mut told = String::new();
    for cause in error.chain() {
        let refusal = refusal_in(cause);
        let text = refusal.map_or_else(|| cause.to_string(), |status| status.message.clone());
        // Many errors repeat their causes.
        if !told.contains(&text) {
            told = if told.is_empty() { text } else { format!("{told}: {text}") };
        }
        if refusal.is_some() {
            break;
        }
    }
    told
}

/// Returns the API server's response, if the error is one.
fn refusal_in<'a>(cause: &'a (dyn StdError + 'static)) -> Option<&'a Status> {
    match cause.downcast_ref::<kube::Error>() {
        Some(kube::Error::Api(status)) => Some(status),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use anyhow::{Context as _, anyhow};

    use super::*;

    /// An error that repeats its cause, as many do.
    #[derive(Debug, Error)]
    #[error("no luck: {0}")]
    struct Repeats(#[source] std::fmt::Error);

    fn refused() -> anyhow::Error {
        let status = Status::failure("claim photos is not valid", "Invalid").with_code(422);
        kube::Error::Api(Box::new(status)).into()
    }

    #[test]
    fn a_sentence_goes_from_what_was_tried_to_its_cause() {
        let error = anyhow!("no such file").context("can't read a.txt").context("can't start");
        assert_eq!(sentence(&error), "can't start: can't read a.txt: no such file");
    }

    #[test]
    fn what_an_error_repeats_is_told_once() {
        let error = anyhow::Error::from(Repeats(std::fmt::Error)).context("can't start");
        assert_eq!(sentence(&error), format!("can't start: no luck: {}", std::fmt::Error));
    }

    #[test]
    fn a_refusal_is_told_in_the_words_of_the_api_server() {
        let error = Err::<(), _>(refused()).context("can't make claim photos").unwrap_err();
        assert_eq!(sentence(&error), "can't make claim photos: claim photos is not valid");
    }
}
