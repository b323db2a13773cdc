//! Object lock. No object gets COMPLIANCE mode, because nobody could remove it.

use fastrand::Rng;

use super::bodies::{chance, maybe, one};
use super::call::Call;

const LATER: &str = "2099-01-01T00:00:00Z";
const DATES: [&str; 4] = [LATER, LATER, "2098-01-01T00:00:00Z", "2001-01-01T00:00:00Z"];

/// Returns a random request about a locked object.
pub(super) fn call(rng: &mut Rng, bucket: &str, key: &str) -> Call {
    let on = |method| Call::to_key(method, bucket, key);
    match rng.u8(..100) {
        ..72 => settings(rng, bucket, key),
        72..90 => {
            let id = version(rng, bucket, key);
            bypassing(rng, on("DELETE").maybe("versionId", id))
        }
        _ => put(rng, on("PUT")),
    }
}

/// Returns a random request about lock settings.
pub(super) fn settings(rng: &mut Rng, bucket: &str, key: &str) -> Call {
    let on = |method| Call::to_key(method, bucket, key);
    let id = version(rng, bucket, key);
    match rng.u8(..72) {
        ..10 => Call::to_bucket("GET", bucket).of("object-lock"),
        10..20 => Call::to_bucket("PUT", bucket).of("object-lock").checked(configuration(rng)),
        20..32 => on("GET").of("retention").maybe("versionId", id),
        32..50 => {
            let put = on("PUT").of("retention").maybe("versionId", id).checked(retention(rng));
            bypassing(rng, put)
        }
        50..60 => on("GET").of("legal-hold").maybe("versionId", id),
        _ => {
            let status = one(rng, &["ON", "OFF", "OFF", "MAYBE"]);
            let hold = format!("<LegalHold><Status>{status}</Status></LegalHold>");
            on("PUT").of("legal-hold").maybe("versionId", id).checked(hold)
        }
    }
}

fn version(rng: &mut Rng, bucket: &str, key: &str) -> Option<String> {
    maybe(rng, 50, |rng| format!("$(version {bucket}/{key} {})", one(rng, &[0, 0, 1])))
}

fn bypassing(rng: &mut Rng, call: Call) -> Call {
    if chance(rng, 30) { call.header("x-amz-bypass-governance-retention", "true") } else { call }
}

fn configuration(rng: &mut Rng) -> String {
    let rule = match rng.u8(..6) {
        0 | 1 => "<Rule><DefaultRetention><Mode>GOVERNANCE</Mode><Days>1</Days></DefaultRetention></Rule>",
        2 => "<Rule><DefaultRetention><Mode>GOVERNANCE</Mode><Days>0</Days></DefaultRetention></Rule>",
        3 => "<Rule><DefaultRetention><Mode>GOVERNANCE</Mode><Days>1</Days><Years>1</Years></DefaultRetention></Rule>",
        _ => "",
    };
    format!("<ObjectLockConfiguration><ObjectLockEnabled>Enabled</ObjectLockEnabled>{rule}</ObjectLockConfiguration>")
}

fn retention(rng: &mut Rng) -> String {
    let date = one(rng, &DATES);
    match rng.u8(..10) {
        0 => "<Retention><Mode>GOVERNANCE</Mode></Retention>".to_owned(),
        _ => format!("<Retention><Mode>GOVERNANCE</Mode><RetainUntilDate>{date}</RetainUntilDate></Retention>"),
    }
}

/// Adds a lock that is valid, because some stores keep the object if they refuse the lock.
fn put(rng: &mut Rng, call: Call) -> Call {
    let put = call.checked("locked");
    match rng.u8(..3) {
        0 => put,
        1 => put.header("x-amz-object-lock-legal-hold", "ON"),
        _ => put.header("x-amz-object-lock-mode", "GOVERNANCE").header("x-amz-object-lock-retain-until-date", LATER),
    }
}
