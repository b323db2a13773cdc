//! Sets `STOWAGE_SOURCES` to a hash of all sources on which the outcome of a schedule depends.
//!
//! `stowage-proof merge` refuses shards with different hashes. The hash is one of sources and not
//! of the binary, because shards may be built on different machines.

use std::path::{Path, PathBuf};
use std::{fs, io};

/// Files and directories of these sources.
const SOURCES: [&str; 6] = ["src", "../world/src", "../operator/src", "../gateway/src", "../crates", "../Cargo.lock"];

fn main() -> io::Result<()> {
    let mut files = Vec::new();
    for place in SOURCES {
        println!("cargo::rerun-if-changed={place}");
        collect(Path::new(place), &mut files)?;
    }
    files.sort();
    // FNV-1a: https://datatracker.ietf.org/doc/html/draft-eastlake-fnv
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for file in files {
        for byte in file.display().to_string().bytes().chain(fs::read(&file)?) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    println!("cargo::rustc-env=STOWAGE_SOURCES={hash:016x}");
    Ok(())
}

fn collect(place: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    if place.is_file() {
        files.push(place.to_owned());
        return Ok(());
    }
    for entry in fs::read_dir(place)? {
        collect(&entry?.path(), files)?;
    }
    Ok(())
}
