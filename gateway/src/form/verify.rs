//! Authentication of a form by the signature of its policy.

use jiff::{SignedDuration, Timestamp};

use super::fields::Form;
use super::policy::{Policy, denied};
use super::refusals::malformed;
use crate::refusal::{Code, Refusal};
use crate::sigv4::{self, Credential, Day, Scope, Signature, SigningSecret};

/// Maximum time by which a form's date may be ahead of the gateway's clock.
const SKEW: SignedDuration = SignedDuration::from_mins(15);
/// Maximum validity of a signing key, even if the policy allows more: the same as for a presigned
/// URL.
const LONGEST: SignedDuration = SignedDuration::from_hours(7 * 24);

/// The authentication of a form, parsed but not verified yet.
#[derive(Clone, Debug)]
pub struct Claim {
    /// The access key id: visible ASCII, at most 128 bytes.
    pub access_key_id: String,
    /// The day and the region that the signing key was derived for.
    pub scope: Scope,
    /// The time of the signature.
    pub time: Timestamp,
    signature: Signature,
}

/// Parses the authentication of a form. Returns `None` if it isn't signed.
///
/// # Errors
/// Returns an error if the form is signed by another scheme, its signature is incomplete, or a
/// field is malformed.
pub fn claim(form: &Form) -> Result<Option<Claim>, Refusal> {
    if form.get("x-amz-security-token").is_some() {
        return Err(Refusal::new(Code::InvalidToken, "The provided token is malformed or otherwise invalid."));
    }
    if form.get("awsaccesskeyid").is_some() || form.get("signature").is_some() {
        let message = "The authorization mechanism you have provided is not supported. Please use AWS4-HMAC-SHA256.";
        return Err(Refusal::new(Code::InvalidRequest, message));
    }
    let names = ["policy", "x-amz-algorithm", "x-amz-credential", "x-amz-date", "x-amz-signature"];
    if names.iter().all(|name| form.get(name).is_none()) {
        return Ok(None);
    }
    let field = |name: &str| {
        form.get(name).ok_or_else(|| {
            invalid(format!(
                "Bucket POST must contain a field named '{name}'. If it is specified, please check the order of the \
                 fields."
            ))
        })
    };
    field("policy")?;
    if field("x-amz-algorithm")? != sigv4::ALGORITHM {
        return Err(invalid("x-amz-algorithm only supports \"AWS4-HMAC-SHA256\"".into()));
    }
    let Credential { access_key_id, scope } = Credential::parse(field("x-amz-credential")?)
        .map_err(|clause| invalid(format!("Error parsing the x-amz-credential field; {clause}")))?;
    let time = sigv4::parse_stamp(field("x-amz-date")?)
        .ok_or_else(|| invalid("x-amz-date must be in the format \"yyyyMMdd'T'HHmmss'Z'\"".into()))?;
    let signature = Signature::parse(field("x-amz-signature")?)
        .ok_or_else(|| invalid("x-amz-signature has to be 64 lower-case hexadecimal digits.".into()))?;
    Ok(Some(Claim { access_key_id, scope, time, signature }))
}

fn invalid(message: String) -> Refusal {
    Refusal::new(Code::InvalidArgument, message)
}

impl Claim {
    /// Verifies the claim. `form` is the one that it was read from, `bucket` the request's,
    /// `region` the gateway's. Returns the policy, by which the caller has to check the file's
    /// length.
    ///
    /// # Errors
    /// Returns an error if the claim is for another region or time, if the signature is of another
    /// policy or by another key, or if the policy doesn't allow the form.
    pub fn verify(
        &self,
        form: &Form,
        bucket: &str,
        secret: &SigningSecret,
        region: &str,
        now: Timestamp,
    ) -> Result<Policy, Refusal> {
        self.check_scope(region, now)?;
        let text = form.get("policy").unwrap_or_default();
        if !secret.holds(&self.scope, text.as_bytes(), &self.signature) {
            return Err(sigv4::mismatch());
        }
        let policy = Policy::parse(text)?;
        if policy.expiration < now {
            return Err(denied("Policy expired."));
        }
        if form.get("bucket").is_some_and(|named| named != bucket) {
            return Err(malformed("The form's field 'bucket' names another bucket than the request."));
        }
        policy.check(form, bucket, &form.key()?)?;
        Ok(policy)
    }

    /// Refuses a claim with an unknown key, after the same work as [`Claim::verify`] up to the
    /// signature.
    #[must_use]
    pub fn refuse_unknown(&self, form: &Form, region: &str, now: Timestamp) -> Refusal {
        let text = form.get("policy").unwrap_or_default();
        let refused = self.check_scope(region, now).err();
        refused.unwrap_or_else(|| sigv4::unknown_key(&self.scope, text.as_bytes(), &self.signature))
    }

    fn check_scope(&self, region: &str, now: Timestamp) -> Result<(), Refusal> {
        let Scope { date, region: theirs } = &self.scope;
        if theirs != region {
            let message = format!(
                "Error parsing the x-amz-credential field; the region '{theirs}' is wrong; expecting '{region}'"
            );
            return Err(invalid(message).with("Region", region));
        }
        if *date != Day::of(self.time) {
            return Err(invalid("The date of x-amz-credential is not the day of x-amz-date.".into()));
        }
        let age = now.duration_since(self.time);
        if age < -SKEW {
            return Err(
                Refusal::new(Code::AccessDenied, "Request is not valid yet").with("ServerTime", now.to_string())
            );
        }
        if age > LONGEST {
            return Err(denied("Policy expired."));
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "verify_tests.rs"]
mod tests;
