//! Fair shares of a scarce resource: concurrent calls to one store, and memory for documents and
//! forms.
//!
//! A tenant gets more while it has less than is free (dynamic thresholds, as in the buffers of
//! switches: Choudhury and Hahne, 1998). So one tenant has at most half of everything, and `k`
//! tenants leave one of `k + 1` parts to others. The last free call is for a tenant that has none.
//! The alternative, a fixed share per tenant, would have to be configured and would leave most
//! unused.
//!
//! Many tenants together could still take all calls one by one and keep them. So the fewer calls
//! are free, the faster bodies have to move.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use crate::body::pace::Floor;
use crate::limits::Source;

/// Minimum speed of bodies in bytes per second, once fewer than half of all calls are free. It
/// rises from there.
const BASE: u64 = 1 << 10;
/// Upper limit of the minimum speed in bytes per second: 256 KiB/s, which a slow home connection
/// reaches.
const MOST: u64 = 256 << 10;

/// A user of the gateway's shared resources.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Tenant {
    /// The claims and accesses of a namespace.
    Namespace(String),
    /// Clients without a key, of the public buckets of a namespace.
    Public(String),
    /// A claim or access whose namespace is unknown, by its UID.
    Holder(String),
    /// Unauthenticated clients of one address.
    Source(Source),
    /// The gateway itself, for its scans of buckets.
    Gateway,
}

/// The calls of one store, or KiB of memory.
#[derive(Debug)]
pub struct Shares {
    most: usize,
    taken: AtomicUsize,
    of: Mutex<HashMap<Tenant, usize>>,
}

/// A part taken by a tenant, until it is dropped.
#[derive(Debug)]
pub struct Place {
    tenant: Tenant,
    weight: usize,
    shares: Arc<Shares>,
}

/// The reason why nothing could be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Full {
    /// Not enough is free.
    All,
    /// The tenant has used up its share.
    Share,
}

impl Shares {
    /// Creates a resource of size `most`.
    #[must_use]
    pub fn new(most: usize) -> Self {
        Self { most, taken: AtomicUsize::new(0), of: Mutex::default() }
    }

    /// Takes `weight` more for a tenant.
    ///
    /// # Errors
    /// Returns an error if not enough is free, or the tenant's share is used up.
    pub fn take(self: &Arc<Self>, tenant: Tenant, weight: usize) -> Result<Place, Full> {
        let mut of = self.of.lock();
        // Only written under the lock.
        let taken = self.taken.load(Ordering::Relaxed);
        let free = self.most.saturating_sub(taken);
        let own = of.get(&tenant).copied().unwrap_or(0);
        if weight > free {
            return Err(Full::All);
        }
        // Afterwards the tenant has no more than is free, except for the last call, given to one
        // that has none.
        if own > 0 && own + 2 * weight > free + 1 {
            return Err(Full::Share);
        }
        of.insert(tenant.clone(), own + weight);
        self.taken.store(taken + weight, Ordering::Relaxed);
        Ok(Place { tenant, weight, shares: self.clone() })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut of = self.shares.of.lock();
        if let Some(own) = of.get_mut(&self.tenant) {
            *own -= self.weight;
            if *own == 0 {
                of.remove(&self.tenant);
            }
        }
        self.shares.taken.fetch_sub(self.weight, Ordering::Relaxed);
    }
}

impl Floor for Shares {
    /// Returns zero while half of all calls are free, and then four times as much for each halving
    /// of the free calls.
    fn bytes_per_second(&self) -> u64 {
        let most = self.most as u64;
        let free = most.saturating_sub(self.taken.load(Ordering::Relaxed) as u64).max(1);
        if free * 2 >= most {
            return 0;
        }
        let scarcity = most.saturating_mul(most) / (4 * free * free);
        BASE.saturating_mul(scarcity).min(MOST)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn namespace(number: usize) -> Tenant {
        Tenant::Namespace(format!("team-{number}"))
    }

    /// Takes as many places as a tenant can get.
    fn all_of(shares: &Arc<Shares>, tenant: &Tenant) -> Vec<Place> {
        std::iter::from_fn(|| shares.take(tenant.clone(), 1).ok()).collect()
    }

    #[test]
    fn greedy_tenants_leave_a_part_to_others() {
        let shares = Arc::new(Shares::new(512));
        let first = all_of(&shares, &namespace(1));
        assert_eq!(first.len(), 256);
        assert_eq!(shares.take(namespace(1), 1).err(), Some(Full::Share));
        let second = all_of(&shares, &namespace(2));
        assert_eq!(second.len(), 128);
        drop(first);
        assert_eq!(all_of(&shares, &namespace(1)).len(), 192, "of 384 that are free");
    }

    #[test]
    fn the_last_call_is_for_a_tenant_that_has_none() {
        let shares = Arc::new(Shares::new(8));
        let held: Vec<Place> = (1..=8).map_while(|it| shares.take(namespace(it), 1).ok()).collect();
        assert_eq!(held.len(), 8);
        assert_eq!(shares.take(namespace(9), 1).err(), Some(Full::All));
        drop(held);
        let _seven: Vec<Place> = (0..7).flat_map(|it| shares.take(namespace(it / 2), 1)).collect();
        assert_eq!(shares.take(namespace(0), 1).err(), Some(Full::Share));
        assert!(shares.take(Tenant::Gateway, 1).is_ok());
        let one = Arc::new(Shares::new(1));
        assert!(one.take(namespace(1), 1).is_ok());
    }

    #[test]
    fn the_fewer_are_free_the_faster_bodies_have_to_move() {
        let shares = Arc::new(Shares::new(512));
        let mut held = Vec::new();
        let mut floors = Vec::new();
        for taken in [0, 256, 384, 448, 480, 496, 512] {
            held.extend((held.len()..taken).map(|it| shares.take(namespace(it), 1).expect("it has none")));
            floors.push(shares.bytes_per_second() >> 10);
        }
        assert_eq!(floors, [0, 0, 4, 16, 64, 256, 256]);
    }

    proptest! {
        #[test]
        fn what_is_taken_is_counted(most in 1_usize..64, steps in prop::collection::vec((0_usize..8, any::<bool>()), 0..200)) {
            let shares = Arc::new(Shares::new(most));
            let mut held: Vec<Place> = Vec::new();
            for (who, takes) in steps {
                let tenant = namespace(who);
                let own = held.iter().filter(|place| place.tenant == tenant).count();
                let free = most - held.len();
                if takes {
                    let place = shares.take(tenant, 1);
                    prop_assert_eq!(place.is_ok(), own < free);
                    held.extend(place);
                } else if let Some(at) = held.iter().position(|place| place.tenant == tenant) {
                    held.swap_remove(at);
                }
                prop_assert_eq!(shares.taken.load(Ordering::Relaxed), held.len());
                prop_assert_eq!(shares.of.lock().values().sum::<usize>(), held.len());
            }
            drop(held);
            prop_assert!(shares.of.lock().is_empty());
        }
    }
}
