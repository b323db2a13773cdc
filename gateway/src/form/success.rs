//! The response to a browser whose file was stored.

use http::{StatusCode, Uri};

use super::fields::Form;
use crate::uri::encode;

/// The response that a form requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Success {
    /// 200 without a body.
    Empty,
    /// 201 with XML that names the object.
    Created,
    /// 204, the default.
    NoContent,
    /// 303 to this address, with the object's names appended.
    Redirect(String),
}

impl Success {
    /// Reads the fields `success_action_redirect` (or `redirect`, its older name) and
    /// `success_action_status`. The policy decides which of them a form may have. An invalid
    /// address or another status is ignored.
    #[must_use]
    pub fn of(form: &Form) -> Self {
        let redirect = form.get("success_action_redirect").or_else(|| form.get("redirect"));
        if let Some(address) = redirect.filter(|address| is_address(address)) {
            return Self::Redirect(address.to_owned());
        }
        match form.get("success_action_status") {
            Some("200") => Self::Empty,
            Some("201") => Self::Created,
            _ => Self::NoContent,
        }
    }

    /// Returns the status of the response.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        match self {
            Self::Empty => StatusCode::OK,
            Self::Created => StatusCode::CREATED,
            Self::NoContent => StatusCode::NO_CONTENT,
            Self::Redirect(_) => StatusCode::SEE_OTHER,
        }
    }

    /// Returns the `location` header of a redirect, in ASCII. `etag` includes its quotes.
    #[must_use]
    pub fn location(&self, bucket: &str, key: &str, etag: &str) -> Option<String> {
        let Self::Redirect(address) = self else { return None };
        let sign = if address.contains('?') { '&' } else { '?' };
        let [bucket, key, etag] = [bucket, key, etag].map(|text| encode(text.as_bytes()));
        Some(format!("{address}{sign}bucket={bucket}&key={key}&etag={etag}"))
    }
}

/// Returns true for an HTTP address to which a query can be appended.
fn is_address(text: &str) -> bool {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_graphic()) && !text.contains('#');
    let is_web =
        |uri: &Uri| matches!(uri.scheme_str(), Some("http" | "https")) && uri.host().is_some_and(|h| !h.is_empty());
    is_plain && text.parse().is_ok_and(|uri| is_web(&uri))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::super::Field;
    use super::*;

    #[rstest]
    #[case(&[], Success::NoContent)]
    #[case(&[("success_action_status", "200")], Success::Empty)]
    #[case(&[("success_action_status", "201")], Success::Created)]
    #[case(&[("success_action_status", "204")], Success::NoContent)]
    #[case(&[("success_action_status", "404")], Success::NoContent)]
    #[case(&[("redirect", "https://a.example/b"), ("success_action_status", "201")],
        Success::Redirect("https://a.example/b".into()))]
    #[case(&[("redirect", "http://old.example/"), ("success_action_redirect", "http://new.example/")],
        Success::Redirect("http://new.example/".into()))]
    #[case(&[("redirect", "javascript:alert(1)")], Success::NoContent)]
    #[case(&[("redirect", "/relative")], Success::NoContent)]
    #[case(&[("redirect", "http://a.example/#fragment")], Success::NoContent)]
    #[case(&[("redirect", "http://a.example/\r\nx: y")], Success::NoContent)]
    #[case(&[("redirect", "ftp://a.example/")], Success::NoContent)]
    fn a_form_says_what_it_wants(#[case] fields: &[(&str, &str)], #[case] expected: Success) {
        let field = |(name, value): &(&str, &str)| Field { name: (*name).into(), value: (*value).into() };
        let form = Form { fields: fields.iter().map(field).collect(), ..Form::default() };
        assert_eq!(Success::of(&form), expected);
    }

    #[test]
    fn a_redirect_names_the_object() {
        let of = |address: &str| Success::Redirect(address.into()).location("b", "k/é?", "\"e\"");
        let expected = "bucket=b&key=k%2F%C3%A9%3F&etag=%22e%22";
        assert_eq!(of("http://a.example/").as_deref(), Some(&*format!("http://a.example/?{expected}")));
        assert_eq!(of("http://a.example/?x=y").as_deref(), Some(&*format!("http://a.example/?x=y&{expected}")));
        assert_eq!(Success::Created.location("b", "k", "e"), None);
    }

    #[test]
    fn each_has_its_status() {
        let all = [Success::Empty, Success::Created, Success::NoContent, Success::Redirect(String::new())];
        assert_eq!(all.map(|success| success.status().as_u16()), [200, 201, 204, 303]);
    }
}
