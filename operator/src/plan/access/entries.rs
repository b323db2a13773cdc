//! Entries of an access: the scopes of its keys, and the status of each entry.

use crate::api::{AccessEntryStatus, AccessMode, AccessReason, AccessScope, ClaimUid, Consent, Entry, EntryOf, Prefix};

use super::step::AccessLook;
use super::view::{AccessView, Halt};
use super::words::{BucketWord, ClaimWord, EntrySeen, Place};

/// Result of resolving an entry.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Resolved {
    /// Scope of the entry, if it leads to a known bucket.
    pub(super) scope: Option<AccessScope>,
    /// Mode that the gateway grants at most, or the reason that it grants nothing.
    pub(super) open: Result<AccessMode, AccessReason>,
}

impl Resolved {
    fn closed(why: AccessReason) -> Self {
        Self { scope: None, open: Err(why) }
    }
}

/// Resolves each entry, from live reads where they exist.
pub(super) fn resolved(view: &AccessView) -> Vec<Resolved> {
    let entries = view.access.entries.iter().zip(&view.entries);
    let mut all: Vec<Resolved> = entries.map(|(entry, seen)| resolve(view, entry, seen)).collect();
    let names: Vec<_> = all.iter().map(|it| it.scope.as_ref().map(|scope| scope.bucket.clone())).collect();
    for (at, name) in names.iter().enumerate().filter(|(_, name)| name.is_some()) {
        if names.iter().enumerate().any(|(other, it)| other != at && it == name) {
            all[at] = Resolved::closed(AccessReason::SameBucket);
        }
    }
    all
}

fn resolve(view: &AccessView, entry: &Entry, seen: &EntrySeen) -> Resolved {
    let Ok((mode, prefix)) = &entry.wants else { return Resolved::closed(AccessReason::SpecInvalid) };
    let wants = (*mode, prefix.as_ref());
    match (&entry.of, seen) {
        (Ok(EntryOf::Claim(claim)), EntrySeen::Claim(cached)) => {
            let word = view.words.get(claim).unwrap_or(cached);
            let is_own = claim.namespace == view.access.at.namespace;
            of_claim(word, wants, is_own)
        }
        (Ok(EntryOf::Bucket(..)), EntrySeen::Bucket(BucketWord::Shared { place, consent })) => {
            open(place, None, wants, Some(consent))
        }
        (Ok(EntryOf::Bucket(..)), EntrySeen::Bucket(BucketWord::Held)) => Resolved::closed(AccessReason::HeldByClaim),
        (Ok(EntryOf::Bucket(..)), EntrySeen::Bucket(BucketWord::NotShared)) => {
            Resolved::closed(AccessReason::NotShared)
        }
        // The caches were queried for another version of the spec.
        (Ok(_), _) => Resolved::closed(AccessReason::ConsentPending),
        (Err(_), _) => Resolved::closed(AccessReason::SpecInvalid),
    }
}

/// Resolves an entry that names a claim. An access without permission to know about a claim gets
/// the same result whether the claim exists or not.
fn of_claim(word: &ClaimWord, wants: (AccessMode, Option<&Prefix>), is_own: bool) -> Resolved {
    match word {
        ClaimWord { shared: false, unwatched: true, .. } => Resolved::closed(AccessReason::NotWatched),
        ClaimWord { shared: false, .. } if !is_own => Resolved::closed(AccessReason::NotShared),
        ClaimWord { uid: Some(uid), place: Some(place), opened, .. } => open(place, Some(uid), wants, opened.as_ref()),
        ClaimWord { .. } => Resolved::closed(AccessReason::ClaimNotBound),
    }
}

fn open(
    place: &Place,
    claim: Option<&ClaimUid>,
    (mode, prefix): (AccessMode, Option<&Prefix>),
    consent: Option<&Consent>,
) -> Resolved {
    let scope = AccessScope {
        bucket: place.bucket.clone(),
        backend: place.backend.clone(),
        endpoint: place.endpoint.clone(),
        claim: claim.cloned(),
        mode,
        prefix: prefix.cloned(),
    };
    let open = match consent {
        _ if !place.is_there => Err(AccessReason::BackendNotReady),
        None => Err(AccessReason::ConsentPending),
        Some(consent) => {
            let both = mode.and(consent.max_mode).filter(|_| consent.admits(prefix));
            both.ok_or(AccessReason::BeyondConsent)
        }
    };
    Resolved { scope: Some(scope), open }
}

/// Returns the scopes of the next key, in the order of the entries: the scopes that are open now,
/// and those that the current key has and that still have consent.
///
/// Each claim among them is read live. No other claim is read, so that an entry without consent
/// costs nothing.
pub(super) fn scopes_of_next(view: &AccessView, current: &[AccessScope]) -> Result<Vec<AccessScope>, Halt> {
    for (entry, resolved) in view.access.entries.iter().zip(resolved(view)) {
        if let Some(claim) = entry.claim()
            && scope_of_next(resolved, current).is_some()
            && !view.words.contains_key(claim)
        {
            return Err(AccessLook::Claim(claim.clone()).into());
        }
    }
    Ok(wanted(view, current))
}

/// Like [`scopes_of_next`], from what is known without a query.
pub(super) fn wanted(view: &AccessView, current: &[AccessScope]) -> Vec<AccessScope> {
    resolved(view).into_iter().filter_map(|resolved| scope_of_next(resolved, current)).collect()
}

fn scope_of_next(resolved: Resolved, current: &[AccessScope]) -> Option<AccessScope> {
    let is_held = |scope: &AccessScope| current.iter().any(|it| it.is_same_place(scope));
    resolved.scope.filter(|scope| resolved.open.is_ok() || is_held(scope))
}

/// Returns the updated scopes of an existing key. Mode and prefix follow the scope's entry, and the
/// scope is removed with its entry. The bucket of a scope never changes.
pub(super) fn kept(view: &AccessView, current: &[AccessScope]) -> Result<Vec<AccessScope>, Halt> {
    let mut kept = Vec::new();
    for scope in current {
        kept.extend(follow(view, scope)?);
    }
    Ok(kept)
}

/// Like [`kept`], but leaves a scope unchanged if the update would open more.
pub(super) fn narrowed(view: &AccessView, current: &[AccessScope]) -> Result<Vec<AccessScope>, Halt> {
    let mut narrowed = Vec::new();
    for scope in current {
        let followed = follow(view, scope)?;
        narrowed.extend(followed.map(|it| if it.is_within(scope) { it } else { scope.clone() }));
    }
    Ok(narrowed)
}

fn follow(view: &AccessView, scope: &AccessScope) -> Result<Option<AccessScope>, Halt> {
    let refused: Vec<bool> = resolved(view).into_iter().map(|it| it.open == Err(AccessReason::SameBucket)).collect();
    let entries = view.access.entries.iter().zip(&view.entries).zip(refused).filter(|(_, refused)| !refused);
    for ((entry, seen), _) in entries {
        let (Ok(of), Ok((mode, prefix))) = (&entry.of, &entry.wants) else { continue };
        let followed = AccessScope { mode: *mode, prefix: prefix.clone(), ..scope.clone() };
        if let (EntryOf::Bucket(backend, bucket), EntrySeen::Bucket(word), None) = (of, seen, &scope.claim) {
            let is_it = *backend == scope.backend && *bucket == scope.bucket;
            if is_it && *word != BucketWord::NotShared {
                return Ok(Some(followed));
            }
        }
        if let (EntryOf::Claim(claim), EntrySeen::Claim(cached), Some(uid)) = (of, seen, &scope.claim) {
            let is_its = |word: &ClaimWord| {
                if word.unwatched {
                    // The owner of an unwatched namespace can't be queried, so nothing proves that
                    // the consent is over.
                    return word.uid.as_ref().is_none_or(|known| known == uid);
                }
                let is_own = claim.namespace == view.access.at.namespace;
                word.uid.as_ref() == Some(uid) && (is_own || word.shared)
            };
            if view.words.get(claim).map_or_else(|| is_its(cached), is_its) {
                return Ok(Some(followed));
            }
            // An outdated cache takes nothing away.
            if !view.words.contains_key(claim) {
                return Err(AccessLook::Claim(claim.clone()).into());
            }
        }
    }
    Ok(None)
}

/// Returns the status of each entry. `current` are the scopes of the key that tenants have, if they
/// have one.
pub(super) fn told(
    view: &AccessView,
    current: Option<&[AccessScope]>,
) -> Vec<(AccessEntryStatus, Option<AccessReason>)> {
    let entry = |it: Resolved| {
        let has = |scope: &AccessScope| current.is_some_and(|all| all.iter().any(|it| it.is_same_place(scope)));
        let open = match (&it.scope, it.open) {
            (Some(scope), Ok(mode)) if has(scope) => Ok(mode),
            (_, Ok(_)) => Err(AccessReason::KeyPending),
            (_, Err(why)) => Err(why),
        };
        let status = AccessEntryStatus {
            bucket: it.scope.as_ref().map(|scope| scope.bucket.to_string()),
            backend: it.scope.map(|scope| scope.backend),
            mode: open.ok().map(|mode| mode.as_str().to_owned()),
            state: if open.is_ok() { "Open" } else { "Closed" }.to_owned(),
            reason: open.err().map(|why| why.to_string()),
        };
        (status, open.err())
    };
    resolved(view).into_iter().map(entry).collect()
}
