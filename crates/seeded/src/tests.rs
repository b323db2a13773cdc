//! Tests of randomness, time and panics on seeded threads and on others.

#![allow(unsafe_code)]

use std::hash::BuildHasher;
use std::time::Duration;

use super::*;

fn os_bytes() -> [u8; 13] {
    let mut bytes = [0_u8; 13];
    // SAFETY: a buffer of its own length, exclusively ours.
    let written = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    assert_eq!(written, 13);
    bytes
}

fn draws() -> ([u8; 13], u64, u64) {
    let hash = std::collections::hash_map::RandomState::new().hash_one(1);
    (os_bytes(), hash, fastrand::u64(..))
}

#[test]
fn a_seed_decides_every_draw_of_its_thread() {
    let first = run_seeded(7, || async { draws() });
    let again = run_seeded(7, || async { draws() });
    let other = run_seeded(8, || async { draws() });
    assert_eq!(first, again);
    assert_ne!(first.0, other.0);
    assert_ne!(first.1, other.1);
    assert_ne!(first.2, other.2);
}

#[test]
fn a_stream_does_not_repeat_itself() {
    let (first, second) = run_seeded(7, || async { (os_bytes(), os_bytes()) });
    assert_ne!(first, second);
}

#[test]
fn a_thread_without_a_seed_has_the_kernels_randomness() {
    let fresh = || std::thread::spawn(draws).join().expect("draws don't panic");
    let (first, second) = (fresh(), fresh());
    assert_ne!(first.0, second.0);
    assert_ne!(first.1, second.1);
}

/// The getrandom crate (0.3 and 0.4) finds its function by this lookup, std by linking.
#[cfg(target_os = "linux")]
#[test]
fn the_dynamic_linker_finds_our_symbol() {
    // SAFETY: a C string and the default handle; the result is compared, not called.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"getrandom".as_ptr()) };
    let ours: unsafe extern "C" fn(*mut libc::c_void, usize, libc::c_uint) -> isize = crate::random::getrandom;
    assert_eq!(found as usize, ours as usize);
}

#[test]
fn probing_and_errors_are_the_kernels() {
    run_seeded(7, || async {
        // SAFETY: nothing is written through the pointer, as the length is 0.
        let probe = unsafe { libc::getrandom(std::ptr::dangling_mut(), 0, 0) };
        assert_eq!(probe, 0);
        // SAFETY: the kernel refuses a null buffer, it isn't written to.
        let refused = unsafe { libc::getrandom(std::ptr::null_mut(), 8, 0) };
        assert_eq!(refused, -1);
        assert_eq!(std::io::Error::last_os_error().raw_os_error(), Some(libc::EFAULT));
    });
}

#[test]
fn time_is_virtual_and_the_wall_clock_follows_it() {
    let real = std::time::Instant::now();
    let shown = run_seeded(7, || async {
        let clock = VirtualClock::new().clock();
        tokio::time::sleep(Duration::from_secs(3600)).await;
        clock().to_string()
    });
    assert_eq!(shown, "2030-01-01T01:00:00Z");
    assert!(real.elapsed() < Duration::from_secs(60));
}

#[test]
fn a_scenario_may_borrow_and_its_panic_comes_through() {
    let name = "bucket".to_owned();
    assert_eq!(run_seeded(7, || async { name.len() }), 6);
    let panic = std::panic::catch_unwind(|| run_seeded(7, || async { panic!("seen") }));
    let message = panic.expect_err("the scenario panics");
    assert_eq!(message.downcast_ref::<&str>(), Some(&"seen"));
}

#[test]
fn a_panic_of_a_task_that_nobody_joins_is_noted() {
    let seen = run_seeded(7, || async {
        tokio::spawn(async { panic!("unseen") });
        tokio::time::sleep(Duration::from_secs(1)).await;
        panics()
    });
    assert!(seen.len() == 1 && seen[0].ends_with("unseen"), "{seen:?}");
    assert!(run_seeded(7, || async { panics() }).is_empty(), "of another run");
}
