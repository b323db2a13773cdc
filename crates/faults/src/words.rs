//! Words that may stand in the brackets of a fault.

/// Declares a closed set of words that may stand in the brackets of a fault, as an enum with `ALL`
/// and `word`.
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
            /// All of them, in the order in which a person reads them.
            pub const ALL: [Self; [$($word,)*].len()] = [$(Self::$variant,)*];

            /// As a plan writes it.
            pub fn word(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)*
                }
            }
        }
    };
}
