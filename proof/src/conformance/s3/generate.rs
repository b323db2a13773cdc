//! Generation of a sequence from a seed and a number. It is pure and gives the same result on every
//! machine.

use fastrand::Rng;

use super::bodies::{KEYS, chance, one};
use super::call::{Call, Operation};
use super::{bodies, buckets, lists, locks, objects, strange, uploads};

/// Approximate number of operations in a sequence.
const LENGTH: usize = 30;

/// Theme of a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Theme {
    Buckets,
    Objects,
    Versions,
    Uploads,
    Locks,
}

/// Returns the sequence with this number.
pub fn sequence(seed: u64, number: u64) -> Vec<Operation> {
    // Neighbouring seeds and numbers must give unrelated sequences.
    let mut rng = Rng::with_seed(seed ^ number.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    let theme = match rng.u8(..100) {
        ..22 => Theme::Buckets,
        22..52 => Theme::Objects,
        52..76 => Theme::Versions,
        76..90 => Theme::Uploads,
        _ => Theme::Locks,
    };
    let mut all = prepared(&mut rng, theme);
    while all.len() < LENGTH {
        all.push(operation(&mut rng, theme));
    }
    if theme == Theme::Uploads && chance(&mut rng, 15) {
        all.extend(uploads::whole(&mut rng, "b", "film"));
    }
    all
}

/// Creates the bucket that a theme needs. All themes but one begin with a bucket.
fn prepared(rng: &mut Rng, theme: Theme) -> Vec<Operation> {
    let create = || Operation::from(Call::to_bucket("PUT", "a"));
    match theme {
        Theme::Buckets => vec![],
        Theme::Objects | Theme::Uploads => vec![create(), objects::put(rng, "a", "k").into()],
        Theme::Versions => {
            let before = chance(rng, 30).then(|| objects::put(rng, "a", "k").into());
            let enable = Call::to_bucket("PUT", "a").of("versioning").checked(bodies::versioning("Enabled"));
            let filled = FEW.map(|key| objects::put(rng, "a", key).into());
            [create()].into_iter().chain(before).chain([enable.into()]).chain(filled).collect()
        }
        Theme::Locks => {
            let create = Call::to_bucket("PUT", "a").header("x-amz-bucket-object-lock-enabled", "true");
            vec![create.into(), Call::to_key("PUT", "a", "k").checked("one").into()]
        }
    }
}

/// Keys of objects. They are few, so that operations hit the same objects.
const FEW: [&str; 3] = ["k", "dir/x", "l"];

fn operation(rng: &mut Rng, theme: Theme) -> Operation {
    if chance(rng, 4) {
        let key = one(rng, &FEW);
        return strange::call(rng, "a", key).into();
    }
    match theme {
        Theme::Buckets => about_buckets(rng),
        Theme::Objects if chance(rng, 75) => about_object(rng, "a", &KEYS, 0),
        Theme::Objects => lists::operation(rng, "a"),
        Theme::Versions => about_versions(rng),
        Theme::Uploads => about_uploads(rng),
        Theme::Locks => about_locks(rng),
    }
}

fn about_buckets(rng: &mut Rng) -> Operation {
    let bucket = one(rng, &["a", "a", "b", "c"]);
    match rng.u8(..100) {
        ..65 => buckets::call(rng, bucket).into(),
        65..85 => about_object(rng, bucket, &FEW, 0),
        _ => lists::operation(rng, bucket),
    }
}

fn about_versions(rng: &mut Rng) -> Operation {
    match rng.u8(..100) {
        ..6 => buckets::set_versioning(rng, "a").into(),
        6..8 => buckets::call(rng, "a").into(),
        8..10 => locks::settings(rng, "a", "k").into(),
        10..80 => about_object(rng, "a", &FEW, 45),
        _ => lists::operation(rng, "a"),
    }
}

fn about_uploads(rng: &mut Rng) -> Operation {
    let key = one(rng, &["film", "dir/film"]);
    match rng.u8(..100) {
        ..75 => uploads::operation(rng, "a", key, ("a", "k")),
        75..90 => about_object(rng, "a", &["k", "film"], 0),
        90..95 => lists::operation(rng, "a"),
        _ => buckets::call(rng, "a").into(),
    }
}

fn about_locks(rng: &mut Rng) -> Operation {
    let key = one(rng, &["k", "l"]);
    match rng.u8(..100) {
        ..70 => locks::call(rng, "a", key).into(),
        70..90 => about_object(rng, "a", &["k", "l"], 50),
        90..95 => buckets::set_versioning(rng, "a").into(),
        _ => lists::operation(rng, "a"),
    }
}

fn about_object(rng: &mut Rng, bucket: &str, keys: &[&str], versions: u8) -> Operation {
    let (key, from) = (one(rng, keys), one(rng, keys));
    objects::call(rng, bucket, key, (bucket, from), versions).into()
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
        let all = (0..4).flat_map(|seed| (0..50).map(move |number| format!("{:?}", sequence(seed, number))));
        assert_eq!(all.collect::<BTreeSet<_>>().len(), 200);
    }

    #[test]
    fn every_operation_is_made() {
        let all: Vec<String> = (0..200).flat_map(|number| sequence(1, number)).map(|made| made.to_string()).collect();
        let places = [
            "?tagging",
            "?location",
            "?versioning",
            "?versions",
            "?uploads",
            "?delete",
            "?retention",
            "?legal-hold",
            "?object-lock",
            "list-type=2",
            "x-amz-copy-source:",
            "uploadId=",
            "signed by",
        ];
        for place in places {
            assert!(all.iter().any(|made| made.contains(place)), "{place}");
        }
    }
}
