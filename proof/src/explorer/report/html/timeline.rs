//! A timeline as a table.

use maud::{Markup, html};

use crate::explorer::timeline::clock;
use crate::explorer::timeline::text::{Shown, fold};
use crate::explorer::timeline::{Row, Timeline, Weight};

/// Renders the timeline, with routine events folded.
pub(super) fn table(timeline: &Timeline) -> Markup {
    html! {
        div.wide { table.timeline {
            thead { tr { th { "time" } th { "call" } @for column in Row::COLUMNS { th { (column) } } } }
            tbody { @for shown in fold(&timeline.events, false) {
                (row(&shown))
                @for broken in shown.places.clone().flat_map(|place| timeline.broken_at(place)) {
                    tr.broken { td colspan="8" {
                        (broken.promise) " is broken (" (broken.words) "): " (broken.message)
                    } }
                }
            } }
        } }
        @for broken in timeline.violations.iter().filter(|broken| broken.event.is_none()) {
            p.bad { (broken.promise) " is broken (" (broken.words) "): " (broken.message) }
        }
    }
}

fn row(shown: &Shown<'_>) -> Markup {
    let class = match shown.row.weight {
        _ if shown.row.fault.is_some() => "fault",
        Weight::Routine => "faint",
        Weight::Part => "part",
        Weight::Use | Weight::Told => "",
    };
    html! {
        @if shown.row.weight == Weight::Part {
            tr.part { td { (clock(shown.row.at_ms)) } td colspan="7" { (shown.row.operator) } }
        } @else {
            tr class=(class) { @for cell in shown.cells() { td { (cell) } } }
        }
    }
}
