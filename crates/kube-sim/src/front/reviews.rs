//! Questions about callers and what they may do: the reviews of `authentication.k8s.io` and
//! `authorization.k8s.io`. They are answered and kept nowhere.
//!
//! Everybody who is known may do everything: there is no RBAC behind it.

use serde_json::{Value, json};

use super::catalog::{Backing, Resource};
use super::identity::Identity;
use crate::kind::Names;

const AUTHENTICATION: &str = "authentication.k8s.io";
const AUTHORIZATION: &str = "authorization.k8s.io";

/// Why everything is allowed, in the words of the answer.
const REASON: &str = "everything is allowed: this server has no authorization";

/// Which question is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Review {
    /// Who the caller is.
    SelfSubject,
    /// Whose a token is.
    Token,
    /// Whether the caller may do something.
    SelfSubjectAccess,
    /// What the caller may do in a namespace.
    SelfSubjectRules,
    /// Whether somebody may do something.
    SubjectAccess,
    /// The same within a namespace.
    LocalSubjectAccess,
}

/// All reviews: group, plural, kind.
const ALL: [(Review, &str, &str, &str); 6] = [
    (Review::SelfSubject, AUTHENTICATION, "selfsubjectreviews", "SelfSubjectReview"),
    (Review::Token, AUTHENTICATION, "tokenreviews", "TokenReview"),
    (Review::LocalSubjectAccess, AUTHORIZATION, "localsubjectaccessreviews", "LocalSubjectAccessReview"),
    (Review::SelfSubjectAccess, AUTHORIZATION, "selfsubjectaccessreviews", "SelfSubjectAccessReview"),
    (Review::SelfSubjectRules, AUTHORIZATION, "selfsubjectrulesreviews", "SelfSubjectRulesReview"),
    (Review::SubjectAccess, AUTHORIZATION, "subjectaccessreviews", "SubjectAccessReview"),
];

/// The reviews as resources that can only be created.
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
            schema: json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}),
            backing: Backing::Review(*review),
        })
        .collect()
}

/// Answers a review: the question with its `status`. `known` tells whose a token is.
pub(super) fn answer(
    review: Review,
    mut question: Value,
    caller: &Identity,
    known: impl FnOnce(&str) -> Option<Identity>,
) -> Value {
    if !question["metadata"].is_object() {
        question["metadata"] = json!({});
    }
    let status = match review {
        Review::SelfSubject => json!({"userInfo": caller.user_info()}),
        Review::Token => token_status(&question, known),
        Review::SelfSubjectAccess | Review::SubjectAccess | Review::LocalSubjectAccess => {
            json!({"allowed": true, "reason": REASON})
        }
        Review::SelfSubjectRules => json!({
            "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
            "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
            "incomplete": false,
        }),
    };
    question["status"] = status;
    question
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
    use super::*;

    fn caller() -> Identity {
        Identity::new("ann", &["team"])
    }

    #[test]
    fn who_asks_is_told_who_they_are() {
        let answer = answer(Review::SelfSubject, json!({"kind": "SelfSubjectReview"}), &caller(), |_| None);
        assert_eq!(answer["status"]["userInfo"], json!({"username": "ann", "groups": ["team"]}));
    }

    #[test]
    fn an_unknown_token_is_nobody_s() {
        let question = json!({"spec": {"token": "x"}});
        assert!(answer(Review::Token, question, &caller(), |_| None)["status"]["authenticated"].is_null());
    }

    #[test]
    fn a_known_token_is_its_owner_s() {
        let question = json!({"spec": {"token": "x"}});
        let known = |token: &str| (token == "x").then(caller);
        let status = answer(Review::Token, question, &caller(), known)["status"].clone();
        assert_eq!((&status["authenticated"], &status["user"]["username"]), (&json!(true), &json!("ann")));
    }
}
