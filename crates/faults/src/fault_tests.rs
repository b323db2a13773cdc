//! Tests of the tables: names, brackets, and a family that a project adds.

use std::collections::BTreeSet;

use super::*;
use crate::row::{Calls, Row};

/// A family of a project: neighbours who visit, and clocks of theirs that are late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Neighbour {
    Visits,
    IsLate { whose: &'static str, seconds: i32 },
}

const WHO: [&str; 2] = ["left", "right"];

impl Neighbour {
    fn late(whose: &str, seconds: i32) -> Option<Self> {
        let whose = WHO.into_iter().find(|who| *who == whose)?;
        Some(Self::IsLate { whose, seconds })
    }
}

impl Vocabulary for Neighbour {
    fn all() -> Vec<Self> {
        let mut all = vec![Self::Visits];
        all.extend(WHO.map(|whose| Self::IsLate { whose, seconds: 45 }));
        all
    }

    fn row(self) -> Row<Self> {
        match self {
            Self::Visits => Row::new("visits", Calls::ANY, Application::World),
            Self::IsLate { whose, seconds } => Row::new("late", Calls::ANY, Application::World)
                .with(Parameter::WordAndSigned { word: whose, seconds, with: Self::late })
                .lasting(Lasts::WholeRun),
        }
    }
}

type WithNeighbours = Fault<Neighbour>;

fn read(text: &str) -> Result<WithNeighbours, Misspelt> {
    match text.split_once('(') {
        None => Fault::read(text, None),
        Some((name, rest)) => Fault::read(name, rest.strip_suffix(')')),
    }
}

#[test]
fn every_fault_is_read_as_it_is_written() {
    for fault in WithNeighbours::all_single() {
        assert_eq!(read(&fault.to_string()), Ok(fault));
    }
}

#[test]
fn no_two_faults_are_written_alike_and_every_kind_counts_by_itself() {
    let all = WithNeighbours::all_single();
    let texts: BTreeSet<String> = all.iter().map(ToString::to_string).collect();
    assert_eq!(texts.len(), all.len());
    let families: BTreeSet<(&str, String)> =
        all.iter().map(|fault| (fault.kind(), format!("{:?}", std::mem::discriminant(fault)))).collect();
    let kinds: BTreeSet<&str> = all.iter().map(|fault| fault.kind()).collect();
    assert_eq!(families.len(), kinds.len(), "a kind stands in two families");
}

#[test]
fn a_refusal_has_its_words_for_each_call_that_it_is_for() {
    let get = Call::Kube(crate::KubeCall::read(&http::Method::GET, &http::Uri::from_static("/api/v1/secrets")));
    let put = http::Uri::from_static("http://s3.local/photos");
    let put = Call::S3(crate::S3Call::read(&http::Method::PUT, &put, &http::HeaderMap::new()));
    for fault in WithNeighbours::all_single() {
        if matches!(fault.applied(), Application::Answer(_) | Application::WorldThenAnswer) {
            assert!(fault.answer(&get).is_some() ^ fault.answer(&put).is_some(), "{fault} has no answer, or two");
        }
    }
}

#[test]
fn what_a_project_brings_is_written_like_the_rest() {
    let late = read("late(right,-45)");
    assert_eq!(late, Ok(Fault::Project(Neighbour::IsLate { whose: "right", seconds: -45 })));
    assert_eq!(read("late(above,-45)"), Err(Misspelt::Parameter));
    assert_eq!(read("late(left,-86401)"), Err(Misspelt::TooLong));
    assert_eq!(read("visits(me)"), Err(Misspelt::Name));
    assert!(WithNeighbours::forms(None).contains("visits, late(left|right,±s)"), "{}", WithNeighbours::forms(None));
    assert_eq!(Fault::<Nobody>::read("visits", None), Err(Misspelt::Name));
}
