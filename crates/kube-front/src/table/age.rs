//! Ages, as `kubectl` prints them.

use jiff::Timestamp;
use serde_json::Value;

/// Formats the age of a time at `now` for a column of a definition: an invalid time is `<invalid>`.
pub(super) fn of_date(time: &Value, now: Timestamp) -> Value {
    match time {
        Value::String(text) => text.parse().map_or_else(|_| "<invalid>".into(), |time| since(time, now).into()),
        _ => Value::Null,
    }
}

/// Formats the age of a time at `now` for a built-in kind: a missing time is `<unknown>`.
pub(super) fn of_time(time: &Value, now: Timestamp) -> String {
    let parsed = time.as_str().and_then(|text| text.parse().ok());
    parsed.map_or_else(|| "<unknown>".to_owned(), |time| since(time, now))
}

/// Formats with at most two units (`k8s.io/apimachinery/pkg/util/duration`).
fn since(time: Timestamp, now: Timestamp) -> String {
    let seconds = now.duration_since(time).as_secs();
    let (minutes, hours) = (seconds / 60, seconds / 3600);
    let days = hours / 24;
    match seconds {
        // Tolerate a clock skew of one second.
        ..=-2 => "<invalid>".to_owned(),
        -1 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        _ if minutes < 10 => two(minutes, "m", seconds % 60, "s"),
        _ if minutes < 180 => format!("{minutes}m"),
        _ if hours < 8 => two(hours, "h", minutes % 60, "m"),
        _ if hours < 48 => format!("{hours}h"),
        _ if hours < 192 => two(days, "d", hours % 24, "h"),
        _ if days < 730 => format!("{days}d"),
        _ if days < 2920 => two(days / 365, "y", days % 365, "d"),
        _ => format!("{}y", days / 365),
    }
}

fn two(much: i64, unit: &str, rest: i64, smaller: &str) -> String {
    if rest == 0 { format!("{much}{unit}") } else { format!("{much}{unit}{rest}{smaller}") }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(-5, "<invalid>")]
    #[case(-1, "0s")]
    #[case(0, "0s")]
    #[case(119, "119s")]
    #[case(120, "2m")]
    #[case(599, "9m59s")]
    #[case(600, "10m")]
    #[case(10_799, "179m")]
    #[case(10_800, "3h")]
    #[case(11_100, "3h5m")]
    #[case(28_800, "8h")]
    #[case(172_799, "47h")]
    #[case(172_800, "2d")]
    #[case(176_400, "2d1h")]
    #[case(691_200, "8d")]
    #[case(63_072_000, "2y")]
    #[case(63_158_400, "2y1d")]
    #[case(252_288_000, "8y")]
    fn an_age_has_at_most_two_units(#[case] seconds: i64, #[case] expected: &str) {
        let now = Timestamp::from_second(2_000_000_000).expect("a time");
        let then = Timestamp::from_second(2_000_000_000 - seconds).expect("a time");
        assert_eq!(since(then, now), expected);
    }

    #[test]
    fn what_is_no_time_says_so() {
        let now = Timestamp::UNIX_EPOCH;
        assert_eq!(of_date(&"tomorrow".into(), now), "<invalid>");
        assert_eq!(of_date(&Value::Null, now), Value::Null);
        assert_eq!(of_time(&Value::Null, now), "<unknown>");
    }
}
