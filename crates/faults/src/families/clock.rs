//! What can happen to the calling process's wall clock.

use crate::row::{Application, Calls, Lasts, Parameter, Row, Vocabulary};

/// A fault of the calling process's wall clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockFault {
    /// Right before the request is sent, it jumps.
    Step {
        /// Seconds that it jumps forward; negative ones back.
        seconds: i32,
    },
}

impl Vocabulary for ClockFault {
    fn all() -> Vec<Self> {
        // Below a minute, which clocks are commonly trusted to be off, and beyond it.
        [-3600, -45, 45, 3600].map(|seconds| Self::Step { seconds }).into()
    }

    fn row(self) -> Row<Self> {
        match self {
            Self::Step { seconds } => Row::new("step", Calls::ANY, Application::World)
                .with(Parameter::Signed { seconds, with: |seconds| Self::Step { seconds } })
                .lasting(Lasts::Beyond),
        }
    }
}
