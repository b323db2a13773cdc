//! Interning of values by number: a state consists of a few small integers, and the planner is
//! called once per distinct input.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::OnceLock;

use parking_lot::RwLock;

const BOARD: usize = 4096;
const BOARDS: usize = 8192;

/// Append-only list of values. Reading does not take a lock.
struct Shelf<T>(Box<[OnceLock<Board<T>>]>);

/// A chunk of slots, allocated when the first of them is needed.
type Board<T> = Box<[OnceLock<T>]>;

impl<T> Shelf<T> {
    fn new() -> Self {
        Self((0..BOARDS).map(|_| OnceLock::new()).collect())
    }

    fn place(&self, number: u32) -> &OnceLock<T> {
        let number = number as usize;
        let board = self.0[number / BOARD].get_or_init(|| (0..BOARD).map(|_| OnceLock::new()).collect());
        &board[number % BOARD]
    }
}

/// Values interned by key: equal keys have the same number and the same value.
pub(super) struct Known<K, V> {
    numbers: RwLock<HashMap<K, u32>>,
    values: Shelf<V>,
}

impl<K: Eq + Hash, V> Known<K, V> {
    pub(super) fn new() -> Self {
        Self { numbers: RwLock::default(), values: Shelf::new() }
    }

    /// Returns the number of `key`. Calls `make` with that number if `key` is new.
    pub(super) fn number(&self, key: K, make: impl FnOnce(u32) -> V) -> u32 {
        if let Some(number) = self.numbers.read().get(&key) {
            return *number;
        }
        let mut numbers = self.numbers.write();
        let next = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
        *numbers.entry(key).or_insert_with(|| {
            // Set exactly once: the number is assigned under the lock.
            let _ = self.values.place(next).set(make(next));
            next
        })
    }

    /// Returns the value for a number that [`Known::number`] returned.
    pub(super) fn get(&self, number: u32) -> &V {
        self.values.place(number).get().unwrap_or_else(|| unreachable!("number {number} was given to nothing"))
    }

    /// Returns how many values there are.
    pub(super) fn len(&self) -> usize {
        self.numbers.read().len()
    }
}

/// Cache of a pure function's results by its arguments.
pub(super) struct Memo<K, V>(RwLock<HashMap<K, V>>);

impl<K: Eq + Hash, V: Copy> Memo<K, V> {
    pub(super) fn new() -> Self {
        Self(RwLock::default())
    }

    /// Returns the result for `key`, computed by `ask` if it is not cached.
    pub(super) fn get(&self, key: K, ask: impl FnOnce(&K) -> V) -> V {
        if let Some(answer) = self.0.read().get(&key) {
            return *answer;
        }
        let answer = ask(&key);
        self.0.write().insert(key, answer);
        answer
    }
}
