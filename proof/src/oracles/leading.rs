//! Leader election (I17): only the operator named by the Lease changes anything.
//!
//! Each change is judged twice: when it was sent, and when it was carried out. An operator that was
//! the leader when it sent a change, and no longer when the change was carried out, has interfered
//! with its successor; so has one that released the Lease with a change in flight.

use jiff::{SignedDuration, Timestamp};
use kube_sim::Stored;
use seeded::VirtualClock;
use stowage_world::operator_instance;

use super::Promise;
use super::findings::Findings;
use super::state::{Hand, HistoryStep, Seen, State};

/// Name of the operators' Lease. Gateways have Leases in the same namespace, too.
const LEASE: &str = "stowage-operator";

/// Holders of the Lease, each from a moment on.
#[derive(Debug, Default)]
pub(super) struct Leading(Vec<(Timestamp, Option<u32>)>);

impl Leading {
    /// Judges a step.
    pub(super) fn see(&mut self, state: &State<'_>, step: &HistoryStep<'_>, found: &mut Findings) {
        if !state.setting.elects {
            return;
        }
        match &step.seen {
            Seen::Object(stored) if stored.plural == "leases" => self.remember(step.at, stored),
            Seen::Asked(asked) if asked.plural != "leases" => {
                let what = format!("{} {} {}/{}", asked.method, asked.plural, asked.namespace, asked.name);
                self.judge(state, step, &what, found);
            }
            Seen::Called(called) if !called.operation.is_read() => {
                let what = format!("{} {}", called.operation.name(), called.bucket.as_deref().unwrap_or_default());
                self.judge(state, step, &what, found);
            }
            _ => {}
        }
    }

    /// Records the holder. Deleting the Lease doesn't end the leadership of the last holder until
    /// another one is named.
    fn remember(&mut self, at: Timestamp, stored: &Stored) {
        if let Some(lease) = stored.new.as_deref().filter(|lease| lease["metadata"]["name"] == LEASE) {
            let holder = lease["spec"]["holderIdentity"].as_str().and_then(operator_instance);
            self.0.push((at, holder));
        }
    }

    fn named_at(&self, moment: Timestamp) -> Option<u32> {
        self.0.iter().rev().find(|(since, _)| *since <= moment).and_then(|(_, named)| *named)
    }

    fn judge(&self, state: &State<'_>, step: &HistoryStep<'_>, what: &str, found: &mut Findings) {
        let Hand::Operator(number) = step.hand else { return };
        let Some(line) = state.line(number) else { return };
        let sent = SignedDuration::from_millis(i64::try_from(line.began_ms).unwrap_or(i64::MAX));
        let sent = VirtualClock::epoch().checked_add(sent).unwrap_or(step.at);
        for (when, moment) in [("sent", sent), ("carried out", step.at)] {
            let named = self.named_at(moment);
            if named != Some(line.instance) {
                let named = named.map_or("nobody".to_owned(), |named| format!("life {named}"));
                let message = format!("{what} of life {} is {when} while the Lease names {named}", line.instance);
                return found.broken(Promise::I17, step, message);
            }
        }
    }
}
