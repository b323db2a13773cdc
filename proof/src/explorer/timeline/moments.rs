//! Moments of virtual time.

use jiff::Timestamp;
use seeded::VirtualClock;

/// Returns the milliseconds since the start of the world's clock.
pub(in super::super) fn since_start(at: Timestamp) -> i64 {
    at.as_millisecond() - VirtualClock::epoch().as_millisecond()
}

/// Formats a moment of virtual time: `0:01.250`, `2:03:04.000`, `12d 02:03:04`.
pub fn clock(at_ms: i64) -> String {
    let sign = if at_ms < 0 { "-" } else { "" };
    let at = at_ms.unsigned_abs();
    let (millis, seconds, minutes, hours, days) =
        (at % 1000, at / 1000 % 60, at / 60_000 % 60, at / 3_600_000 % 24, at / 86_400_000);
    match (days, hours) {
        (0, 0) => format!("{sign}{minutes}:{seconds:02}.{millis:03}"),
        (0, _) => format!("{sign}{hours}:{minutes:02}:{seconds:02}.{millis:03}"),
        _ => format!("{sign}{days}d {hours:02}:{minutes:02}:{seconds:02}"),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(0, "0:00.000")]
    #[case(61_250, "1:01.250")]
    #[case(7_384_000, "2:03:04.000")]
    #[case(93_784_000, "1d 02:03:04")]
    #[case(-1, "-0:00.001")]
    fn moments_are_short(#[case] at: i64, #[case] expected: &str) {
        assert_eq!(clock(at), expected);
    }
}
