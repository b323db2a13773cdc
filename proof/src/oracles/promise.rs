//! The promises, by the names that reports, tests and commits use.

use std::fmt;

/// Defines a closed list of promises with their texts.
macro_rules! promises {
    ($($name:ident: $words:literal,)*) => {
        /// A promise of the operator.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Promise {
            $(#[doc = $words] $name,)*
        }

        impl Promise {
            /// All promises.
            pub const ALL: [Self; [$($words,)*].len()] = [$(Self::$name,)*];

            /// Returns the name, such as `I1`.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$name => stringify!($name),)*
                }
            }

            /// Returns the text.
            pub fn words(self) -> &'static str {
                match self {
                    $(Self::$name => $words,)*
                }
            }
        }
    };
}

promises! {
    I1: "nothing is destroyed that isn't ours",
    I2: "nothing is destroyed after the edit to Retain, beyond one slice in flight",
    I3: "nothing is emptied after the edit to forceDelete: false",
    I4: "one bucket has at most one claim, and a claim that lost it gets no key",
    I5: "keys without an end: at most one for each claim, exactly one when it is bound; at most two live",
    I6: "a key that could be read works until its own end or until it is revoked; a bound claim is without one only then",
    I7: "no key works after its end, after its claim, or beside the next once it is revoked",
    I8: "the end of a key that is not revoked never moves earlier or vanishes, and is at least the overlap after the switch",
    I9: "the key in the consumer Secret is valid at the gateway, or becomes so within its lag",
    I10: "id and secret of a key are never torn; an id never gets a second secret",
    I11: "no secret key shows anywhere but in the Secrets that are for it, nor is sent where its owner does not let it",
    I12: "finalizer and record come before the first outside effect; the finalizer goes last",
    I13: "writes carry UID and version of what was decided on; nobody else's Secret is written",
    I14: "nothing is left that belongs to no claim",
    I15: "a key opens its own bucket and no other",
    I16: "the status is true",
    I17: "of operators that elect one, only the one that the Lease names changes anything",
    G1: "what a gateway says is stored is stored whole, and what it refuses has changed nothing",
    G2: "no byte is stored, and nothing done, that its client did not sign for",
    G3: "a store is asked what the client meant, by the gateway's own key, and once",
    G4: "no answer of a gateway shows the installation's names, addresses or keys, or another tenant's",
    G5: "an answer that is told to be whole is whole",
    G6: "who may is served, where nothing ails anybody",
    G7: "gateways let a bucket hold no more than its hard quota, but for the shares of those that have not heard",
    A1: "no request of an access goes beyond consent, mode or prefix, at any gateway, after its lag",
    A2: "none of them opens a bucket once its claim is to go",
    A3: "at most two keys of an access live, and none after it",
    A5: "what an entry of an access tells is true at rest",
    L1: "what is asked for is reached",
    L2: "a deletion comes to its end, or a condition names what blocks it",
    L3: "a rotation or revocation comes within its bound",
    L4: "time and calls after the faults stop are bounded",
    L5: "no claim starves another",
    L6: "a mended spec or cluster recovers without a restart",
    E1: "at rest nothing is written and no store is called",
    E2: "under a lasting error calls are bounded",
    E3: "without deletes each object is created once and never deleted",
    D1: "the end is that of a run without faults",
    D2: "the order of a user's acts does not change the end",
}

impl fmt::Display for Promise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
