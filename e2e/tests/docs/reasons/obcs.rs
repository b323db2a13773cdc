//! Advice for each Event that explains why an ObjectBucketClaim isn't Bound. It has no conditions;
//! these Events, and the reasons of the BucketClaim or BucketAccess behind it, replace them.

/// A reason of an Event.
pub(super) struct Told {
    pub(super) reason: &'static str,
    /// Its phase meanwhile, or several if it depends.
    pub(super) phase: &'static str,
    pub(super) means: &'static str,
    pub(super) todo: &'static str,
    pub(super) then: &'static str,
}

pub(super) const ALL: [Told; 13] = [
    Told {
        reason: "BucketAccessLeaving",
        phase: "`Pending`",
        means: "The BucketAccess of its name is an earlier claim's, or was deleted by hand, and is on its way out.",
        todo: "Look what that one waits for: `kubectl describe bucketaccess obc-photos -n team-a`.",
        then: "By itself, once it is gone: then another is made.",
    },
    Told {
        reason: "BucketAccessRemade",
        phase: "as before",
        means: "Its BucketAccess was deleted by hand and is made again, with another key.",
        todo: "Find out who deletes it: each time the key that pods have ends.",
        then: "It goes on already.",
    },
    Told {
        reason: "BucketClaimLeaving",
        phase: "`Pending`",
        means: "The BucketClaim of its name is an earlier claim's, or was deleted by hand, and is on its way out.",
        todo: "Look what that one waits for: `kubectl describe bucketclaim obc-photos -n team-a`.",
        then: "By itself, once it is gone: then another is made. One that was deleted by hand is told to keep its \
               bucket.",
    },
    Told {
        reason: "BucketClaimRemade",
        phase: "as before",
        means: "Its BucketClaim was deleted by hand and is made again.",
        todo: "Find out who deletes it. Where the backend's `adoptionPolicy` lets the bucket be taken over again it \
               is, and from then on it is never deleted; where it doesn't, the BucketClaim is `BucketExists`.",
        then: "It goes on already.",
    },
    Told {
        reason: "InvalidConfig",
        phase: "`Failed`",
        means: "The name of the bucket is missing or is none, or `additionalConfig.maxSize` is no quantity.",
        todo: "Mend `bucketName` or `generateBucketName` of the claim, or `maxSize`. With a class that has \
               `bucketName` the claim's `bucketName` can only be that one.",
        then: "At once after the edit.",
    },
    Told {
        reason: "InvalidStorageClass",
        phase: "`Failed`",
        means: "A parameter of the storage class is missing, or means nothing here.",
        todo: "The message says which. Parameters of a class can't be edited: delete the class, and make it again by \
               that name. [Its parameters](../spec.md#9-objectbucketclaims) stand in the contract.",
        then: "By itself, once the class is there.",
    },
    Told {
        reason: "NameTaken",
        phase: "`Pending`, or `Failed` where that is an ObjectBucket, or a BucketClaim of this claim that asks for \
                another bucket",
        means: "A ConfigMap, a BucketClaim, a BucketAccess or an ObjectBucket has the name that this claim's is to \
                have.",
        todo: "The message says which. Delete the other object if it is nobody's, or make the claim by another name.",
        then: "Once the other is gone, within `--resync-interval`.",
    },
    Told {
        reason: "ObjectBucketDamaged",
        phase: "`Failed`",
        means: "What was decided for this claim once stands in its ObjectBucket, and can't be read there any more.",
        todo: "Restore the ObjectBucket from a backup. It can also be deleted, with its finalizer taken off: it is \
               made again by what the BucketClaim or BucketAccess says, and the bucket is kept for good then. Where \
               the message says that the BucketAccess names no bucket, delete that one.",
        then: "At once after that.",
    },
    Told {
        reason: "ObjectBucketRemade",
        phase: "as before",
        means: "Its ObjectBucket was deleted by hand and is made again.",
        todo: "Nothing. It says `Retain` from now on, so the bucket stays when the claim goes.",
        then: "It goes on already.",
    },
    Told {
        reason: "Refused",
        phase: "`Failed`",
        means: "The API server refuses the step that the message names.",
        todo: "Look for the right, the quota, the policy or the webhook that refuses it.",
        then: "When something changes, and every `--resync-interval`.",
    },
    Told {
        reason: "SpecChanged",
        phase: "`Bound`",
        means: "`bucketName` or `storageClassName` was edited, which changes nothing.",
        todo: "Put the field back. For another bucket, or another class, make another claim.",
        then: "The bucket can be used all the time.",
    },
    Told {
        reason: "StorageClassMissing",
        phase: "`Pending`",
        means: "The storage class was deleted before anything was decided for this claim.",
        todo: "Make a class of that name again, or delete the claim.",
        then: "By itself, once the class is there.",
    },
    Told {
        reason: "UnsupportedConfig",
        phase: "`Failed`",
        means: "`additionalConfig` has a key that isn't served; with a class that has `bucketName` that is any key.",
        todo: "Take the key out that the message names. Of Rook's these are `maxObjects`, `bucketPolicy`, \
               `bucketLifecycle` and `bucketOwner`.",
        then: "At once after the edit. What is made already goes on to work meanwhile.",
    },
];
