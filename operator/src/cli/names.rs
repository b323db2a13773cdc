//! Names of objects on the command line, with the kinds' names as in kubectl.

use daemon::cluster;

use crate::api::{AccessRef, ClaimRef};

/// A kind before a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Claim,
    Access,
    Obc,
}

impl Kind {
    fn of(word: &str) -> Option<Self> {
        match word {
            "bucketclaim" | "bucketclaims" | "bc" => Some(Self::Claim),
            "bucketaccess" | "bucketaccesses" | "ba" => Some(Self::Access),
            "objectbucketclaim" | "objectbucketclaims" | "obc" | "obcs" => Some(Self::Obc),
            _ => None,
        }
    }

    fn noun(self) -> &'static str {
        match self {
            Self::Claim => "claim",
            Self::Access => "access",
            Self::Obc => "ObjectBucketClaim",
        }
    }
}

/// A parsed name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Named {
    Claim(ClaimRef),
    Access(AccessRef),
    Obc(ClaimRef),
}

/// Parses a name: NAME, NAMESPACE/NAME, KIND/NAME or KIND/NAMESPACE/NAME.
///
/// A namespace may have the name of a kind. NAMESPACE/NAME is then a claim in that namespace,
/// unless `namespace` differs from it.
pub(super) fn object(name: &str, namespace: Option<&str>) -> Result<Named, String> {
    let (kind, rest) = match name.split_once('/') {
        Some((word, rest)) => {
            let is_kind = rest.contains('/') || namespace.is_some_and(|namespace| namespace != word);
            Kind::of(word).filter(|_| is_kind).map_or((Kind::Claim, name), |kind| (kind, rest))
        }
        None => (Kind::Claim, name),
    };
    let ClaimRef { namespace, name } = named(kind.noun(), rest, namespace)?;
    Ok(match kind {
        Kind::Claim => Named::Claim(ClaimRef { namespace, name }),
        Kind::Access => Named::Access(AccessRef { namespace, name }),
        Kind::Obc => Named::Obc(ClaimRef { namespace, name }),
    })
}

fn named(noun: &str, name: &str, namespace: Option<&str>) -> Result<ClaimRef, String> {
    let (namespace, name) = match (name.split_once('/'), namespace) {
        (Some((of, _)), Some(namespace)) if of != namespace => {
            return Err(format!("{name} is not in namespace {namespace}, which -n gives"));
        }
        (Some((namespace, name)), _) => (namespace, name),
        (None, Some(namespace)) => (namespace, name),
        (None, None) => return Err(format!("in which namespace is {noun} {name}? Give -n, or NAMESPACE/NAME")),
    };
    let inner = |it: char| it.is_ascii_lowercase() || it.is_ascii_digit() || matches!(it, '-' | '.');
    if name.is_empty() || name.len() > 253 || !name.chars().all(inner) {
        return Err(format!("no {noun} is called {name:?}: a name has 1 to 253 characters of a-z, 0-9, - and ."));
    }
    Ok(ClaimRef { namespace: cluster::namespace(namespace)?, name: name.to_owned() })
}

/// Adds a hint to an error for a name like `obc/NAME` without a namespace, which is read as a
/// claim.
pub(super) fn meant(why: String, claim: &ClaimRef) -> String {
    match Kind::of(&claim.namespace) {
        Some(Kind::Access | Kind::Obc) => {
            format!("{why}; for {claim} in another namespace give -n, or {}/NAMESPACE/{}", claim.namespace, claim.name)
        }
        Some(Kind::Claim) | None => why,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: 5.plan.names
    #[test]
    fn a_kind_before_a_name_makes_it_an_access_or_an_object_bucket_claim() {
        let at = |namespace: &str| (namespace.to_owned(), "reader".to_owned());
        let claim = |of: &str| {
            let (namespace, name) = at(of);
            Named::Claim(ClaimRef { namespace, name })
        };
        let access = |of: &str| {
            let (namespace, name) = at(of);
            Named::Access(AccessRef { namespace, name })
        };
        let obc = |of: &str| {
            let (namespace, name) = at(of);
            Named::Obc(ClaimRef { namespace, name })
        };
        for (name, namespace, means) in [
            ("bucketaccess/reader", Some("team-b"), access("team-b")),
            ("bucketaccess/team-b/reader", None, access("team-b")),
            ("ba/team-b/reader", Some("team-b"), access("team-b")),
            ("obc/reader", Some("team-b"), obc("team-b")),
            ("objectbucketclaim/team-b/reader", None, obc("team-b")),
            ("bc/team-b/reader", None, claim("team-b")),
            // As before kinds were supported: a claim in a namespace of that name.
            ("obc/reader", None, claim("obc")),
            ("ba/reader", Some("ba"), claim("ba")),
        ] {
            assert_eq!(object(name, namespace), Ok(means), "{name} in {namespace:?}");
        }
        for (name, namespace, why) in [
            ("obc/team-b/reader", Some("team-a"), "team-b/reader is not in namespace team-a"),
            ("secret/team-b/reader", None, "no claim is called"),
            ("ba/team-b/a/b", None, "no access is called"),
            ("ba/Team/b", None, "1 to 63 characters"),
        ] {
            let refused = object(name, namespace).expect_err(why);
            assert!(refused.contains(why), "{refused}");
        }
        let hint = meant("there is none".to_owned(), &ClaimRef { namespace: "obc".into(), name: "a".into() });
        assert!(hint.ends_with("give -n, or obc/NAMESPACE/a"), "{hint}");
    }
}
