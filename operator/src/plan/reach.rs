//! Namespaces whose claims and accesses an operator serves (spec §3.9).

use std::collections::BTreeSet;

/// Namespaces that an operator serves. Nothing is known about any other namespace: neither presence
/// nor absence of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Reach {
    /// All namespaces.
    #[default]
    Cluster,
    /// These namespaces, whether they exist yet or not.
    Namespaces(BTreeSet<String>),
}

/// Scope of one watch.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// All namespaces.
    All,
    /// One namespace.
    Namespace(String),
}

impl Reach {
    /// Creates the reach from the configured namespaces. An empty list means the cluster.
    ///
    /// # Errors
    /// If a namespace is named twice, because one of the two may be a typo. Contains its name.
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

    /// Returns true if this operator serves objects in this namespace.
    pub fn has(&self, namespace: &str) -> bool {
        match self {
            Self::Cluster => true,
            Self::Namespaces(namespaces) => namespaces.contains(namespace),
        }
    }

    /// Returns true if all namespaces can be queried. Only then does a missing answer prove
    /// absence.
    pub fn is_whole(&self) -> bool {
        self.names().is_none()
    }

    /// Returns the namespaces by name, or `None` for all namespaces.
    pub fn names(&self) -> Option<&BTreeSet<String>> {
        match self {
            Self::Cluster => None,
            Self::Namespaces(names) => Some(names),
        }
    }

    /// Returns the watches that together cover all served namespaces.
    pub fn parts(&self) -> Vec<Part> {
        match self {
            Self::Cluster => vec![Part::All],
            Self::Namespaces(namespaces) => namespaces.iter().cloned().map(Part::Namespace).collect(),
        }
    }
}

impl Part {
    /// Returns true if the watch covers this namespace.
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
