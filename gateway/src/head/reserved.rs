//! Names inside a bucket that stores reserve for themselves. An object below one is in no list, so
//! no quota counts it, and the store's own data there could be read and destroyed as objects.
//!
//! All of them are refused for every store, because an S3Backend doesn't say which product it is.

/// A pattern for a reserved segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Name {
    /// The segment has this name.
    Is(&'static str),
    /// The segment ends in this and is not the last one.
    FolderEnds(&'static str),
}

use Name::{FolderEnds, Is};

/// Products and their reserved names.
///
/// - versitygw 1.8.0, `backend/posix/posix.go`: `MetaTmpDir`, with open uploads below it.
///   `backend/walk.go` omits it from lists on every level.
/// - MinIO, `cmd/object-api-utils.go`: `minioMetaBucket`.
/// - SeaweedFS, `weed/s3api/s3_constants`: `MultipartUploadsFolder`, and `VersionsFolder`, the
///   suffix of the folder with an object's versions.
/// - Garage, `src/model/s3`: objects, versions and uploads are separate tables.
/// - Ceph, `src/rgw/rgw_obj_types.h`: parts are in a separate namespace, and keys that begin like
///   it are escaped.
const STORES: [(&str, &[Name]); 5] = [
    ("versitygw", &[Is(".sgwtmp")]),
    ("MinIO", &[Is(".minio.sys")]),
    ("SeaweedFS", &[Is(".uploads"), FolderEnds(".versions")]),
    ("Garage", &[]),
    ("Ceph", &[]),
];

/// Returns the reserved name among a key's segments. Case is ignored, because some file systems
/// ignore it.
pub(super) fn find(key: &str) -> Option<&'static str> {
    let names = || STORES.iter().flat_map(|(_, names)| *names);
    let mut segments = key.split('/').rev();
    let last = segments.next().into_iter().map(|segment| (segment, false));
    let mut all = last.chain(segments.map(|segment| (segment, true)));
    all.find_map(|(segment, is_folder)| names().find_map(|name| name.matches(segment, is_folder)))
}

/// Returns the reserved name among the folders of a prefix or a marker. The last segment is
/// skipped, as it may be the beginning of another name.
pub(super) fn find_folder(prefix: &[u8]) -> Option<&'static str> {
    let folders = memchr::memrchr(b'/', prefix).and_then(|slash| prefix.get(..=slash)).unwrap_or_default();
    find(&String::from_utf8_lossy(folders))
}

impl Name {
    fn matches(self, segment: &str, is_folder: bool) -> Option<&'static str> {
        match self {
            Is(name) => segment.eq_ignore_ascii_case(name).then_some(name),
            FolderEnds(end) => {
                let from = segment.len().checked_sub(end.len())?;
                let ends = segment.get(from..).is_some_and(|it| it.eq_ignore_ascii_case(end));
                (is_folder && ends).then_some(end)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    // covers: 6.reserved
    #[rstest]
    #[case(".sgwtmp", Some(".sgwtmp"))]
    #[case(".sgwtmp/multipart/ab/cd/1", Some(".sgwtmp"))]
    #[case("a/.sgwtmp/b", Some(".sgwtmp"))]
    #[case("a/.SGWtmp", Some(".sgwtmp"))]
    #[case(".minio.sys/buckets", Some(".minio.sys"))]
    #[case(".uploads/u/0001.part", Some(".uploads"))]
    #[case("a.versions/v_1", Some(".versions"))]
    #[case("a/b.Versions/v_1", Some(".versions"))]
    #[case(".versions/", Some(".versions"))]
    #[case("\u{e4}.versions/a", Some(".versions"))]
    #[case("a.versions", None)]
    #[case("uploads/a", None)]
    #[case(".uploads2/a", None)]
    #[case("a.sgwtmp/b", None)]
    #[case("\u{e4}versions/a", None)]
    fn a_name_is_found_in_every_segment(#[case] key: &str, #[case] expected: Option<&str>) {
        assert_eq!(find(key), expected);
    }

    #[rstest]
    #[case(".sgwtmp/", Some(".sgwtmp"))]
    #[case("a/.uploads/b", Some(".uploads"))]
    #[case(".uploads", None)]
    #[case("a/.up", None)]
    #[case("", None)]
    fn the_end_of_a_prefix_may_go_on(#[case] prefix: &str, #[case] expected: Option<&str>) {
        assert_eq!(find_folder(prefix.as_bytes()), expected);
    }
}
