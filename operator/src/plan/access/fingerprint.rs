//! Fingerprint of a view: two passes over an access with the same fingerprint continue alike. A
//! model checker uses it to recognize views.

use std::fmt::Write;

use super::view::AccessView;

impl AccessView {
    /// Returns a compact summary of what this pass knows. Objects are represented by their
    /// resourceVersion. The status before the pass and the settings are left out.
    pub fn fingerprint(&self) -> String {
        // Destructures the view, so that a new field can't be forgotten.
        let Self {
            setting: _,
            access,
            before: _,
            is_live,
            internal,
            consumers,
            namespace,
            namespace_live,
            entries,
            lead,
            setbacks,
            held_off,
            revocation_started,
            words,
            lists: (lists, is_current),
            is_doubted,
            aimed,
            highest_gone,
            is_consumer_written,
            is_finalizer_removed,
            trouble,
            step: _, // What is known tells by itself whether it still counts.
        } = self;
        let mut text = String::with_capacity(512);
        let is_listed = *lists > 0;
        // Writing to a String can't fail.
        let _ = write!(text, "{} {is_live} {} | ", access.id.resource_version, internal.fingerprint());
        let _ = write!(text, "{} | {namespace:?} {namespace_live:?} {entries:?} {lead:?} ", consumers.fingerprint());
        let _ = write!(text, "{words:?} {is_listed} {is_current} {is_doubted} {aimed:?} {highest_gone} ");
        let _ = write!(text, "{is_consumer_written} {is_finalizer_removed} {setbacks} {trouble:?}");
        if let Some(time) = held_off {
            let _ = write!(text, " {time:?} {revocation_started}");
        }
        text
    }
}
