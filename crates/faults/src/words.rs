//! Closed sets of words for the brackets of a fault.

/// Declares a closed set of words for the brackets of a fault, as an enum with `ALL` and `word`.
///
/// ```
/// faults::words! {
///     /// Who is asked.
///     Who {
///         /// The one.
///         One = "one",
///         /// The other.
///         Other = "other",
///     }
/// }
///
/// assert_eq!(Who::ALL.map(Who::word), ["one", "other"]);
/// ```
#[macro_export]
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name {
            $($(#[$variant_doc])* $variant,)*
        }

        impl $name {
            /// All words, in the order for people.
            pub const ALL: [Self; [$($word,)*].len()] = [$(Self::$variant,)*];

            /// Returns the word as written in a plan.
            pub fn word(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)*
                }
            }
        }
    };
}
