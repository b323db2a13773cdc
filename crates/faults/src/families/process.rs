//! Faults of the process that makes the call.

use std::time::Duration;

use crate::call::CrashPoint;
use crate::row::{Application, Calls, Parameter, Row, Vocabulary};
use crate::standstill::Stop;

/// A fault of the calling process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessFault {
    /// The process crashes at this point of the call.
    Crash(CrashPoint),
    /// Just before the request is sent, the process is suspended for this long. Then the request is
    /// sent, unless its deadline has passed.
    Pause {
        /// Duration in seconds.
        seconds: u32,
    },
    /// Just before the request is sent, the process is suspended, and a second process of the same
    /// kind starts and works until it has nothing left to do. Then the second one is killed, and
    /// the first sends its request.
    Twin,
}

impl Vocabulary for ProcessFault {
    fn all() -> Vec<Self> {
        let mut all: Vec<Self> = CrashPoint::ALL.map(Self::Crash).into();
        // Less than the deadline of a call, and longer than a controller usually waits for
        // anything.
        all.extend([Self::Pause { seconds: 20 }, Self::Pause { seconds: 600 }, Self::Twin]);
        all
    }

    fn row(self) -> Row<Self> {
        match self {
            Self::Crash(point) => {
                Row::new("crash", Calls::ANY, Application::Crash(point)).with(Parameter::Word(point.word()))
            }
            Self::Pause { seconds } => {
                let stop = Stop::For(Duration::from_secs(seconds.into()));
                Row::new("pause", Calls::ANY, Application::Standstill(stop))
                    .with(Parameter::Seconds { seconds, with: |seconds| Self::Pause { seconds } })
            }
            Self::Twin => Row::new("twin", Calls::ANY, Application::Standstill(Stop::Twin)),
        }
    }
}
