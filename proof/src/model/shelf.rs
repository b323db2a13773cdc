//! What is made once and then known by a number: so that a state is a few small integers, and the
//! planner is asked once about what it was asked about before.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::OnceLock;

use parking_lot::RwLock;

const BOARD: usize = 4096;
const BOARDS: usize = 8192;

/// Values in the order in which they came to be known. What stands there is read without a lock.
struct Shelf<T>(Box<[OnceLock<Board<T>>]>);

/// So many places, made when the first of them is needed.
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

/// Values by what they are made from: equal keys have one number, and one value.
pub(super) struct Known<K, V> {
    numbers: RwLock<HashMap<K, u32>>,
    values: Shelf<V>,
}

impl<K: Eq + Hash, V> Known<K, V> {
    pub(super) fn new() -> Self {
        Self { numbers: RwLock::default(), values: Shelf::new() }
    }

    /// The number of `key`; its value is made if it has none. `make` is told the number.
    pub(super) fn number(&self, key: K, make: impl FnOnce(u32) -> V) -> u32 {
        if let Some(number) = self.numbers.read().get(&key) {
            return *number;
        }
        let mut numbers = self.numbers.write();
        let next = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
        *numbers.entry(key).or_insert_with(|| {
            // Filled once: the number is given under the lock.
            let _ = self.values.place(next).set(make(next));
            next
        })
    }

    /// The value of a number that [`Known::number`] gave.
    pub(super) fn get(&self, number: u32) -> &V {
        self.values.place(number).get().unwrap_or_else(|| unreachable!("number {number} was given to nothing"))
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.numbers.read().len()
    }
}

/// Answers of a pure function, by its arguments.
pub(super) struct Memo<K, V>(RwLock<HashMap<K, V>>);

impl<K: Eq + Hash, V: Copy> Memo<K, V> {
    pub(super) fn new() -> Self {
        Self(RwLock::default())
    }

    /// The answer to `key`, worked out by `ask` where it is not known yet.
    pub(super) fn get(&self, key: K, ask: impl FnOnce(&K) -> V) -> V {
        if let Some(answer) = self.0.read().get(&key) {
            return *answer;
        }
        let answer = ask(&key);
        self.0.write().insert(key, answer);
        answer
    }
}
