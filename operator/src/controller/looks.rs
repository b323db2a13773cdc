//! What this process remembers of the buckets of claims: when each is looked at next, and what was seen.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::api::Reason;
use crate::plan::{self, View};

use super::jittered;

/// When a drift check that failed is repeated.
const LOOK_AGAIN: Duration = Duration::from_secs(30);

/// When the bucket of each claim is next looked at, and whether it was missing last time.
#[derive(Default)]
pub(super) struct Looks(Mutex<BTreeMap<String, LookTime>>);

struct LookTime {
    due: Instant,
    missing: bool,
    /// Until when a CreateBucket that got no answer may still happen.
    create_pending: Option<Instant>,
}

fn tells_of_a_missing_bucket(view: &View) -> bool {
    let missing = Reason::BucketMissing.to_string();
    view.claim.status.conditions.iter().any(|c| c.type_ == "BucketCreated" && c.reason == missing)
}

impl Looks {
    /// Tells the view what earlier passes of this process saw. A claim that this process sees for the first time is
    /// looked at within one interval, at once if its status tells of trouble: a hint, never a memory.
    pub(super) fn recall(&self, uid: &str, view: &mut View, interval: Duration) {
        let mut looks = self.lock();
        let look = looks.entry(uid.to_owned()).or_insert_with(|| {
            let troubled =
                view.claim.status.conditions.iter().any(|c| c.type_ == "BucketCreated" && c.status == "False");
            let wait = if troubled { Duration::ZERO } else { interval.mul_f64(fastrand::f64()) };
            LookTime { due: Instant::now() + wait, missing: false, create_pending: None }
        });
        let told = tells_of_a_missing_bucket(view);
        if look.missing != told {
            // Another operator saw something else: the store decides. Until it answers the status stands, or the two
            // would write it over each other's for ever.
            look.missing = told;
            look.due = Instant::now();
        }
        view.known_missing = look.missing;
        view.create_pending = look.create_pending.map(|until| until.saturating_duration_since(Instant::now()));
        view.create_pending = view.create_pending.filter(|time| !time.is_zero());
        view.look_due = look.due <= Instant::now();
    }

    /// Takes in what a pass saw. A look that failed is repeated soon; one that had to wait stays due.
    pub(super) fn remember(&self, uid: &str, view: &View, interval: Duration) {
        let mut looks = self.lock();
        if let Some(look) = looks.get_mut(uid) {
            look.missing = plan::bucket_is_missing(view);
            let failed = look.due <= Instant::now() && !view.look_due && view.bucket.is_none();
            if failed {
                look.due = Instant::now() + jittered(LOOK_AGAIN);
            } else if view.bucket.is_some() {
                look.due = Instant::now() + jittered(interval);
            }
        }
    }

    /// Notes that a CreateBucket got no answer: it may happen until the call's deadline has passed once more.
    pub(super) fn create_unanswered(&self, uid: &str, deadline: Duration) {
        if let Some(look) = self.lock().get_mut(uid) {
            look.create_pending = Some(Instant::now() + deadline);
        }
    }

    /// How long until the claim's bucket is to be looked at; `None` if that is overdue, and waits for something else.
    pub(super) fn until_due(&self, uid: &str) -> Option<Duration> {
        let due = self.lock().get(uid)?.due;
        due.checked_duration_since(Instant::now()).filter(|wait| !wait.is_zero())
    }

    /// Forgets a claim that is gone.
    pub(super) fn forget(&self, uid: &str) {
        self.lock().remove(uid);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, LookTime>> {
        // The map is whole whatever happened to a thread that held it.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
