//! Advice for each reason of a BucketClaim's conditions.

use stowage_operator::api::Reason;

use super::READY;

const BUCKET: (&str, &str) = ("BucketCreated", "False");
const CREDENTIALS: (&str, &str) = ("CredentialsProvisioned", "False");
const DESCRIBE: &str = "kubectl describe bucketclaim photos -n team-a";
const WHY: &str = "kubectl stowage why team-a/photos";
const OPERATOR_LOG: &str =
    "kubectl logs -n stowage-system -l app.kubernetes.io/name=stowage-operator --prefix --since=15m --tail=-1";

table!(Reason {
    Bound {
        at: &[("Ready", "True")],
        todo: "Nothing.",
        then: "It stays so until something changes.",
        look: &[],
    }
    BackendNotReady {
        at: &[READY],
        todo: "The message says which it is. *Is not Ready*: the conditions of the S3Backend say why, and their \
               reasons stand on this page too. *There is no S3Backend*: make it, or mend `spec.backendRef.name`. *Is \
               served by another operator*: see [restore](../guide/restore.md#say-that-it-is-this-clusters-turn). A \
               field of the S3Backend: its spec can't be read there; mend it. *Now points to*: the endpoint of the \
               S3Backend was edited, and the bucket is not seen there as this claim's; point the backend back, or \
               bring the bucket there with its tags. *The move waits*: nothing, there is a key besides the current \
               one, which has to end first.",
        then: "By itself, once that is so. A claim that was bound keeps its keys and its phase meanwhile. What \
               becomes of a bucket at a store nobody tells the operator: it looks every `--resync-interval`.",
        look: &["kubectl get s3backends", "kubectl describe s3backend main"],
    }
    BackendNotAllowed {
        at: &[READY],
        todo: "Ask whoever runs the backend to let the namespace in (`spec.allowedNamespaces` of the S3Backend), or \
               name another one in `spec.backendRef`. A namespace that holds Secrets of the operator has no claims, \
               whatever a backend allows: make the claim in another.",
        then: "At once after either edit. A claim that was bound keeps its keys and its phase meanwhile.",
        look: &["kubectl get s3backend main -o jsonpath='{.spec.allowedNamespaces}{\"\\n\"}'"],
    }
    TemplateInvalid {
        at: &[READY, CREDENTIALS],
        todo: "The message says which it is. *The template of S3Backend gives no bucket*: mend \
               `spec.bucketNameTemplate` there, or delete the claim and make it with a `bucketName` of its own. *S3 \
               reserves the ending*: make it anew with another `bucketName`. *The spec can't be read*: mend it; a \
               definition of another version let it through. *Is not brought up to date*: `spec.secretTemplate` asks \
               for a label or an annotation that `--secret-metadata-prefix` doesn't allow, or for too much; the \
               Secret stays as it is, and no rotation goes on.",
        then: "At once after the edit.",
        look: &[WHY],
    }
    BucketNameConflict {
        at: &[READY, BUCKET],
        todo: "*Is held*: the bucket is another claim's. Delete this claim and make it with another `bucketName`, \
               which can't be edited, or delete the other one, whose `deletionPolicy` decides what becomes of the \
               data. *Has credentials for*: keys of another claim for this bucket are there, whose record was \
               deleted by hand; one of the two claims has to go. *Is in sharedBuckets*: the administrator of the \
               S3Backend shares the bucket, so no claim can have it before it is taken out there. *A request without \
               a key*: another claim opened a bucket of that name to the public first; this one's keys work, and \
               `anonymousAccess.mode: None` ends the conflict.",
        then: "By itself, once the other claim lets go.",
        look: &["kubectl get bucketclaims --all-namespaces --field-selector status.bucketName=team-a-photos"],
    }
    BucketExists {
        at: &[READY, BUCKET],
        todo: "A bucket is there, and may hold data of somebody else. Mostly the answer is another name: delete the \
               claim and make it with another `bucketName`. Where the bucket is to be this claim's, the message says \
               what forbids it: an `adoptionPolicy` of `Never` or `Owned`, tags of another claim, which no policy \
               overrides, another account of the store, or an owner that the store doesn't tell (`adoptionProof: \
               SoleAccount`, where no other account makes buckets). A bucket that is taken over is never emptied and \
               never deleted.",
        then: "At once after an edit of the S3Backend. What changes at the store is seen at the next look, within \
               `--resync-interval`, or when the claim is nudged.",
        look: &["kubectl annotate bucketclaim photos -n team-a --overwrite broker.stowage.io/reconcile=\"$(date +%s)\""],
    }
    BucketMissing {
        at: &[READY, BUCKET],
        todo: "Find out who deleted the bucket, or where the backend points to by now, before anything else: its \
               data is in your backup alone. The operator makes no empty one in its place. To go on with the data, \
               restore it into a bucket of that name; where the store has tags, one that was made for the claim \
               needs `broker.stowage.io/claim-uid` with the claim's UID, and so does any at another endpoint. To go \
               on without, delete the claim and make it anew.",
        then: "At the next look, within `--resync-interval`. The keys are kept.",
        look: &["kubectl get bucketclaim photos -n team-a -o \
                 jsonpath='{.status.backend}{\"\\n\"}{.metadata.uid}{\"\\n\"}'"],
    }
    SecretConflict {
        at: &[READY, CREDENTIALS],
        todo: "There is a Secret of the wanted name that another claim or somebody else made, or that is immutable \
               or not `Opaque`. Look what it is for. Then delete it, or give the claim another name in \
               `spec.writeConnectionSecretToRef`, which can be edited at any time.",
        then: "At once after the edit. That a Secret of others is gone is seen within `--resync-interval`, or when \
               the claim is nudged.",
        look: &[
            "kubectl describe secret photos-s3 -n team-a",
            "kubectl annotate bucketclaim photos -n team-a --overwrite broker.stowage.io/reconcile=\"$(date +%s)\"",
        ],
    }
    CreationInconsistent {
        at: &[READY, CREDENTIALS],
        todo: "Somebody changed or damaged a Secret of the operator's namespace, which the message names. *The \
               current credential is damaged*: ask for another key, as below. *Delete that Secret*: do so; it is a \
               key on its way out, one for another store, none at all, or public access, which is made anew. *The \
               record is damaged*: restore that Secret from a backup.",
        then: "At once after that.",
        look: &["kubectl annotate bucketclaim photos -n team-a --overwrite broker.stowage.io/rotate=\"$(date +%s)\""],
    }
    ServedByAnother {
        at: &[READY],
        todo: "Somebody wrote the annotation `broker.stowage.io/served-by` of the claim. It changes nothing as long as \
               this operator has the claim's keys: take it off. To have another operator take over, see \
               [restore](../guide/restore.md#say-that-it-is-this-clusters-turn).",
        then: "At once after that. The claim keeps its keys and its phase meanwhile.",
        look: &["kubectl annotate bucketclaim photos -n team-a broker.stowage.io/served-by-"],
    }
    BackendError {
        at: &[READY, BUCKET],
        todo: "The message says whose answer it is. *Can't …*: the API server refuses a step, by a right, a quota, a \
               policy or a webhook; or a Secret that is to go is kept by the finalizers that the message names, \
               which whoever put them there has to take off. Everything else is the store: it fails, denies, doesn't \
               answer or doesn't implement something. See \
               [StowageUpstreamErrors](runbooks/StowageUpstreamErrors.md).",
        then: "What may pass is tried again at growing distances, five minutes at most. What was refused is looked \
               at again when something changes, and every `--resync-interval`.",
        look: &[DESCRIBE, OPERATOR_LOG],
    }
    BucketNotEmpty {
        at: &[READY],
        todo: "Its owner decides. Empty the bucket; or set `forceDelete: true`, which deletes the data; or let the \
               claim go and keep the bucket, as below. The keys are revoked already, so a bucket is emptied with a \
               key of the store's own.",
        then: "At once after an edit of the claim. The bucket is looked at every half minute at first, then ever \
               more seldom.",
        look: &[LET_GO],
    }
    Purging {
        at: &[READY],
        todo: "Nothing, as long as `status.purge.objectsDeleted` grows. Where all is deleted and the bucket still \
               isn't empty, the message says so: somebody writes to it past the gateway, or the store hides what it \
               holds. Stop the writer, or let the claim go and keep the bucket.",
        then: "By itself, slice by slice.",
        look: &["kubectl get bucketclaim photos -n team-a -o jsonpath='{.status.purge}{\"\\n\"}'"],
    }
    DeletionBlocked {
        at: &[READY],
        todo: "The message says what is in the way: the S3Backend is gone, can't be read, points elsewhere or is \
               another operator's; the store doesn't let the operator see or delete; or objects are locked. Mend \
               that, or let the claim go and keep the bucket. Don't take the finalizer off by hand: the bucket would \
               stay without anybody knowing of it.",
        then: "At once after an edit of the claim or of the S3Backend. What changes at the store is seen within \
               `--resync-interval`.",
        look: &[LET_GO],
    }
    Paused {
        at: &[READY],
        todo: "Somebody set the annotation `broker.stowage.io/paused`. Take it off when that is over. A paused claim \
               keeps its bucket and its keys, and isn't looked after; one that is deleted loses its keys all the \
               same.",
        then: "At once after that.",
        look: &["kubectl annotate bucketclaim photos -n team-a broker.stowage.io/paused-"],
    }
    CreatedOnBackend {
        at: &[("BucketCreated", "True")],
        todo: "Nothing. With `deletionPolicy: Delete` this bucket goes with the claim, once it is empty or \
               `forceDelete` says so.",
        then: "It stays so until the claim goes or moves.",
        look: &[],
    }
    Adopted {
        at: &[("BucketCreated", "True")],
        todo: "Nothing. The bucket was there before the claim: its settings are untouched, and it is never emptied \
               and never deleted, whatever the claim's `deletionPolicy`.",
        then: "It stays so until the claim goes or moves.",
        look: &[],
    }
    Creating {
        at: &[BUCKET],
        todo: "Nothing yet. What keeps the bucket from being made is the reason of `Ready`.",
        then: "By itself, with `Ready`.",
        look: &[WHY],
    }
    SecretWritten {
        at: &[("CredentialsProvisioned", "True")],
        todo: "Nothing. The connection is in the Secret that `status.boundSecretName` names.",
        then: "It stays so until something changes.",
        look: &[],
    }
    Revoked {
        at: &[CREDENTIALS],
        todo: "Nothing: the claim is deleted, and its keys have ended. What the rest of the deletion waits for is \
               the reason of `Ready`.",
        then: "By itself, with `Ready`.",
        look: &[WHY],
    }
});

/// Both fields in one patch, because `forceDelete` without `Delete` is refused.
const LET_GO: &str = "kubectl patch bucketclaim photos -n team-a --type=merge -p \
                      '{\"spec\":{\"forceDelete\":false,\"deletionPolicy\":\"Retain\"}}'";
