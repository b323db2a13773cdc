//! Advice for each reason of an S3Backend's conditions.

use stowage_operator::api::BackendReason;

use super::READY;

const DESCRIBE: &str = "kubectl describe s3backend main";

table!(BackendReason {
    EndpointReachable {
        at: &[("Ready", "True")],
        todo: "Nothing.",
        then: "It is probed every `--resync-interval`. Two failed probes in a row are forgiven, so it may stand here \
               for a while after a store has gone.",
        look: &[],
    }
    EndpointUnreachable {
        at: &[READY],
        todo: "Look whether the store runs, whether the name in `spec.endpoint` resolves, whether its certificate is \
               trusted (`spec.tls`), and whether a network policy lets the operator's pods there \
               (`networkPolicy.egressPorts` of the chart). The message has the error of the connection.",
        then: "By itself, with the first probe that succeeds: after a failure they come sooner, about four minutes \
               apart at most.",
        look: &[DESCRIBE],
    }
    CredentialsInvalid {
        at: &[READY],
        todo: "The message says which Secret it is, and what is missing: the Secret, a key in it, the label and the \
               annotation by which its owner lets it be used for this endpoint ([backends](../guide/backends.md)), \
               or the right to read it. Where the store answers 401 or 403, compare the key, its policy \
               (ListBuckets), `spec.region` and the clocks of both.",
        then: "At once after an edit of the S3Backend or of its Secrets. Any other change is found by the next probe.",
        look: &[DESCRIBE],
    }
    TemplateInvalid {
        at: &[READY],
        todo: "Mend `spec.bucketNameTemplate`: `a-z`, `0-9`, `.`, `-` and the fields `{{ .Namespace }}`, `{{ .Name \
               }}` and `{{ .Hash }}`. Today's definition refuses anything else, so it is of another version: install \
               the one that belongs to the operator.",
        then: "At once after the edit.",
        look: &[DESCRIBE],
    }
    BackendError {
        at: &[READY],
        todo: "The message has the store's answer: look at its log. It may also be that something else answers at \
               `spec.endpoint`, such as a proxy. Where the message names a field of the spec, mend that: the \
               definition of another version let it through.",
        then: "By itself, with the first probe that succeeds, and at once after an edit of the S3Backend.",
        look: &[DESCRIBE],
    }
});
