//! The scope of a signature: a day, a region and the service. Also the time format of signatures.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::Offset;

/// The service in a scope.
const SERVICE: &str = "s3";
/// The constant at the end of every Signature Version 4 scope.
const TERMINATOR: &str = "aws4_request";
/// Maximum length of ids and regions, in bytes. No real one is longer.
const LONGEST_NAME: usize = 128;

/// A UTC day as written in a scope: eight digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Day([u8; 8]);

impl Day {
    /// Returns the day that contains a time.
    #[must_use]
    pub fn of(time: Timestamp) -> Self {
        let [a, b, c, d, e, f, g, h, ..] = stamp(time);
        Self([a, b, c, d, e, f, g, h])
    }

    /// Returns the eight digits.
    #[must_use]
    pub fn as_str(&self) -> &str {
        str::from_utf8(&self.0).unwrap_or_default()
    }

    fn parse(text: &str) -> Option<Self> {
        let digits: [u8; 8] = text.as_bytes().try_into().ok()?;
        digits.iter().all(u8::is_ascii_digit).then_some(Self(digits))
    }
}

/// The inputs of a signing key. The service is always `s3`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope {
    /// The day.
    pub date: Day,
    /// The region: visible ASCII without a slash.
    pub region: String,
}

impl Scope {
    /// Writes the scope in the form of a string to sign.
    pub(super) fn push_to(&self, out: &mut Vec<u8>) {
        for part in [self.date.as_str(), "/", &self.region, "/", SERVICE, "/", TERMINATOR] {
            out.extend_from_slice(part.as_bytes());
        }
    }

    /// Returns the inputs of the key derivation, in order.
    pub(super) fn steps(&self) -> [&str; 4] {
        [self.date.as_str(), &self.region, SERVICE, TERMINATOR]
    }
}

/// An access key id and its scope: the value of `Credential`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credential {
    /// Visible ASCII.
    pub access_key_id: String,
    /// The scope of the signature.
    pub scope: Scope,
}

/// The error of a malformed credential: a clause of the message to the client.
pub type Clause = &'static str;

impl Credential {
    /// Parses `<id>/<day>/<region>/s3/aws4_request`. The id may contain slashes.
    ///
    /// # Errors
    /// Returns a clause that says what is wrong.
    pub fn parse(text: &str) -> Result<Self, Clause> {
        const FORM: Clause = "the Credential is mal-formed; expecting \"<YOUR-AKID>/YYYYMMDD/REGION/s3/aws4_request\".";
        let mut parts = text.rsplitn(5, '/');
        let (terminator, service) = (parts.next().ok_or(FORM)?, parts.next().ok_or(FORM)?);
        let (region, date) = (parts.next().ok_or(FORM)?, parts.next().ok_or(FORM)?);
        let id = parts.next().ok_or(FORM)?;
        if terminator != TERMINATOR {
            return Err("incorrect terminal. The Credential has to end with \"aws4_request\".");
        }
        if service != SERVICE {
            return Err("incorrect service. This endpoint belongs to \"s3\".");
        }
        let date = Day::parse(date).ok_or("incorrect date format. The date in the Credential has to be YYYYMMDD.")?;
        if !is_name(region) || !is_name(id) {
            return Err(FORM);
        }
        Ok(Self { access_key_id: id.to_owned(), scope: Scope { date, region: region.to_owned() } })
    }
}

fn is_name(text: &str) -> bool {
    (1..=LONGEST_NAME).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// Formats a time as in `X-Amz-Date`: `20130524T000000Z`, to the second.
pub(super) fn stamp(time: Timestamp) -> [u8; 16] {
    let time = Offset::UTC.to_datetime(time);
    let mut out = *b"00000000T000000Z";
    let mut put = |at: usize, width: usize, number: i16| {
        let mut rest = number.max(0);
        for slot in out.iter_mut().skip(at).take(width).rev() {
            *slot = b'0' + u8::try_from(rest % 10).unwrap_or_default();
            rest /= 10;
        }
    };
    put(0, 4, time.year());
    put(4, 2, time.month().into());
    put(6, 2, time.day().into());
    put(9, 2, time.hour().into());
    put(11, 2, time.minute().into());
    put(13, 2, time.second().into());
    out
}

/// Parses the format of [`stamp`], and no other.
pub(crate) fn parse_stamp(text: &str) -> Option<Timestamp> {
    let bytes = text.as_bytes();
    if bytes.len() != 16 || bytes.get(8) != Some(&b'T') || bytes.get(15) != Some(&b'Z') {
        return None;
    }
    let number = |at: usize, width: usize| -> Option<i16> {
        let digits = text.get(at..at + width).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))?;
        digits.parse().ok()
    };
    let small = |at: usize| number(at, 2).and_then(|number| i8::try_from(number).ok());
    let time = DateTime::new(number(0, 4)?, small(4)?, small(6)?, small(9)?, small(11)?, small(13)?, 0).ok()?;
    Offset::UTC.to_timestamp(time).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("AK/20130524/us-east-1/s3/aws4_request", Some(("AK", "20130524", "us-east-1")))]
    #[case("A/K/20130524/r/s3/aws4_request", Some(("A/K", "20130524", "r")))]
    #[case("AK/20130524/r/s3/aws4_request/", None)]
    #[case("20130524/r/s3/aws4_request", None)]
    #[case("/20130524/r/s3/aws4_request", None)]
    #[case("AK/20130524//s3/aws4_request", None)]
    #[case("AK/2013052/r/s3/aws4_request", None)]
    #[case("AK/2013o524/r/s3/aws4_request", None)]
    #[case("AK/20130524/r/ec2/aws4_request", None)]
    #[case("AK/20130524/r/s3/aws4", None)]
    #[case("A K/20130524/r/s3/aws4_request", None)]
    #[case("AK/20130524/r\u{7}/s3/aws4_request", None)]
    #[case("é/20130524/r/s3/aws4_request", None)]
    #[case("", None)]
    fn a_credential_is_read_whole_or_not(#[case] text: &str, #[case] expected: Option<(&str, &str, &str)>) {
        let read = Credential::parse(text).ok();
        let read = read.as_ref().map(|c| (c.access_key_id.as_str(), c.scope.date.as_str(), c.scope.region.as_str()));
        assert_eq!(read, expected);
    }

    #[test]
    fn ids_and_regions_have_a_longest_length() {
        let of = |length: usize| format!("{}/20130524/r/s3/aws4_request", "a".repeat(length));
        assert!(Credential::parse(&of(128)).is_ok());
        assert!(Credential::parse(&of(129)).is_err());
    }

    #[rstest]
    #[case("20130524T000000Z", true)]
    #[case("20240229T235959Z", true)]
    #[case("20230229T000000Z", false)]
    #[case("20130524T240000Z", false)]
    #[case("20130524T000060Z", false)]
    #[case("20130524T000000z", false)]
    #[case("20130524 000000Z", false)]
    #[case("20130524T00000Z", false)]
    #[case("20130524T0000000Z", false)]
    #[case("+0130524T000000Z", false)]
    #[case("2013052éT00000Z", false)]
    fn times_have_one_form(#[case] text: &str, #[case] valid: bool) {
        let read = parse_stamp(text);
        assert_eq!(read.is_some(), valid);
        assert!(read.is_none_or(|time| stamp(time) == text.as_bytes()), "what is read is written alike");
    }

    proptest! {
        #[test]
        fn a_stamp_is_read_back(second in 0i64..253_402_300_799) {
            let time = Timestamp::from_second(second).expect("a second of these years is a time");
            let stamp = stamp(time);
            let text = str::from_utf8(&stamp).expect("digits");
            prop_assert_eq!(parse_stamp(text), Some(time));
            let day = Day::of(time);
            prop_assert_eq!(day.as_str(), text.get(..8).unwrap_or_default());
        }
    }
}
