//! Lists: single pages, and all pages with the marker of the page before.

use fastrand::Rng;

use super::bodies::{chance, maybe, one};
use super::call::{Call, Listing, Operation};

const PREFIXES: [&str; 6] = ["", "dir/", "dir/s", "k", "e f+", "nothing"];

/// Returns a list of a bucket's objects, versions or unfinished uploads.
pub(super) fn operation(rng: &mut Rng, bucket: &str) -> Operation {
    let listing =
        one(rng, &[Listing::Objects, Listing::ObjectsV2, Listing::ObjectsV2, Listing::Versions, Listing::Uploads]);
    let mut first = Call::to_bucket("GET", bucket);
    let limit = match listing {
        Listing::Objects => "max-keys",
        Listing::ObjectsV2 => {
            first = first.query("list-type", "2");
            "max-keys"
        }
        Listing::Versions => {
            first = first.of("versions");
            "max-keys"
        }
        Listing::Uploads | Listing::Parts => {
            first = first.of("uploads");
            "max-uploads"
        }
    };
    let first = first
        .maybe("prefix", maybe(rng, 50, |rng| one(rng, &PREFIXES)))
        .maybe("delimiter", maybe(rng, 40, |rng| one(rng, &["/", "/", "-", ""])));
    if chance(rng, 45) {
        // Small page sizes, because there are few objects; a size of 1 shows every marker.
        return Operation::Pages(listing, first.query(limit, one(rng, &["1", "2", "3"])));
    }
    let first = first.maybe(limit, maybe(rng, 30, |rng| one(rng, &["1", "2", "1000", "5000"])));
    let first = first.maybe("encoding-type", maybe(rng, 20, |_| "url"));
    marked(rng, listing, first).into()
}

/// Starts a list at a marker that no answer returned.
fn marked(rng: &mut Rng, listing: Listing, call: Call) -> Call {
    if !chance(rng, 25) {
        return call;
    }
    let key = one(rng, &["dir/", "dir/x", "e", "z"]);
    match listing {
        Listing::Objects => call.query("marker", key),
        Listing::ObjectsV2 => call.query("start-after", key).maybe("fetch-owner", maybe(rng, 30, |_| "true")),
        Listing::Versions | Listing::Uploads | Listing::Parts => call.query("key-marker", key),
    }
}
