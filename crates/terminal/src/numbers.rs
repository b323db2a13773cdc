//! Parsers for numbers on the command line. Their errors state the values that are allowed.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// Parses a number within this range.
///
/// # Errors
/// Returns a description of the allowed numbers if the text is not one of them.
pub fn within<T: FromStr + PartialOrd + Display>(text: &str, range: RangeInclusive<T>) -> Result<T, String> {
    let number = text.parse().ok().filter(|number| range.contains(number));
    number.ok_or_else(|| format!("expected a number from {} to {}", range.start(), range.end()))
}

/// Parses a time in whole seconds, at least 1.
///
/// # Errors
/// Returns a description of the allowed numbers if the text is not one of them.
pub fn seconds(text: &str) -> Result<u64, String> {
    within(text, 1..=u64::MAX).map_err(|_| "expected whole seconds, at least 1".to_owned())
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;

    use rstest::rstest;

    use super::*;

    #[test]
    fn numbers_of_the_range_are_read() {
        assert_eq!(within("18446744073709551615", 0..=u64::MAX), Ok(u64::MAX));
        assert_eq!(within("80", 80..=u16::MAX), Ok(80));
        assert_eq!(within("1", NonZeroUsize::MIN..=NonZeroUsize::MAX), Ok(NonZeroUsize::MIN));
        assert_eq!(seconds("1"), Ok(1));
    }

    #[rstest]
    #[case("abc")]
    #[case("")]
    #[case("-1")]
    #[case("0")]
    #[case("65536")]
    #[case("1.5")]
    fn anything_else_is_refused_with_what_was_expected(#[case] text: &str) {
        assert_eq!(within(text, 1..=u16::MAX), Err("expected a number from 1 to 65535".to_owned()));
    }

    #[rstest]
    #[case("0")]
    #[case("soon")]
    #[case("1.5")]
    fn a_time_is_whole_seconds(#[case] text: &str) {
        assert_eq!(seconds(text), Err("expected whole seconds, at least 1".to_owned()));
    }
}
