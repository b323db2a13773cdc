//! Advice for each reason of a BucketAccess's conditions, and of its entries.

use stowage_operator::api::AccessReason;

use super::READY;

const WHY: &str = "kubectl stowage why bucketaccess/team-b/reader";
const NUDGE: &str = "kubectl annotate bucketaccess reader -n team-b --overwrite broker.stowage.io/reconcile=\"$(date \
                     +%s)\"";

table!(AccessReason {
    Open {
        at: &[("Ready", "True")],
        todo: "Nothing.",
        then: "It stays so until something changes.",
        look: &[],
    }
    NotShared {
        at: &[READY],
        todo: "Ask the owner of the claim to let this namespace in by `spec.sharing`, or for an entry with a \
               `bucketRef` the administrator of the S3Backend by `spec.sharedBuckets` \
               ([sharing](../guide/sharing.md)). Compare the names, too: who isn't let in isn't told whether there \
               is such a claim.",
        then: "By itself, once that is so. The other entries work on.",
        look: &[WHY],
    }
    NotWatched {
        at: &[READY],
        todo: "This operator serves some namespaces alone (`--watch-namespace`), and the claim's is none of them. \
               Have it serve that one too.",
        then: "After the operator's start with that namespace.",
        look: &[WHY],
    }
    ClaimNotBound {
        at: &[READY],
        todo: "Look at the claim: it may wait for its bucket, be on its way out, or in the access's own namespace \
               not be there at all.",
        then: "By itself, once the claim is bound.",
        look: &["kubectl stowage why team-a/photos"],
    }
    BackendNotReady {
        at: &[READY],
        todo: "Make the S3Backend again, or point it to the store that the bucket is at. Whether the backend answers \
               doesn't matter to an access.",
        then: "At once after that.",
        look: &["kubectl get s3backends", WHY],
    }
    ConsentPending {
        at: &[READY],
        todo: "Nothing for a moment: the operator's next pass over the claim opens its bucket. Where it stays so, \
               `spec.allowedNamespaces` of the claim's S3Backend doesn't let this namespace in, or the claim is \
               paused or can't go on.",
        then: "By itself, with the claim's next pass.",
        look: &["kubectl stowage why team-a/photos"],
    }
    BeyondConsent {
        at: &[READY],
        todo: "Ask for less, or for more consent. A mode that goes farther is narrowed to what is consented to; \
               refused is one that has nothing in common with it (`ReadOnly` and `WriteOnly`), and a prefix that is \
               not within `prefixes` of the consent, such as none at all.",
        then: "At once after either edit.",
        look: &[WHY],
    }
    SameBucket {
        at: &[READY],
        todo: "Two entries come to one bucket, or to two of one name, which a client couldn't tell apart. Both are \
               closed. Take one out, or make a second BucketAccess for it.",
        then: "At once after the edit.",
        look: &[WHY],
    }
    HeldByClaim {
        at: &[READY],
        todo: "`spec.sharedBuckets` is for buckets that no claim has. Name the claim in the entry (`claimRef`) and \
               ask its owner, or delete the claim, whose `deletionPolicy` decides what becomes of the data.",
        then: "By itself, once no claim has the bucket; at once after an edit of the entry.",
        look: &[WHY],
    }
    KeyPending {
        at: &[READY],
        todo: "Nothing. An entry that is new, or leads to another bucket, is opened by the next key, and there are \
               two keys at most. Who can't wait revokes them (`broker.stowage.io/revoke`), by which the keys that \
               pods have end at once.",
        then: "By itself: a minute after the last key at the earliest, and not before the one before that has ended \
               (`spec.rotationPolicy.overlapSeconds`).",
        look: &[WHY],
    }
    SecretConflict {
        at: &[READY],
        todo: "There is a Secret of the wanted name that the access didn't make, or that is immutable or not \
               `Opaque`. Look what it is for, then delete it, or give `spec.writeConnectionSecretToRef` another \
               name.",
        then: "At once after the edit. That a Secret of others is gone is seen within `--resync-interval`, or when \
               the access is nudged.",
        look: &[NUDGE],
    }
    CreationInconsistent {
        at: &[READY],
        todo: "Somebody changed or damaged a Secret of the operator's namespace, which the message names. A key that \
               is damaged is replaced on request, as below. A record (`ar-…`) is to be restored from a backup. A \
               time that can't be read is that of a key on its way out: delete that Secret. One that is kept waits \
               for whoever put finalizers there.",
        then: "At once after that.",
        look: &["kubectl annotate bucketaccess reader -n team-b --overwrite broker.stowage.io/rotate=\"$(date +%s)\""],
    }
    ServedByAnother {
        at: &[READY],
        todo: "The message says which it is. *Has the access's keys*: somebody wrote the annotation \
               `broker.stowage.io/served-by`, which changes nothing; take it off. *Serves what spec.buckets names*: a \
               takeover forgot the access; see \
               [restore](../guide/restore.md#say-that-it-is-this-clusters-turn).",
        then: "At once after that.",
        look: &["kubectl annotate bucketaccess reader -n team-b broker.stowage.io/served-by-"],
    }
    SpecInvalid {
        at: &[READY],
        todo: "Mend what the message names: an entry, the rotation policy, or `spec.secretTemplate`, which may ask \
               for too much, or for a label or an annotation that `--secret-metadata-prefix` doesn't allow.",
        then: "At once after the edit.",
        look: &[WHY],
    }
    OperatorNamespace {
        at: &[READY],
        todo: "Make the access in another namespace: this one holds Secrets of the operator.",
        then: "Not as long as the namespace is one of the operator's.",
        look: &[],
    }
    ServerError {
        at: &[READY],
        todo: "The API server refuses the step that the message names: a right, a quota, a policy or a webhook. Or \
               the namespace is on its way out, and nothing is to be done.",
        then: "When something about the access changes, and every `--resync-interval`.",
        look: &["kubectl describe bucketaccess reader -n team-b"],
    }
    DeletionBlocked {
        at: &[READY],
        todo: "A Secret of the access is deleted and kept by finalizers of others, which the message names. Whoever \
               put them there takes them off.",
        then: "At once after that.",
        look: &[WHY],
    }
    Paused {
        at: &[READY],
        todo: "Somebody set the annotation `broker.stowage.io/paused`. Take it off when that is over. A paused \
               access keeps its key; one that is deleted loses it all the same.",
        then: "At once after that.",
        look: &["kubectl annotate bucketaccess reader -n team-b broker.stowage.io/paused-"],
    }
});
