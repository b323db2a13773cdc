//! Preview of the sweeps of deleted claims and accesses.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use crate::controller::drive::{CarryOut, drive};
use crate::controller::orphans::{Asked, look};
use crate::plan::orphans::{Kind, Sweep, SweepAnswer, SweepEnd, SweepStep};
use crate::plan::{Arrival, Bound, Reconciliation, SecretRef, Stored};
use k8s_openapi::jiff::Timestamp;

use super::line::{Deed, Line, Next, Object};
use super::seen::Seen;

/// A sweep, up to its first effect.
struct Ahead<K: Kind>(Sweep<K>);

/// The end of such a sweep.
enum End {
    Delete(SecretRef),
    /// Ends every access by the record with this name.
    Close(String),
    Rest(SweepEnd),
}

impl<K: Kind> Reconciliation for Ahead<K> {
    type Step = SweepStep<K>;
    type Answer = SweepAnswer<K>;
    type End = End;

    fn most(bound: Bound) -> usize {
        Sweep::<K>::most(bound)
    }

    fn bound(step: &SweepStep<K>) -> Bound {
        Sweep::<K>::bound(step)
    }

    fn next(&self, now: Timestamp) -> ControlFlow<End, SweepStep<K>> {
        match self.0.next(now) {
            ControlFlow::Break(end) => ControlFlow::Break(End::Rest(end)),
            ControlFlow::Continue(SweepStep::Delete(secret)) => ControlFlow::Break(End::Delete(secret)),
            ControlFlow::Continue(SweepStep::End(patch)) => ControlFlow::Break(End::Close(patch.target.name)),
            ControlFlow::Continue(step) => ControlFlow::Continue(step),
        }
    }

    fn learn(&mut self, answer: SweepAnswer<K>, arrival: Arrival) {
        self.0.learn(answer, arrival);
    }

    fn cut_short(&self, bound: Bound) -> End {
        End::Rest(self.0.cut_short(bound))
    }
}

struct Eyes<'a>(&'a Seen);

impl<K: Asked> CarryOut<Ahead<K>> for Eyes<'_> {
    async fn carry_out(&mut self, ahead: &Ahead<K>, step: &SweepStep<K>) -> SweepAnswer<K> {
        let answer = look(&self.0.observer, &ahead.0, step).await;
        answer.unwrap_or_else(|why| SweepAnswer::Failed(step.clone(), why))
    }
}

/// Returns the UIDs that have internal Secrets and are not in `live`, each with its Secrets.
pub(super) fn suspects<K: Asked>(seen: &Seen, live: &BTreeSet<String>) -> BTreeMap<K::Uid, Vec<Stored>> {
    let mut suspects: BTreeMap<K::Uid, Vec<Stored>> = BTreeMap::new();
    for secret in seen.observer.internal.all() {
        if let Some(uid) = K::owner(&secret).filter(|uid| !live.contains(K::text(uid))) {
            suspects.entry(uid).or_default().push(secret);
        }
    }
    suspects
}

/// Previews a sweep; `None` if there is nothing to sweep. `object` makes the line's object from
/// namespace and name.
pub(super) async fn look_ahead<K: Asked>(
    seen: &Seen,
    uid: K::Uid,
    secrets: &[Stored],
    object: fn(String, String) -> Object,
) -> Option<Line> {
    let named = secrets.iter().find_map(K::named);
    let (namespace, name) = match &named {
        Some(at) => K::parts(at),
        None => ("", K::text(&uid)),
    };
    let object = object(namespace.to_owned(), name.to_owned());
    let noun = K::NOUN;
    let reach = seen.observer.setting.reach.clone();
    let mut ahead = Ahead(Sweep::<K>::new(uid, secrets, BTreeSet::new(), false, reach));
    let next = match drive(&mut ahead, &seen.clock, &mut Eyes(seen)).await {
        End::Delete(secret) => {
            let words = format!("delete Secret {}, which is left of {} that is gone", secret.name, with_article(noun));
            Next::Act(Box::new(Deed { words, step: SweepStep::<K>::Delete(secret).to_string(), act: None }))
        }
        End::Close(record) => {
            let words = format!("end every access by record {record}, which is left of a claim that is gone");
            Next::Act(Box::new(Deed { step: words.clone(), words, act: None }))
        }
        End::Rest(SweepEnd::Done | SweepEnd::Alive | SweepEnd::Elsewhere) => return None,
        End::Rest(SweepEnd::Held) => Next::Wait("its record is kept for a moment".to_owned(), None),
        End::Rest(SweepEnd::Retry(why)) => Next::Unknown(why),
    };
    Some(Line { object, next, doubt: None })
}

fn with_article(noun: &str) -> String {
    let article = if noun.starts_with('a') { "an" } else { "a" };
    format!("{article} {noun}")
}
