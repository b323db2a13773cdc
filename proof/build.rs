//! Names a build by the sources of operator, simulator and the libraries of both, so that
//! `stowage-proof merge` can tell the shards of different ones apart, wherever they were built.

use std::path::{Path, PathBuf};
use std::{fs, io};

/// Sources on which the outcome of a schedule depends.
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
