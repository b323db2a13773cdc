//! What this process remembers of the buckets of claims: when each is looked at next, what was
//! seen, and which a claim that goes has let go of.

use std::collections::BTreeMap;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::api::Reason;
use crate::plan::{self, Checked, LetGo, Remembered, Rest, Target, View};

use super::config::Config;
use super::jitter::jittered;

/// Of a claim that goes, so many generations are asked for by name again in its next pass: an
/// answer may be of the past.
const ASKED_AGAIN: u64 = 1000;

/// When a drift check that failed is repeated for the first time; then at growing distances, up to
/// the interval.
const LOOK_AGAIN: Duration = Duration::from_secs(30);

/// When the bucket of each claim is next looked at, and where it was missing last time.
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
    /// Looks that failed in a row.
    failures: u32,
    missing_at: Option<Target>,
    /// Until when a call that changes a bucket, and got no answer, may still happen.
    unanswered: Option<Instant>,
    /// What a claim that goes has let go of, for the pass that tells of it: the one that takes the
    /// finalizer off.
    let_go: Vec<LetGo>,
    /// Up to which generation a claim that goes is known to have no credential.
    revoked_through: u64,
    /// Credentials of a claim that goes that were deleted, and not told of.
    revoked: u32,
}

impl Looks {
    /// What earlier passes of this process saw, for a pass that is to begin. A claim that this
    /// process sees for the first time is looked at within one interval, at once if its status
    /// tells of trouble: a hint, never a memory.
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
            // Another operator saw something else: the store decides. Until it answers the status
            // stands, or the two would write it over each other's for ever.
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

    /// Takes in what a pass saw. A look that failed is repeated soon; one that had to wait stays
    /// due.
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
                    // Claims that were bound in one burst are not to be looked at in one for the
                    // rest of their lives.
                    let wait = if due { jittered(interval) } else { interval.mul_f64(fastrand::f64()) };
                    look.due = Instant::now() + wait;
                    look.failures = 0;
                }
            }
        }
    }

    /// Notes that a call that changes a bucket got no answer: it may happen until its deadline has
    /// passed once more.
    pub(super) fn unanswered(&self, uid: &str, deadline: Duration) {
        if let Some(look) = self.claims.lock().get_mut(uid) {
            look.unanswered = Some(Instant::now() + deadline);
        }
    }

    /// How long until the claim's bucket is to be looked at; `None` if that is overdue, and waits
    /// for something else.
    pub(super) fn until_due(&self, uid: &str) -> Option<Duration> {
        let due = self.claims.lock().get(uid)?.due;
        due.checked_duration_since(Instant::now()).filter(|wait| !wait.is_zero())
    }

    /// Forgets a claim that is gone.
    pub(super) fn forget(&self, uid: &str) {
        self.claims.lock().remove(uid);
    }
}

/// What is to be known of a claim that is looked at once, and by nobody who was there before: what
/// its status tells, which is what the operator that wrote it remembers. `look` asks for a look at
/// its bucket, which is due anyway where the status tells of trouble.
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

/// Whether a process before this one may have died with a call under way that creates or deletes
/// the bucket: it had begun with the claim, as the finalizer tells, which was never bound, was
/// about to move, or was on its way out. Whatever its policy is now, it may have been another one
/// then.
fn may_be_under_way(view: &View) -> bool {
    let never_bound = view.claim().status.bound_secret_name.is_none();
    let moving = view.records().count() > 1;
    view.claim().has_finalizer() && (never_bound || moving || view.claim().deleting)
}
