//! Tables of known and justified differences, from which `docs/reference/fidelity.md` is generated.

use super::difference::{Exchange, Leaf};
use super::rule::{Consequence, Rule, System};
use super::{kubernetes, s3};

/// Differences between two answers, sorted into explained and unexplained ones.
#[derive(Clone, Debug, PartialEq)]
pub struct Sorted {
    /// Names of the rules that explain a difference, without duplicates.
    pub explained: Vec<&'static str>,
    /// Consequence for the sequence.
    pub then: Consequence,
    /// Leaves that no rule explains.
    pub rest: Vec<Leaf>,
}

/// Returns every known difference.
fn all() -> impl Iterator<Item = &'static Rule> {
    kubernetes::rules::RULES.iter().chain(s3::rules::all())
}

/// Sorts the differences between two answers.
pub fn sort(system: System, exchange: &Exchange, leaves: Vec<Leaf>) -> Sorted {
    let mut sorted = Sorted { explained: Vec::new(), then: Consequence::GoesOn, rest: Vec::new() };
    for leaf in leaves {
        match all().find(|rule| rule.systems.contains(&system) && (rule.applies)(exchange, &leaf)) {
            Some(rule) => {
                if rule.then == Consequence::Ends {
                    sorted.then = Consequence::Ends;
                }
                if !sorted.explained.contains(&rule.name) {
                    sorted.explained.push(rule.name);
                }
            }
            None => sorted.rest.push(leaf),
        }
    }
    sorted
}

/// Parts of the API that the comparison with an API server leaves out.
const NOT_COMPARED: &[(&str, &str)] = &[
    (
        "nulls in an apply",
        "in a server-side apply a null is a value, which the server then refuses or stores; nobody has a use for one",
    ),
    ("writes to the status of a Namespace", "only its controller writes it"),
    (
        "a strategic merge patch that adds to a set and takes from it, and one that doesn't decode",
        "the first is done in the order of a Go map, of the second the patch is shown as Go prints it",
    ),
    (
        "which of several owners a dependant still finds, where some of them are about to go and something holds it",
        "the real collector asks for one after another while others of its workers delete them: chance, so where finalizers hold objects, none has several owners",
    ),
    ("which namespace controller is faster", "both sides are waited for until they hold the same objects"),
    (
        "the order of the errors in a status, and equal errors told twice",
        "a server's own order is random, and it looks at metadata up to three times",
    ),
    (
        "when bookmarks come",
        "a server sends one a minute, or about; the simulator none that tells the client the version that it knows",
    ),
    ("Events of the core group, authentication, discovery", "not simulated"),
    (
        "admission webhooks",
        "they judge who writes through `stowage-sim up`, with the server's words, as its code has them. Not modelled: `reinvocationPolicy`, audit annotations, `authorizer` in conditions, changes of `managedFields`",
    ),
];

/// Parts of the API that the comparison with stores leaves out.
const NOT_COMPARED_S3: &[(&str, &str)] = &[
    ("messages of errors, numbers of requests, headers about the connection", "each server's own words"),
    (
        "owners, regions in the list of buckets, checksums, and what a list repeats of the request",
        "told by some and not by others; nobody of ours reads them",
    ),
    (
        "whether an answer names the version `null`",
        "stores differ, and clients know it. Lists of versions are compared",
    ),
    ("where the next page begins, where there is none", "some say so all the same"),
    (
        "a range together with a condition, `If-Modified-Since` in the future, a limit of 0 or less, tokens made up",
        "no two stores agree, and no client of ours sends them",
    ),
    ("compliance mode", "nobody could take the objects away again"),
    ("a write that asks for a lock that can't be had", "versitygw refuses it and stores the object"),
    ("buckets of other accounts", "an administrator's keys open all of them on both stores"),
    ("policies, ACLs, lifecycle, encryption, presigned URLs", "not simulated"),
];

fn names(systems: &[System]) -> String {
    let name = |system: &System| match system {
        System::Kubernetes => "kube-apiserver",
        System::S3(server) => server.name(),
    };
    systems.iter().map(name).collect::<Vec<_>>().join(", ")
}

/// Returns the text of `docs/reference/fidelity.md`.
pub fn document() -> String {
    let mut text = String::from(INTRODUCTION);
    text += "\n## Explained differences: Kubernetes API\n\n| difference | reason |\n|---|---|\n";
    for rule in kubernetes::rules::RULES {
        text += &format!("| {} | {} |\n", rule.name, rule.reason);
    }
    text += "\n## Explained differences: S3\n\n| difference | with | reason |\n|---|---|---|\n";
    for rule in s3::rules::all() {
        text += &format!("| {} | {} | {} |\n", rule.name, names(rule.systems), rule.reason);
    }
    for (title, left_out) in [("Kubernetes API", NOT_COMPARED), ("S3", NOT_COMPARED_S3)] {
        text += &format!("\n## Not compared: {title}\n\n| what | why |\n|---|---|\n");
        for (what, why) in left_out {
            text += &format!("| {what} | {why} |\n");
        }
    }
    text
}

const INTRODUCTION: &str = "\
# How true the simulator is

`stowage-proof conformance` asks a real server and the simulator the same, at random, and compares the answers whole: code,
headers that matter, body. UIDs, versions and times of the run are replaced by the order in which they appear. A difference
is either mended in the simulator or stands here with its reason; anything else fails the run.

| compared with | operations | unexplained | explained |
|---|---|---|---|
| kube-apiserver 1.34 | 10,023 in 350 sequences, seed 12647 | none | 2 in 100 |
| MinIO (February 2026) | 10,000 with each of the seeds 1, 3301, 3302 | none | 7 in 100 |
| versitygw 1.8.0 | the same | none | 8 in 100 |

Ten thousand operations of a fresh seed may show one new oddity.

Of the rules for stores some end the sequence, because the two sides hold different things from then on. A rule names the
stores that it is about, and excuses no other. Where the two real stores differ, the simulator is on the side of Amazon S3's
documentation.

This file is made from the tables in `proof/src/conformance/` (a test compares): write it anew with
`UPDATE_DOCS=1 cargo test --workspace --lib -- fidelity`.
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fidelity_is_documented() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/reference/fidelity.md");
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::write(path, document()).expect("the document can be written");
        }
        let stored = std::fs::read_to_string(path).expect("the document is there");
        assert_eq!(stored, document(), "docs/reference/fidelity.md is not that of the table");
    }
}
