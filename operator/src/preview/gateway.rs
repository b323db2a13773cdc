//! Infers the gateway that the operator is configured with.

use std::collections::BTreeMap;

use crate::api::{AddressingStyle, ClaimRef, Endpoint, Gateway};
use crate::cache::SecretCache;
use crate::controller::objects::Claim;

use super::setup::GivenGateway;

/// Placeholder if the gateway's address is unknown. No output depends on it then.
const NOWHERE: &str = "http://gateway.invalid";

/// Returns the gateway that the operator most likely uses. A value that isn't given is taken from
/// most bound claims.
///
/// The address is taken from their status, which only the operator writes; without bound claims,
/// from consumer Secrets.
pub(super) fn gateway(
    given: &GivenGateway,
    claims: &BTreeMap<ClaimRef, Claim>,
    consumers: &SecretCache,
) -> (Gateway, Vec<String>) {
    let statuses = claims.values().filter_map(|claim| claim.0.as_ref().ok()?.status.as_ref());
    let endpoints = statuses.filter_map(|status| Endpoint::parse(status.proxy_endpoint.as_deref()?).ok());
    let secrets = consumers.all();
    let texts = |key: &'static str| secrets.iter().filter_map(move |secret| secret.text(key).map(str::to_owned));
    let style = |text: String| AddressingStyle::ALL.into_iter().find(|style| style.as_str() == text);
    let mut assumed = Vec::new();
    let endpoint = given.endpoint.clone().or_else(|| {
        let of_claims = most_frequent(endpoints.map(|endpoint| endpoint.to_string()));
        // A cluster may have accesses without any claim.
        let of_secrets = || most_frequent(texts("AWS_ENDPOINT_URL")).map(|found| (found, "consumer Secrets"));
        let found = of_claims.map(|found| (found, "bound claims")).or_else(of_secrets);
        assumed.push(match &found {
            Some((found, whose)) => {
                format!("--gateway-endpoint is not given, and taken to be {found}, as most {whose} have it")
            }
            None => "--gateway-endpoint is not given, and no bound claim shows it".to_owned(),
        });
        found.and_then(|(found, _)| Endpoint::parse(&found).ok())
    });
    let endpoint = endpoint.unwrap_or_else(|| Endpoint::parse(NOWHERE).expect("it is a URL"));
    let region = given.region.clone().or_else(|| most_frequent(texts("AWS_REGION")));
    let styles = || most_frequent(texts("S3_ADDRESSING_STYLE")).and_then(style);
    let gateway = Gateway {
        endpoint,
        region: region.unwrap_or_else(|| "us-east-1".to_owned()),
        addressing_style: given.addressing_style.or_else(styles).unwrap_or(AddressingStyle::Path),
        ca: given.ca.clone(),
    };
    (gateway, assumed)
}

/// Returns the most frequent string; of several, the first in order.
fn most_frequent(all: impl Iterator<Item = String>) -> Option<String> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    all.for_each(|one| *counts.entry(one).or_default() += 1);
    let most = counts.values().max().copied()?;
    counts.into_iter().find(|(_, count)| *count == most).map(|(one, _)| one)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_frequent_counts_and_of_several_the_first_in_order() {
        let of = |all: &[&str]| most_frequent(all.iter().map(|it| (*it).to_owned()));
        assert_eq!(of(&[]), None);
        assert_eq!(of(&["b", "a", "b"]).as_deref(), Some("b"));
        assert_eq!(of(&["b", "a"]).as_deref(), Some("a"));
    }
}
