//! The response format that the client accepts, from its `Accept` header.

use http::{HeaderMap, header};

/// The part of each object that a table includes (`includeObject`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Include {
    None,
    Metadata,
    Object,
}

/// The format of objects and lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    Whole,
    /// `PartialObjectMetadata` or a list of it.
    Metadata,
    /// A `Table` of this API version of `meta.k8s.io`.
    Table(&'static str),
}

/// The format of a discovery document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Discovery {
    /// A list of groups, and one document per group version.
    Legacy,
    /// One document for everything, in this version of `apidiscovery.k8s.io`.
    Aggregated(&'static str),
}

/// One media type of the header, with its parameters.
struct Media<'a> {
    name: &'a str,
    parameters: Vec<(&'a str, &'a str)>,
}

impl<'a> Media<'a> {
    fn parse(text: &'a str) -> Self {
        let mut parts = text.split(';').map(str::trim);
        let name = parts.next().unwrap_or_default();
        Self { name, parameters: parts.filter_map(|part| part.split_once('=')).collect() }
    }

    fn parameter(&self, name: &str) -> &'a str {
        self.parameters.iter().find(|(key, _)| *key == name).map_or("", |(_, value)| value)
    }

    /// Returns true if JSON satisfies this media type.
    fn is_json(&self) -> bool {
        matches!(self.name, "application/json" | "application/*" | "*/*")
    }
}

/// Returns the accepted media types that JSON satisfies, in order of preference.
fn accepted(headers: &HeaderMap) -> Vec<Media<'_>> {
    let text = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    text.split(',').map(Media::parse).filter(Media::is_json).collect()
}

/// Returns the format for objects: the first known one of the header, else whole objects.
pub(super) fn wanted(headers: &HeaderMap) -> Wanted {
    let form = |media: &Media<'_>| match (media.parameter("as"), media.parameter("g"), media.parameter("v")) {
        ("", _, _) => Some(Wanted::Whole),
        ("Table", "meta.k8s.io", "v1") => Some(Wanted::Table("meta.k8s.io/v1")),
        ("Table", "meta.k8s.io", "v1beta1") => Some(Wanted::Table("meta.k8s.io/v1beta1")),
        ("PartialObjectMetadata" | "PartialObjectMetadataList", _, _) => Some(Wanted::Metadata),
        _ => None,
    };
    accepted(headers).iter().find_map(form).unwrap_or(Wanted::Whole)
}

/// Returns the format for discovery: the first known one of the header, else the legacy one.
pub(super) fn discovery(headers: &HeaderMap) -> Discovery {
    let form = |media: &Media<'_>| match (media.parameter("as"), media.parameter("g"), media.parameter("v")) {
        ("", _, _) => Some(Discovery::Legacy),
        ("APIGroupDiscoveryList", "apidiscovery.k8s.io", "v2") => Some(Discovery::Aggregated("v2")),
        ("APIGroupDiscoveryList", "apidiscovery.k8s.io", "v2beta1") => Some(Discovery::Aggregated("v2beta1")),
        _ => None,
    };
    accepted(headers).iter().find_map(form).unwrap_or(Discovery::Legacy)
}

/// Parses `includeObject`; unknown values mean metadata.
pub(super) fn include(text: Option<&str>) -> Include {
    match text {
        Some("None") => Include::None,
        Some("Object") => Include::Object,
        _ => Include::Metadata,
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn headers(accept: &'static str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT, http::HeaderValue::from_static(accept));
        headers
    }

    #[rstest]
    #[case::kubectl(
        "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json",
        Wanted::Table("meta.k8s.io/v1")
    )]
    #[case::typed_clients("application/vnd.kubernetes.protobuf,application/json", Wanted::Whole)]
    #[case::metadata_clients(
        "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json",
        Wanted::Metadata
    )]
    #[case::whole_goes_first("application/json, application/json;as=Table;v=v1;g=meta.k8s.io", Wanted::Whole)]
    #[case::unknown_forms_are_passed_over("application/json;as=Picture;v=v1;g=meta.k8s.io", Wanted::Whole)]
    #[case::nothing("", Wanted::Whole)]
    fn the_first_known_form_is_taken(#[case] accept: &'static str, #[case] expected: Wanted) {
        assert_eq!(wanted(&headers(accept)), expected);
    }

    #[rstest]
    #[case::newest(
        "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json",
        Discovery::Aggregated("v2")
    )]
    #[case::without_peers(
        "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList;profile=nopeer,application/json",
        Discovery::Aggregated("v2")
    )]
    #[case::older(
        "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList",
        Discovery::Aggregated("v2beta1")
    )]
    #[case::plain("application/json, */*", Discovery::Legacy)]
    fn discovery_is_of_the_form_that_is_asked_for(#[case] accept: &'static str, #[case] expected: Discovery) {
        assert_eq!(discovery(&headers(accept)), expected);
    }
}
