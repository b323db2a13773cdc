//! Faults of any call, independent of the service.

use std::time::Duration;

use crate::row::{Application, Calls, Parameter, Row, Vocabulary};

/// A fault of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallFault {
    /// The request never arrives: it has no effect, and the connection breaks.
    LostRequest,
    /// The request is carried out, then the connection breaks. To the caller it looks exactly like
    /// [`CallFault::LostRequest`].
    LostAnswer,
    /// The request never arrives and no answer comes; only the caller's own deadline ends the call.
    Hang,
    /// The request takes this long to arrive. If the caller gives up first, it is never sent.
    Slow {
        /// Delay in milliseconds.
        millis: u64,
    },
}

impl Vocabulary for CallFault {
    fn all() -> Vec<Self> {
        vec![Self::LostRequest, Self::LostAnswer, Self::Hang, Self::Slow { millis: 2000 }]
    }

    fn row(self) -> Row<Self> {
        match self {
            Self::LostRequest => Row::new("lost-request", Calls::ANY, Application::RequestLost),
            Self::LostAnswer => Row::new("lost-answer", Calls::ANY, Application::AnswerLost),
            Self::Hang => Row::new("hang", Calls::ANY, Application::Silence),
            Self::Slow { millis } => Row::new("slow", Calls::ANY, Application::Delay(Duration::from_millis(millis)))
                .with(Parameter::Millis { millis, with: |millis| Self::Slow { millis } }),
        }
    }
}
