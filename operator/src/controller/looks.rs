//! Memory of this process about the buckets of claims: when each is checked next, what was seen,
//! and which buckets a claim that is being deleted has released.

use std::collections::BTreeMap;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::api::Reason;
use crate::plan::{self, Checked, LetGo, Remembered, Rest, Target, View};

use super::config::Config;
use super::jitter::jittered;

/// Number of generations below the last known one that the next pass over a claim being deleted
/// reads again by name, because an answer may have been outdated.
const ASKED_AGAIN: u64 = 1000;

/// Delay before a failed drift check is repeated; it doubles up to the interval.
const LOOK_AGAIN: Duration = Duration::from_secs(30);

/// Time of the next check of each claim's bucket, and the result of the last one.
pub(super) struct Looks {
    began: Instant,
    claims: Mutex<BTreeMap<String, LookTime>>,
}

impl Default for Looks {
    fn default() -> Self {
        Self { began: Instant::now(), claims: Mutex::default() }
    }
}

struct LookTime {
    due: Instant,
    /// Consecutive failed checks.
    failures: u32,
    missing_at: Option<Target>,
    /// Time until which a call that changes a bucket, and got no answer, may still take effect.
    unanswered: Option<Instant>,
    /// Buckets released by a claim being deleted, for the Events of the pass that removes the
    /// finalizer.
    let_go: Vec<LetGo>,
    /// Generation up to which a claim being deleted is known to have no credentials.
    revoked_through: u64,
    /// Number of credentials deleted with a claim being deleted and not reported yet.
    revoked: u32,
}

impl Looks {
    /// Returns the memory of earlier passes for a pass that begins.
    ///
    /// The bucket of a claim that this process sees for the first time is checked within one
    /// interval, or at once if its status reports trouble. The status is only a hint here, not a
    /// memory.
    pub(super) fn recall(&self, uid: &str, view: &View, config: &Config) -> Remembered {
        let mut looks = self.claims.lock();
        let look = looks.entry(uid.to_owned()).or_insert_with(|| {
            let wait = if is_troubled(view) { Duration::ZERO } else { config.resync_interval.mul_f64(fastrand::f64()) };
            let unanswered = may_be_under_way(view).then(|| self.began + config.limits.timeout);
            LookTime {
                due: Instant::now() + wait,
                failures: 0,
                missing_at: None,
                unanswered,
                let_go: Vec::new(),
                revoked_through: 0,
                revoked: 0,
            }
        });
        if look.missing_at.is_some() != tells_of_a_missing_bucket(view) {
            // Another operator saw something else: the store decides. Keep what the status says
            // until the store answers. Otherwise the two operators would overwrite the status for
            // ever.
            look.missing_at = if look.missing_at.is_some() { None } else { view.bucket_of_record() };
            look.due = Instant::now();
        }
        let left = look.unanswered.map(|until| until.saturating_duration_since(Instant::now()));
        Remembered {
            setbacks: 0,
            missing_at: look.missing_at.clone(),
            unanswered: left.filter(|left| !left.is_zero()),
            look_due: look.due <= Instant::now(),
            complete_after: None,
            let_go: look.let_go.clone(),
            revoked_through: look.revoked_through.saturating_sub(ASKED_AGAIN),
            revoked: look.revoked,
            held_off: None,
        }
    }

    /// Stores what a pass saw. A failed check is repeated soon; one that had to wait stays due.
    pub(super) fn remember(&self, uid: &str, view: &View, rest: &Rest, interval: Duration) {
        let mut looks = self.claims.lock();
        if let Some(look) = looks.get_mut(uid) {
            let Remembered { missing_at, let_go, revoked_through, revoked, .. } = view.remembered();
            look.missing_at = missing_at;
            if view.claim().deleting {
                look.let_go = let_go;
                look.revoked_through = revoked_through;
                look.revoked = if plan::tells_of_revocation(rest) { 0 } else { revoked };
            }
            let due = look.due <= Instant::now();
            match view.checked() {
                Checked::No => {}
                Checked::Failed => {
                    let wait = LOOK_AGAIN.saturating_mul(1 << look.failures.min(16)).min(interval);
                    look.due = Instant::now() + jittered(wait);
                    look.failures += 1;
                }
                Checked::Seen => {
                    // Claims bound in one burst must not be checked in one burst for ever.
                    let wait = if due { jittered(interval) } else { interval.mul_f64(fastrand::f64()) };
                    look.due = Instant::now() + wait;
                    look.failures = 0;
                }
            }
        }
    }

    /// Records that a call that changes a bucket got no answer. It may still take effect until its
    /// deadline has passed once more.
    pub(super) fn unanswered(&self, uid: &str, deadline: Duration) {
        if let Some(look) = self.claims.lock().get_mut(uid) {
            look.unanswered = Some(Instant::now() + deadline);
        }
    }

    /// Returns the time until the next check of the claim's bucket; `None` if it is overdue and
    /// waits for something else.
    pub(super) fn until_due(&self, uid: &str) -> Option<Duration> {
        let due = self.claims.lock().get(uid)?.due;
        due.checked_duration_since(Instant::now()).filter(|wait| !wait.is_zero())
    }

    /// Forgets a claim that is deleted.
    pub(super) fn forget(&self, uid: &str) {
        self.claims.lock().remove(uid);
    }
}

/// Returns the memory for a single look at a claim by a process without earlier passes.
///
/// It is read from the status, as the operator that wrote it remembers the same. `look` requests a
/// check of the bucket, which is due anyway if the status reports trouble.
pub(crate) fn first_sight(view: &View, look: bool) -> Remembered {
    let missing_at = if tells_of_a_missing_bucket(view) { view.bucket_of_record() } else { None };
    Remembered { missing_at, look_due: look || is_troubled(view), ..Remembered::default() }
}

fn is_troubled(view: &View) -> bool {
    view.claim().status.conditions.iter().any(|c| c.type_ == "BucketCreated" && c.status == "False")
}

fn tells_of_a_missing_bucket(view: &View) -> bool {
    let missing = Reason::BucketMissing.to_string();
    view.claim().status.conditions.iter().any(|c| c.type_ == "BucketCreated" && c.reason == missing)
}

/// Returns true if an earlier process may have died during a call that creates or deletes the
/// bucket.
///
/// It had begun with the claim, as the finalizer shows, and the claim was never bound, was moving,
/// or was being deleted. The deletion policy doesn't matter: it may have been edited since.
fn may_be_under_way(view: &View) -> bool {
    let never_bound = view.claim().status.bound_secret_name.is_none();
    let moving = view.records().count() > 1;
    view.claim().has_finalizer() && (never_bound || moving || view.claim().deleting)
}
