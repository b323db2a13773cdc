//! How far an operator reaches: whose claims and accesses it serves (spec §3.9).

use std::collections::BTreeSet;

/// The namespaces that an operator serves. Of what is in any other it knows nothing: neither that
/// something is there nor that it isn't.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Reach {
    /// All that there are.
    #[default]
    Cluster,
    /// These, whether they are there yet or not.
    Namespaces(BTreeSet<String>),
}

/// What one watch tells of.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// All namespaces.
    All,
    /// One namespace.
    Namespace(String),
}

impl Reach {
    /// From the namespaces that somebody names; of none it is the cluster.
    ///
    /// # Errors
    /// When one is named twice: whoever wrote that may have meant another. Says which.
    pub fn of(namespaces: Vec<String>) -> Result<Self, String> {
        if namespaces.is_empty() {
            return Ok(Self::Cluster);
        }
        let mut named = BTreeSet::new();
        for namespace in namespaces {
            if let Some(twice) = named.replace(namespace) {
                return Err(format!("--watch-namespace names {twice} twice"));
            }
        }
        Ok(Self::Namespaces(named))
    }

    /// Whether what is in this namespace is this operator's to serve and to judge.
    pub fn has(&self, namespace: &str) -> bool {
        match self {
            Self::Cluster => true,
            Self::Namespaces(namespaces) => namespaces.contains(namespace),
        }
    }

    /// Whether all namespaces can be asked: only then is what no answer shows nowhere.
    pub fn is_whole(&self) -> bool {
        self.names().is_none()
    }

    /// The namespaces by name; `None` = all that there are.
    pub fn names(&self) -> Option<&BTreeSet<String>> {
        match self {
            Self::Cluster => None,
            Self::Namespaces(names) => Some(names),
        }
    }

    /// The watches that together tell of all that it reaches.
    pub fn parts(&self) -> Vec<Part> {
        match self {
            Self::Cluster => vec![Part::All],
            Self::Namespaces(namespaces) => namespaces.iter().cloned().map(Part::Namespace).collect(),
        }
    }
}

impl Part {
    /// Whether the watch tells of what is in this namespace.
    pub fn covers(&self, namespace: &str) -> bool {
        match self {
            Self::All => true,
            Self::Namespace(own) => own == namespace,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: 3.9.flag
    #[test]
    fn who_names_no_namespace_means_the_cluster_and_nobody_names_one_twice() {
        let of = |names: &[&str]| Reach::of(names.iter().map(|it| (*it).to_owned()).collect());
        let cluster = of(&[]).unwrap();
        assert_eq!(cluster, Reach::Cluster);
        assert!(cluster.has("team-x") && cluster.is_whole());
        let two = of(&["team-b", "team-a"]).unwrap();
        assert_eq!([two.has("team-a"), two.has("team-b"), two.has("team-x")], [true, true, false]);
        assert!(!two.is_whole());
        let parts = two.parts();
        assert_eq!(parts, ["team-a", "team-b"].map(|it| Part::Namespace(it.to_owned())));
        assert!(parts[0].covers("team-a") && !parts[0].covers("team-b"));
        assert_eq!(of(&["a", "b", "a"]), Err("--watch-namespace names a twice".to_owned()));
    }
}
