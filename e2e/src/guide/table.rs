//! Prerequisites of each page, and the placeholders that its reader fills in.

use super::left_out;
use super::page::{Page, Step};
use super::scripts::{
    ACCESS_OF_OBC, ALL_REVOKED, BOUND, BY_KUSTOMIZE, CLAIM, CLAIM_TO_APPLY, LEASE, LEFT_BEHIND, NAMESPACES,
    NOTHING_INSTALLED, OBC, OF_PROMETHEUS, OTHER_BACKEND, PLANNED, PLUGIN, READER, RELEASE, SHARED_AGAIN,
    SHARED_READER,
};

/// Prerequisites of a page.
pub(super) struct Setup {
    /// Paths of pages, or of folders of pages.
    pages: &'static [&'static str],
    pub(super) ground: Ground,
    /// Scripts that run on top of that, before the first command.
    pub(super) prepare: &'static [&'static str],
    /// Placeholders and the text that replaces them.
    pub(super) filled: &'static [(&'static str, &'static str)],
    /// Scripts that run before the commands with these beginnings, for events that the text
    /// assumes.
    pub(super) before: &'static [(&'static str, &'static str)],
}

/// Initial state of the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ground {
    /// The state of `stowage-sim up --obc --rbac --workloads=ready`.
    Empty,
    /// Like `Empty`, with the namespaces `team-a` and `team-b`.
    Namespaces,
    /// Like `Namespaces`, with a claim `photos` in `team-a`.
    Claim,
    /// Like `Claim`, with a release `stowage` in `stowage-system`.
    Release,
    /// A cluster without the operator and its CRDs, with both namespaces.
    BeforeInstall,
}

impl Ground {
    /// Returns the scripts that create this state.
    pub(super) fn scripts(self) -> &'static [&'static str] {
        match self {
            Self::Empty => &[],
            Self::Namespaces => &[NAMESPACES],
            Self::Claim => &[NAMESPACES, CLAIM],
            Self::Release => &[NAMESPACES, CLAIM, RELEASE],
            Self::BeforeInstall => &[NAMESPACES, NOTHING_INSTALLED],
        }
    }

    /// True if the simulator's operator runs.
    pub(super) fn operator(self) -> bool {
        self != Self::BeforeInstall
    }
}

const USUAL: Setup = Setup { pages: &[], ground: Ground::Claim, prepare: &[], filled: &[], before: &[] };

/// Setups by page; the first matching row counts. A page without played commands needs none.
static SETUPS: [Setup; 13] = [
    Setup {
        pages: &["docs/guide/install.md"],
        ground: Ground::BeforeInstall,
        before: &[("helm install stowage charts/stowage --namespace stowage-system --take-ownership", BY_KUSTOMIZE)],
        filled: &[("<version>", "0.1.0")],
        ..USUAL
    },
    Setup {
        pages: &["docs/guide/simulator.md"],
        ground: Ground::Empty,
        prepare: &[CLAIM_TO_APPLY],
        filled: &[
            ("target/release/stowage-sim", "stowage-sim"),
            // It must be refused.
            ("kubectl --as ann", "! kubectl --as ann"),
            // It would never end.
            ("stowage-sim calls -f -o json", "timeout 1 stowage-sim calls -f -o json || test $? = 124"),
            ("'kubectl apply -f claims.yaml'", "'kubectl apply -f claims.yaml && kill -TERM $PPID'"),
        ],
        ..USUAL
    },
    Setup {
        pages: &["docs/guide/objectbucketclaims.md"],
        // The page creates a storage class of this name itself.
        prepare: &["kubectl delete storageclass buckets"],
        before: &[("kubectl describe obc photos", BOUND), ("kubectl describe ba obc-photos", ACCESS_OF_OBC)],
        ..USUAL
    },
    Setup {
        pages: &["docs/guide/sharing.md"],
        ground: Ground::Namespaces,
        prepare: &[OTHER_BACKEND],
        before: &[("stowage-operator why bucketaccess/team-b/thumbnails", SHARED_AGAIN)],
        ..USUAL
    },
    Setup {
        pages: &["docs/guide/leaked-key.md"],
        prepare: &["kubectl create deployment -n team-a gallery --image=app", SHARED_READER],
        before: &[("kubectl get bucketclaims,bucketaccesses --all-namespaces", ALL_REVOKED)],
        filled: &[
            ("<uid>", "$(kubectl get bucketclaim photos -n team-a -o jsonpath='{.metadata.uid}')"),
            ("<name>", "gallery"),
        ],
        ..USUAL
    },
    Setup {
        pages: &["docs/guide/restore.md"],
        filled: &[
            ("<namespace>/<installation>", "stowage-system/5d0c9b3e-3a4f-4d3e-9a55-0c1a6a1f6b7d"),
            ("<its namespace>", "earlier-system"),
        ],
        ..USUAL
    },
    Setup { pages: &["docs/guide/plan.md"], prepare: &[READER, PLANNED], ..USUAL },
    Setup { pages: &["docs/operate/README.md"], ground: Ground::Release, prepare: &[OF_PROMETHEUS], ..USUAL },
    Setup {
        pages: &["docs/operate/troubleshooting.md"],
        ground: Ground::Release,
        prepare: &[PLUGIN, READER, OBC, BOUND, ACCESS_OF_OBC],
        ..USUAL
    },
    Setup {
        pages: &["docs/operate/uninstall.md"],
        ground: Ground::Release,
        before: &[("kubectl patch bucketclaim <name>", LEFT_BEHIND)],
        filled: &[("<name>", "films")],
        ..USUAL
    },
    Setup {
        pages: &[
            "docs/operate/runbooks/StowageAccessNotReady.md",
            "docs/operate/runbooks/StowageObjectBucketClaimNotBound.md",
        ],
        ground: Ground::Release,
        prepare: &[READER, OBC],
        ..USUAL
    },
    Setup { pages: &["docs/operate/"], ground: Ground::Release, prepare: &[LEASE], ..USUAL },
    Setup { pages: &["docs/guide/"], ..USUAL },
];

/// Returns the prerequisites of a page, if the table has any.
pub(super) fn setup(page: &str) -> Option<&'static Setup> {
    SETUPS.iter().find(|it| it.pages.iter().any(|pages| page.starts_with(pages)))
}

impl Setup {
    /// Returns a command with its placeholders filled in.
    pub(super) fn fill(&self, command: &str) -> String {
        self.filled.iter().fold(command.to_owned(), |command, (word, by)| command.replace(word, by))
    }

    /// Returns the script to run before a command.
    pub(super) fn happened(&self, command: &str) -> Option<&'static str> {
        self.before.iter().find(|(begins, _)| command.starts_with(begins)).map(|(_, script)| *script)
    }
}

/// True if the exit code means success: 0, or 2 of `plan` and `why`, which report by it that there
/// is something to do.
pub(super) fn ends_well(command: &str, code: i32) -> bool {
    let tells = ["stowage-operator plan", "stowage-operator why", "kubectl stowage plan", "kubectl stowage why"];
    code == 0 || (code == 2 && tells.iter().any(|it| command.starts_with(it)))
}

/// Returns entries of the tables that match nothing on these pages any more.
pub(super) fn stale(pages: &[Page]) -> Vec<String> {
    let mut stale = left_out::unused(pages.iter().flat_map(|page| &page.steps));
    for setup in &SETUPS {
        let own: Vec<&Page> =
            pages.iter().filter(|page| self::setup(&page.path).is_some_and(|it| std::ptr::eq(it, setup))).collect();
        let played =
            || own.iter().flat_map(|page| &page.steps).filter(|step| left_out::reason(step).is_none()).map(Step::text);
        let unused = setup.filled.iter().filter(|(word, _)| !played().any(|text| text.contains(word)));
        let unused = unused.chain(setup.before.iter().filter(|(it, _)| !played().any(|text| text.starts_with(it))));
        stale.extend(unused.map(|(word, _)| format!("{}: nothing has `{word}`", setup.pages.join(", "))));
        if played().next().is_none() {
            stale.push(format!("{}: nothing is played", setup.pages.join(", ")));
        }
    }
    stale
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(path: &str, commands: &[&str]) -> Page {
        let steps = commands.iter().map(|it| Step::Command((*it).to_owned())).collect();
        Page { path: path.to_owned(), steps }
    }

    #[test]
    fn a_row_that_is_about_nothing_any_more_is_told() {
        let stale = stale(&[page("docs/guide/leaked-key.md", &["kubectl get <uid>"])]);
        assert!(!stale.iter().any(|it| it.contains("<uid>")), "{stale:?}");
        assert!(stale.contains(&"docs/guide/leaked-key.md: nothing has `<name>`".to_owned()), "{stale:?}");
        assert!(stale.contains(&"docs/guide/plan.md: nothing is played".to_owned()), "{stale:?}");
    }

    #[test]
    fn words_are_filled_in_and_what_happened_before_is_known() {
        let leaked = setup("docs/guide/leaked-key.md").unwrap();
        assert_eq!(leaked.fill("kubectl rollout restart <name>"), "kubectl rollout restart gallery");
        let sharing = setup("docs/guide/sharing.md").unwrap();
        assert!(sharing.happened("stowage-operator why bucketaccess/team-b/thumbnails").is_some());
        assert_eq!(sharing.happened("stowage-operator plan"), None);
        assert_eq!(setup("docs/operate/runbooks/StowageNoLeader.md").unwrap().ground, Ground::Release);
        assert!(setup("docs/proof/README.md").is_none());
    }

    #[test]
    fn plan_says_by_its_exit_code_that_there_is_something_to_do() {
        assert!(ends_well("stowage-operator plan --obc", 2) && ends_well("kubectl get x", 0));
        assert!(!ends_well("stowage-operator plan --obc", 1) && !ends_well("kubectl get x", 2));
    }
}
