//! The faults of the gateway's calls that the operator's never meet: those of bodies that flow, and
//! of a store that speaks of us.

use faults::{
    Application, CallFault, CallKind, Calls, Fault, KubeFault, KubeVerb, Row, S3Operation, Trace, Vocabulary,
};

/// What can happen to a body on its way between gateway and store, and what a store may say of the
/// gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GatewayFault {
    /// The connection breaks when half of the answer's body has come.
    CutAnswer,
    /// The second half of the answer's body never comes.
    StallAnswer,
    /// The store's end of the connection breaks when the first bytes of the request's body are
    /// there; nothing is carried out.
    CutRequest,
    /// The store answers 200 before it has read the body, and reads none of it.
    EarlySuccess,
    /// The store refuses our signature, with our key and its own address in the text: 403, or 200
    /// where it works for long.
    NamesUs,
    /// The store refuses the request, with our key and its own address in the message: 400.
    QuotesUs,
}

/// The faults of the gateway's calls.
pub type OfGateway = Fault<GatewayFault>;

const CALLS: Calls = Calls::s3(|_| true, "S3 calls");
const ANSWERED: Calls = Calls::s3(has_answer, "S3 calls whose answer has a body");
const SENT: Calls = Calls::s3(has_body, "S3 calls whose request has a body");

fn has_answer(operation: S3Operation) -> bool {
    operation.answers_in_xml() || operation.name() == "GetObject"
}

fn has_body(operation: S3Operation) -> bool {
    matches!(operation.name(), "PutObject" | "UploadPart" | "DeleteObjects" | "CompleteMultipartUpload")
}

impl Vocabulary for GatewayFault {
    fn all() -> Vec<Self> {
        vec![Self::CutAnswer, Self::StallAnswer, Self::CutRequest, Self::EarlySuccess, Self::NamesUs, Self::QuotesUs]
    }

    fn row(self) -> Row<Self> {
        let (word, calls) = match self {
            Self::CutAnswer => ("cut-answer", ANSWERED),
            Self::StallAnswer => ("stall-answer", ANSWERED),
            Self::CutRequest => ("cut-request", SENT),
            Self::EarlySuccess => ("early-success", Calls::s3(stores_body, "PutObject and UploadPart")),
            Self::NamesUs => ("names-us", CALLS),
            Self::QuotesUs => ("quotes-us", CALLS),
        };
        Row::new(word, calls, Application::World)
    }
}

fn stores_body(operation: S3Operation) -> bool {
    matches!(operation.name(), "PutObject" | "UploadPart")
}

/// Whether a fault of the gateway's calls is worth trying: what others do to a bucket, and what
/// happens to a process, is not about its calls; and a watch without an answer is ended by the
/// client's own deadline, which there is none of in one process.
pub fn is_of_gateway(fault: OfGateway, kind: CallKind) -> bool {
    use faults::S3Fault as S3;
    match fault {
        Fault::Process(_) | Fault::Clock(_) => false,
        Fault::Call(CallFault::Hang) => !matches!(kind, CallKind::Kube(KubeVerb::List | KubeVerb::Watch)),
        Fault::Call(_) | Fault::Project(_) => true,
        Fault::Kube(KubeFault::WatchSilent) => false,
        // What is asked for by name is answered as it stands: that is read with a quorum.
        Fault::Kube(KubeFault::Stale { .. }) => kind != CallKind::Kube(KubeVerb::Get),
        Fault::Kube(_) => true,
        Fault::S3(fault) => !matches!(
            fault,
            S3::VerbDown(_)
                | S3::AlreadyOwned
                | S3::BucketExists
                | S3::OkOnExisting
                | S3::Locked
                | S3::LateWrite
                | S3::Vanish
                | S3::StaleRead
                | S3::NotImplemented(_)
        ),
    }
}

/// What the gateway called in a run.
#[derive(Clone, Debug, Default)]
pub struct GatewayCalls {
    /// All of it, by number.
    pub trace: Trace<GatewayFault>,
    /// Calls before faults could happen.
    pub before: u64,
    /// Calls until all had come to its end.
    pub until: u64,
    /// Faults that met a call.
    pub fired: Vec<OfGateway>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guide_has_every_fault_of_the_gateways_calls() {
        let guide = include_str!("../../../docs/reference/faults.md");
        let words = GatewayFault::all().into_iter().map(|fault| fault.row().word);
        let missing: Vec<&str> = words.filter(|word| !guide.contains(&format!("| `{word}` |"))).collect();
        assert!(missing.is_empty(), "docs/reference/faults.md does not have {}", missing.join(", "));
    }
}
