//! A small handwritten timeline, for tests.

use super::{Broken, Row, Timeline, Weight};
use crate::oracles::Promise;

/// Returns a timeline of a call that is cut off, its effects, and a tenant whose request is
/// refused.
pub(in super::super) fn timeline() -> Timeline {
    let routine = |at_ms, effect| Row {
        at_ms,
        weight: Weight::Routine,
        effect: Some(effect),
        life: Some(1),
        operator: "list secrets".to_owned(),
        kubernetes: "200".to_owned(),
        ..Row::default()
    };
    let used = |at_ms, gateway: &str| Row {
        at_ms,
        weight: Weight::Use,
        tenant: "team-a uses key #1".to_owned(),
        gateway: gateway.to_owned(),
        ..Row::default()
    };
    let events = vec![
        Row { user: "a user applies BucketClaim team-a/photos".to_owned(), ..Row::default() },
        Row { weight: Weight::Part, operator: "life 1 of the operator begins".to_owned(), ..Row::default() },
        routine(0, 1),
        routine(3, 2),
        Row {
            at_ms: 1250,
            effect: Some(3),
            life: Some(1),
            fault: Some("lost-answer".to_owned()),
            operator: "CreateBucket team-a-photos; the connection breaks".to_owned(),
            store: "200; bucket made".to_owned(),
            ..Row::default()
        },
        used(5000, "allowed"),
        used(9000, "allowed"),
        used(65_000, "refused"),
        Row { at_ms: 90_000_000, weight: Weight::Part, operator: "all is at rest".to_owned(), ..Row::default() },
    ];
    let broken = |message: &str, event| Broken {
        promise: Promise::I6.name(),
        words: Promise::I6.words(),
        message: message.to_owned(),
        event,
    };
    Timeline {
        line: "create 1 #3 lost-answer".to_owned(),
        unmet: vec!["#99 hang".to_owned()],
        violations: vec![broken("key #1 was refused", Some(7)), broken("in the end, there is no key", None)],
        took: 90_000.0,
        trace_hash: "c0ffee".to_owned(),
        events,
    }
}
