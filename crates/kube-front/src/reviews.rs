//! The reviews of `authentication.k8s.io` and `authorization.k8s.io`, which are answered and not
//! stored.
//!
//! Permissions are decided by the authorizer.

use kube_sim::kind::Names;
use serde_json::{Value, json};

use super::authorize::{Authorizer, asked};
use super::identity::Identity;
use super::rbac::Attributes;
use super::resource::{Backing, Content, Resource, Review};

const AUTHENTICATION: &str = "authentication.k8s.io";
const AUTHORIZATION: &str = "authorization.k8s.io";

/// All reviews with their groups, plurals and kinds.
const ALL: [(Review, &str, &str, &str); 6] = [
    (Review::SelfSubject, AUTHENTICATION, "selfsubjectreviews", "SelfSubjectReview"),
    (Review::Token, AUTHENTICATION, "tokenreviews", "TokenReview"),
    (Review::LocalSubjectAccess, AUTHORIZATION, "localsubjectaccessreviews", "LocalSubjectAccessReview"),
    (Review::SelfSubjectAccess, AUTHORIZATION, "selfsubjectaccessreviews", "SelfSubjectAccessReview"),
    (Review::SelfSubjectRules, AUTHORIZATION, "selfsubjectrulesreviews", "SelfSubjectRulesReview"),
    (Review::SubjectAccess, AUTHORIZATION, "subjectaccessreviews", "SubjectAccessReview"),
];

/// Returns the reviews as resources that can only be created.
pub(super) fn resources() -> Vec<Resource> {
    ALL.iter()
        .map(|(review, group, plural, kind)| Resource {
            group: (*group).to_owned(),
            version: "v1".to_owned(),
            plural: (*plural).to_owned(),
            kind: (*kind).to_owned(),
            names: Names { singular: kind.to_lowercase(), list: format!("{kind}List"), ..Names::default() },
            namespaced: *review == Review::LocalSubjectAccess,
            verbs: &["create"],
            subresources: Vec::new(),
            columns: None,
            scale: None,
            content: Content::Anything,
            backing: Backing::Review(*review),
        })
        .collect()
}

/// Answers a review: returns it with its `status`. `namespace` is the one in the path, and `known`
/// returns the user of a token.
pub(super) fn answer(
    review: Review,
    mut question: Value,
    namespace: &str,
    caller: &Identity,
    authorizer: &Authorizer<'_>,
    known: impl FnOnce(&str) -> Option<Identity>,
) -> Value {
    if !question["metadata"].is_object() {
        question["metadata"] = json!({});
    }
    let status = match review {
        Review::SelfSubject => json!({"userInfo": caller.user_info()}),
        Review::Token => token_status(&question, known),
        Review::SelfSubjectAccess => access(authorizer, caller, &asked(&question["spec"])),
        Review::SubjectAccess | Review::LocalSubjectAccess => {
            let mut wanted = asked(&question["spec"]);
            if review == Review::LocalSubjectAccess {
                namespace.clone_into(&mut wanted.namespace);
            }
            access(authorizer, &subject(&question["spec"]), &wanted)
        }
        Review::SelfSubjectRules => {
            let rules = authorizer.rules(caller, question["spec"]["namespace"].as_str().unwrap_or_default());
            let (paths, resources): (Vec<Value>, Vec<Value>) =
                rules.into_iter().partition(|rule| rule["nonResourceURLs"].is_array());
            json!({"resourceRules": resources, "nonResourceRules": paths, "incomplete": false})
        }
    };
    question["status"] = status;
    question
}

fn access(authorizer: &Authorizer<'_>, who: &Identity, wanted: &Attributes) -> Value {
    match authorizer.allowed(who, wanted) {
        Some(reason) if reason.is_empty() => json!({"allowed": true}),
        Some(reason) => json!({"allowed": true, "reason": reason}),
        None => json!({"allowed": false}),
    }
}

/// Returns the user that a review is about.
fn subject(spec: &Value) -> Identity {
    let groups = spec["groups"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let groups: Vec<&str> = groups.collect();
    Identity::new(spec["user"].as_str().unwrap_or_default(), &groups)
}

fn token_status(question: &Value, known: impl FnOnce(&str) -> Option<Identity>) -> Value {
    match known(question["spec"]["token"].as_str().unwrap_or_default()) {
        Some(identity) => {
            let mut status = json!({"authenticated": true, "user": identity.user_info()});
            if question["spec"]["audiences"].is_array() {
                status["audiences"] = question["spec"]["audiences"].clone();
            }
            status
        }
        None => json!({"user": {}, "error": "the token is nobody's"}),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use kube_sim::Cluster;

    use super::*;
    use crate::options::Authorization;

    fn caller() -> Identity {
        Identity::new("ann", &["team"])
    }

    fn answered(review: Review, question: Value, known: impl FnOnce(&str) -> Option<Identity>) -> Value {
        let cluster = Cluster::new(Arc::new(|| jiff::Timestamp::UNIX_EPOCH), 1);
        let authorizer = Authorizer { cluster: &cluster, authorization: Authorization::AllowAll };
        answer(review, question, "", &caller(), &authorizer, known)["status"].clone()
    }

    #[test]
    fn who_asks_is_told_who_they_are() {
        let status = answered(Review::SelfSubject, json!({"kind": "SelfSubjectReview"}), |_| None);
        assert_eq!(status["userInfo"], json!({"username": "ann", "groups": ["team"]}));
    }

    #[test]
    fn an_unknown_token_is_nobody_s() {
        let status = answered(Review::Token, json!({"spec": {"token": "x"}}), |_| None);
        assert!(status["authenticated"].is_null());
    }

    #[test]
    fn a_known_token_is_its_owner_s() {
        let known = |token: &str| (token == "x").then(caller);
        let status = answered(Review::Token, json!({"spec": {"token": "x"}}), known);
        assert_eq!((&status["authenticated"], &status["user"]["username"]), (&json!(true), &json!("ann")));
    }
}
