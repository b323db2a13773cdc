//! What can happen to the process that makes the call.

use std::time::Duration;

use crate::call::CrashPoint;
use crate::row::{Application, Calls, Parameter, Row, Vocabulary};
use crate::standstill::Stop;

/// A fault of the calling process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessFault {
    /// It dies at this point of the call.
    Crash(CrashPoint),
    /// Right before the request is sent, it stands still for this long; then the request is sent,
    /// unless its deadline has passed meanwhile.
    Pause {
        /// Seconds that it stands still.
        seconds: u32,
    },
    /// Right before the request is sent, it stands still, and a second process of its kind starts
    /// and does what there is to do, until it rests. That one is killed, and the first goes on
    /// with its request.
    Twin,
}

impl Vocabulary for ProcessFault {
    fn all() -> Vec<Self> {
        let mut all: Vec<Self> = CrashPoint::ALL.map(Self::Crash).into();
        // Within the deadline of a call; and longer than a controller usually waits for anything.
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
