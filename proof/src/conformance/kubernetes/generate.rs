//! Generation of a sequence from a seed and a number. It is pure and gives the same result on every
//! machine.

use fastrand::Rng;

use super::call::Operation;
use super::{table, themes};

/// Returns the sequence with this number. The first sequences are the cases of the table of
/// objects, with any seed.
pub fn sequence(seed: u64, number: u64) -> Vec<Operation> {
    if let Some(index) = usize::try_from(number).ok().filter(|index| *index < table::len()) {
        return table::sequence(index);
    }
    // Neighbouring seeds and numbers must give unrelated sequences.
    let mut rng = Rng::with_seed(seed ^ number.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    match rng.u8(..100) {
        ..88 => themes::objects(&mut rng),
        88..95 => themes::owners(&mut rng),
        _ => themes::namespaces(&mut rng),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn equal_seeds_give_equal_sequences() {
        for number in 0..400 {
            assert_eq!(sequence(7, number), sequence(7, number));
        }
    }

    #[test]
    fn other_seeds_and_numbers_give_others() {
        let start = table::len() as u64;
        let all: Vec<String> = (0..4)
            .flat_map(|seed| (start..start + 50).map(move |number| format!("{:?}", sequence(seed, number))))
            .collect();
        // Sequences about namespaces have few choices and repeat.
        assert!(all.iter().collect::<BTreeSet<_>>().len() > all.len() * 9 / 10);
    }
}
