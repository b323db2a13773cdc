//! Faults that only the gateway's calls can have: faults of streamed bodies, and store messages
//! that contain the gateway's key and the store's address.

use faults::{
    Application, CallFault, CallKind, Calls, Fault, KubeFault, KubeVerb, Row, S3Operation, Trace, Vocabulary,
};

/// A fault of a body between gateway and store, or of a store's message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GatewayFault {
    /// The connection breaks after half of the answer's body.
    CutAnswer,
    /// The second half of the answer's body never comes.
    StallAnswer,
    /// The store closes the connection after the first bytes of the request's body, and does not
    /// carry out the request.
    CutRequest,
    /// The store answers 200 before it has read the body, and never reads it.
    EarlySuccess,
    /// The store reports an invalid signature, with the gateway's key and its own address in the
    /// text. The status is 403, or 200 for operations that take long.
    NamesUs,
    /// The store answers 400 with the gateway's key and its own address in the message.
    QuotesUs,
}

/// A fault of a gateway's call.
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

/// Returns true if a fault makes sense for a call of the gateway.
///
/// Excluded are changes that third parties make to a bucket, and faults of a process, because they
/// are not about the gateway's calls. Excluded are also watches without an answer: only the
/// client's own deadline ends them, and there is none within one process.
pub fn is_of_gateway(fault: OfGateway, kind: CallKind) -> bool {
    use faults::S3Fault as S3;
    match fault {
        Fault::Process(_) | Fault::Clock(_) => false,
        Fault::Call(CallFault::Hang) => !matches!(kind, CallKind::Kube(KubeVerb::List | KubeVerb::Watch)),
        Fault::Call(_) | Fault::Project(_) => true,
        Fault::Kube(KubeFault::WatchSilent) => false,
        // A GET by name is never stale: it is a quorum read.
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

/// Calls of the gateway in a run.
#[derive(Clone, Debug, Default)]
pub struct GatewayCalls {
    /// All calls, by number.
    pub trace: Trace<GatewayFault>,
    /// Number of calls before faults could happen.
    pub before: u64,
    /// Number of calls until the end.
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
