//! Faults of the calling process's wall clock.

use crate::row::{Application, Calls, Lasts, Parameter, Row, Vocabulary};

/// A fault of the calling process's wall clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockFault {
    /// Just before the request is sent, the clock jumps.
    Step {
        /// Seconds that the clock jumps forward; negative if back.
        seconds: i32,
    },
}

impl Vocabulary for ClockFault {
    fn all() -> Vec<Self> {
        // Offsets below a minute, a common tolerance for clocks, and above it.
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
