//! All that a pass over an access knows, in a few bytes: two passes with one fingerprint go on
//! alike. A model checker finds views again by it.

use std::fmt::Write;

use super::view::AccessView;

impl AccessView {
    /// All that this pass knows, in a few bytes. Objects stand for themselves by their
    /// resourceVersion; of the status when the pass began nothing is told, nor of the setting.
    pub fn fingerprint(&self) -> String {
        // Takes the view apart, so that a field that is new can't be forgotten.
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
        // Writing to a text can't fail.
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
