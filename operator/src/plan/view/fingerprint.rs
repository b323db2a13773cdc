//! Fingerprint of a view: two passes with the same fingerprint continue alike. A model checker uses
//! it to recognize views.

use std::fmt::Write;

use super::super::answer::BackendSeen;
use super::super::asking::Asking;
use super::super::secret::Stored;
use super::bucket::{BucketFacts, Drift};
use super::{Deeds, KnownClaim, View};

impl View {
    /// Returns a compact summary of what this pass knows. Objects are represented by their
    /// resourceVersion. The status before the pass and the settings are left out.
    pub fn fingerprint(&self) -> String {
        // Destructures the view, so that a new field can't be forgotten.
        let Self {
            setting: _,
            claim: KnownClaim { claim, freshness, newborn, status_before: _ },
            backends: _, // Told by themselves.
            internal,
            consumers,
            holder,
            others,
            public_rival,
            others_credentials: _, // The same.
            bucket: BucketFacts { at, seen, owner, empty, created, tagged, versioning, purge, removed },
            drift: Drift { due, checked, missing_at },
            unanswered,
            setbacks,
            complete_after,
            held_off: _, // The same.
            recheck,
            held,
            asking,
            consent,
            deeds:
                Deeds {
                    aimed_by_this_pass,
                    record_remade,
                    consumer_written,
                    purged,
                    let_go,
                    revoked,
                    absent_through,
                    finalizer_removed,
                    consent_settled,
                    revocation_started: _, // The same.
                },
            trouble,
            step: _, // What is known tells by itself whether it still counts.
        } = self;
        let mut text = String::with_capacity(512);
        // Writing to a String can't fail.
        let _ = write!(text, "{} {freshness:?} {newborn} {} | ", claim.id.resource_version, internal.fingerprint());
        let _ = write!(
            text,
            "{} | {holder:?} {others:?} {at:?} {seen:?} {owner:?} {empty:?} {created:?} {tagged} ",
            consumers.fingerprint()
        );
        let _ = write!(
            text,
            "{versioning:?} {purge:?} {removed:?} {due} {checked:?} {missing_at:?} {unanswered:?} {setbacks} "
        );
        let _ = write!(
            text,
            "{recheck:?} {held:?} {aimed_by_this_pass:?} {record_remade} {consumer_written} {purged} {let_go:?} {revoked} "
        );
        let _ = write!(text, "{absent_through} {finalizer_removed} {trouble:?} {public_rival:?} {complete_after:?}");
        if asking.as_ref().is_some_and(|asking| *asking != Asking::default()) || *consent_settled {
            let _ = write!(text, " {asking:?} {consent:?} {consent_settled}");
        }
        self.tell_pace(&mut text);
        self.tell_backends(&mut text);
        self.tell_credentials_of_others(&mut text);
        text
    }

    fn tell_pace(&self, text: &mut String) {
        if let Some(time) = self.held_off {
            let _ = write!(text, " {time:?} {}", self.deeds.revocation_started);
        }
    }

    fn tell_credentials_of_others(&self, text: &mut String) {
        if let Some((at, secrets)) = &self.others_credentials {
            let versions: Vec<String> = secrets.iter().map(version).collect();
            let _ = write!(text, " {at:?} {versions:?}");
        }
    }

    fn tell_backends(&self, text: &mut String) {
        for (name, seen) in &self.backends {
            let _ = write!(text, " {name} {}", backend_fingerprint(seen));
        }
        let is_spelled = |seen: &BackendSeen| match seen {
            BackendSeen::Present { spellings, .. } => !spellings.is_empty(),
            BackendSeen::Missing | BackendSeen::Invalid(_) => false,
        };
        if self.backends.values().any(is_spelled) {
            // These names matter only for backends with several spellings.
            let _ = write!(text, " {:?}", self.internal.absent_since_held());
        }
    }
}

fn version(secret: &Stored) -> String {
    secret.reference().id.resource_version
}

fn backend_fingerprint(seen: &BackendSeen) -> String {
    match seen {
        BackendSeen::Present { backend, allowed, spellings, shared } => {
            format!("{} {allowed} {spellings:?} {shared:?}", backend.id.resource_version)
        }
        BackendSeen::Missing => "missing".to_owned(),
        BackendSeen::Invalid(why) => why.clone(),
    }
}
