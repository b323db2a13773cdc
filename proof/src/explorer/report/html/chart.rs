//! The drawing of keys and tenants over time.

use maud::{Markup, html};

use crate::explorer::report::keychart::{Key, KeyChart, Published, Tenant};
use crate::explorer::timeline::clock;

/// Size of the drawing, in its own units.
const WIDTH: f64 = 1000.0;
/// Start of the time axis; names are to its left.
const LEFT: f64 = 210.0;
const RIGHT: f64 = 20.0;
/// Height of a lane and of the bar in it.
const LANE: f64 = 34.0;
const BAR: f64 = 16.0;
/// Number of colours of keys, used in turn.
const COLOURS: usize = 6;
/// Number of a tenant's uses that are drawn; if there are more, only every n-th is.
const MOST_USES: usize = 600;
/// Number of sections of the time axis.
const TICKS: i64 = 8;

/// Draws a chart.
pub(super) fn draw(chart: &KeyChart) -> Markup {
    let scale = Scale { from: chart.window.0, to: chart.window.1 };
    let keys: Vec<(usize, &Key)> = chart.keys.iter().enumerate().filter(|(_, key)| scale.shows(key)).collect();
    let lanes = keys.len() + chart.published.len() + chart.tenants.len();
    let height = LANE * lanes as f64 + 30.0;
    let top = |lane: usize| LANE * lane as f64 + 4.0;
    let (published, tenants) = (keys.len(), keys.len() + chart.published.len());
    html! {
        svg viewBox=(format!("0 0 {WIDTH} {height}")) role="img" aria-label="keys and tenants over time" {
            (axis(&scale, height))
            @for (lane, (index, key)) in keys.iter().enumerate() { (self::key(&scale, top(lane), *index, key)) }
            @for (lane, secret) in chart.published.iter().enumerate() {
                (held(&scale, top(published + lane), secret))
            }
            @for (lane, tenant) in chart.tenants.iter().enumerate() { (uses(&scale, top(tenants + lane), tenant)) }
        }
        @if keys.len() < chart.keys.len() {
            p.tick { (keys.len()) " of " (chart.keys.len()) " keys are shown: those of the first rotation." }
        }
    }
}

/// Conversion of times to horizontal positions.
struct Scale {
    from: i64,
    to: i64,
}

impl Scale {
    fn x(&self, at: i64) -> f64 {
        let part = (at.clamp(self.from, self.to) - self.from) as f64 / (self.to - self.from).max(1) as f64;
        LEFT + part * (WIDTH - LEFT - RIGHT)
    }

    fn has(&self, at: i64) -> bool {
        (self.from..=self.to).contains(&at)
    }

    fn shows(&self, key: &Key) -> bool {
        key.minted <= self.to && key.removed.is_none_or(|removed| removed >= self.from)
    }
}

fn number(at: f64) -> String {
    format!("{at:.1}")
}

fn axis(scale: &Scale, height: f64) -> Markup {
    let ticks: Vec<i64> = (0..=TICKS).map(|tick| scale.from + (scale.to - scale.from) * tick / TICKS).collect();
    html! {
        @for at in ticks {
            @let x = number(scale.x(at));
            line.axis x1=(x) x2=(x) y1="0" y2=(number(height - 20.0)) {}
            text.tick x=(x) y=(number(height - 6.0)) text-anchor="middle" {
                (clock(at).split('.').next().unwrap_or_default())
            }
        }
    }
}

fn name(top: f64, text: &str) -> Markup {
    html! { text x="0" y=(number(top + BAR - 3.0)) { (text) } }
}

fn colour(key: Option<usize>) -> String {
    key.map_or_else(|| "none".to_owned(), |key| format!("k{}", key % COLOURS))
}

/// Draws a section of a bar, from one time to another.
fn bar(scale: &Scale, top: f64, span: (i64, i64), class: &str, title: &str) -> Markup {
    let (from, to) = (scale.x(span.0), scale.x(span.1));
    html! {
        @if to > from {
            rect class=(class) x=(number(from)) y=(number(top)) width=(number(to - from)) height=(number(BAR)) {
                title { (title) }
            }
        }
    }
}

fn key(scale: &Scale, top: f64, index: usize, key: &Key) -> Markup {
    let (colour, called) = (colour(Some(index)), KeyChart::name(index));
    let end = key.removed.unwrap_or(scale.to);
    let stamped = key.stamped.unwrap_or(end).min(end);
    let expires = key.expires.unwrap_or(end).clamp(stamped, end);
    let events =
        [(Some(key.minted), "minted"), (key.stamped, "given an end"), (key.expires, "ends"), (key.removed, "removed")];
    html! {
        (name(top, &format!("{called} {}", key.id)))
        (bar(scale, top, (key.minted, stamped), &colour, &format!("{called} has no end")))
        (bar(scale, top, (stamped, expires), &format!("{colour} ending"), &format!("{called} is on its way out")))
        (bar(scale, top, (expires, end), &format!("{colour} over"), &format!("{called} is over")))
        @for (at, what) in events {
            @if let Some(at) = at.filter(|at| scale.has(*at)) {
                @let x = number(scale.x(at));
                line.mark x1=(x) x2=(x) y1=(number(top - 2.0)) y2=(number(top + BAR + 2.0)) {
                    title { (called) " " (what) " at " (clock(at)) }
                }
            }
        }
    }
}

fn held(scale: &Scale, top: f64, secret: &Published) -> Markup {
    let ends = secret.held.iter().skip(1).map(|(at, _)| *at).chain([scale.to]);
    html! {
        (name(top, &format!("Secret {}", secret.secret)))
        @for ((at, key), end) in secret.held.iter().zip(ends) {
            @let called = key.map_or_else(|| "no key".to_owned(), KeyChart::name);
            (bar(scale, top, (*at, end), &colour(*key), &format!("{called} since {}", clock(*at))))
        }
    }
}

fn uses(scale: &Scale, top: f64, tenant: &Tenant) -> Markup {
    let shown: Vec<_> = tenant.uses.iter().filter(|it| scale.has(it.at)).collect();
    let step = shown.len().div_ceil(MOST_USES).max(1);
    let middle = top + BAR / 2.0;
    html! {
        (name(top, &format!("tenant {}", tenant.name)))
        // Every refusal is drawn.
        @for (_, it) in shown.iter().enumerate().filter(|(place, it)| !it.allowed || place % step == 0) {
            @let x = scale.x(it.at);
            @let told = format!("{} {} at {}", it.key.map_or_else(|| "unknown key".to_owned(), KeyChart::name),
                if it.allowed { "allowed" } else { "refused" }, clock(it.at));
            @if it.allowed {
                circle class=(colour(it.key)) cx=(number(x)) cy=(number(middle)) r="3.5" { title { (told) } }
            } @else {
                path class=(format!("{} refused", colour(it.key)))
                    d=(format!("M{:.1} {:.1}l8 8m0 -8l-8 8", x - 4.0, middle - 4.0)) { title { (told) } }
            }
        }
        @if step > 1 { text.tick x=(number(WIDTH)) y=(number(top + BAR + 10.0)) text-anchor="end" { "one in " (step) " shown" } }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::keychart;
    use super::*;

    #[test]
    fn keys_secrets_and_tenants_have_their_lanes() {
        let chart = KeyChart::of(&keychart::tests::rotation()).expect("there are two keys");
        let drawing = draw(&chart).into_string();
        for told in [
            "key #1 AKIAONE",
            "key #2 AKIATWO",
            "Secret ns/photos-s3",
            "tenant team-a with photos-s3",
            "key #1 given an end at 1:42.000",
            "key #1 ends at 2:40.000",
            "key #1 removed at 3:40.000",
            "key #2 since 1:41.000",
            "key #1 refused at 2:50.000",
        ] {
            assert!(drawing.contains(told), "{told} is missing: {drawing}");
        }
        assert_eq!(drawing.matches("<circle").count(), 3);
        assert_eq!(drawing.matches("<path").count(), 1);
    }
}
