//! Limits how many passes run at once, not counting those that wait for a store.
//!
//! A call to a store may take half a minute, and hundreds of claims may wait for one store. They
//! must not block claims on other stores. So kube's controllers run without a concurrency limit
//! (they still never run two passes over one object at once), and a pass gives up its slot while it
//! waits for a store. The number of waiting passes is bounded by the number of objects, the number
//! of calls by each store's own limit.
//!
//! A pass that returns from a store goes ahead of those that have not begun. Otherwise each of its
//! calls would cost a wait behind all of them, and all claims would finish late.

use futures::future::{BoxFuture, Shared};

use crate::turns::{Rank, Share, Turn, Turns};

/// The slots of one controller.
pub(super) struct Slots {
    turns: Turns,
    shutdown: Shared<BoxFuture<'static, ()>>,
}

/// A slot, freed on drop.
pub(super) struct Slot<'a> {
    turns: &'a Turns,
    turn: Option<Turn<'a>>,
    place: u64,
}

impl Slots {
    /// Creates `count` slots, handed out round-robin by namespace until `shutdown`.
    pub(super) fn new(count: u16, shutdown: Shared<BoxFuture<'static, ()>>) -> Self {
        Self { turns: Turns::new(usize::from(count), 0), shutdown }
    }

    /// Waits for a slot, for an object of this namespace. Returns `None` after shutdown: no pass
    /// begins then.
    pub(super) async fn take(&self, namespace: &str) -> Option<Slot<'_>> {
        let rank = Rank::New { namespace: namespace.to_owned(), place: 0 };
        tokio::select! {
            biased;
            () = self.shutdown.clone() => None,
            turn = self.turns.take(Share::Single, rank) => {
                Some(Slot { turns: &self.turns, place: turn.number(), turn: Some(turn) })
            }
        }
    }
}

impl Slot<'_> {
    /// Returns the pass's number in the order in which passes began.
    pub(super) fn place(&self) -> u64 {
        self.place
    }

    /// Runs a future without the slot, then waits for a slot again, ahead of passes that began
    /// later.
    pub(super) async fn aside<T>(&mut self, wait: impl Future<Output = T>) -> T {
        self.turn = None;
        let output = wait.await;
        self.turn = Some(self.turns.take(Share::Single, Rank::Begun(self.place)).await);
        output
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use futures::future::{pending, ready};

    use super::*;

    fn slots(shutdown: impl Future<Output = ()> + Send + 'static) -> Slots {
        Slots::new(1, shutdown.boxed().shared())
    }

    #[tokio::test]
    async fn who_waits_aside_keeps_nobody_from_working() {
        let slots = slots(pending());
        let mut waiting = slots.take("team-a").await.expect("there is one");
        assert!(slots.take("team-a").now_or_never().is_none(), "there is but one");
        let mut aside = Box::pin(waiting.aside(pending::<()>()));
        assert!(aside.as_mut().now_or_never().is_none());
        assert!(slots.take("team-a").now_or_never().flatten().is_some());
    }

    #[tokio::test]
    async fn who_comes_back_waits_for_a_slot_again() {
        let slots = slots(pending());
        let mut one = slots.take("team-a").await.expect("there is one");
        let (answer, answered) = tokio::sync::oneshot::channel::<()>();
        let mut aside = Box::pin(one.aside(answered));
        assert!(aside.as_mut().now_or_never().is_none());
        let other = slots.take("team-a").await.expect("it is free");
        answer.send(()).expect("somebody waits");
        assert!(aside.as_mut().now_or_never().is_none());
        drop(other);
        assert!(aside.now_or_never().is_some());
    }

    // covers: 3.6.begun
    #[tokio::test]
    async fn who_comes_back_goes_before_who_has_not_begun() {
        let slots = slots(pending());
        let mut first = slots.take("team-a").await.expect("there is one");
        let (answer, answered) = tokio::sync::oneshot::channel::<()>();
        let mut aside = Box::pin(first.aside(answered));
        assert!(aside.as_mut().now_or_never().is_none());
        let second = slots.take("team-a").await.expect("it is free");
        let mut third = Box::pin(slots.take("team-b"));
        assert!(third.as_mut().now_or_never().is_none());
        answer.send(()).expect("somebody waits");
        assert!(aside.as_mut().now_or_never().is_none());
        drop(second);
        assert!(third.as_mut().now_or_never().is_none(), "it came earlier, and has not begun");
        assert!(aside.now_or_never().is_some());
        drop(first);
        assert!(third.now_or_never().flatten().is_some());
    }

    #[tokio::test]
    async fn nobody_begins_after_the_end() {
        assert!(slots(ready(())).take("team-a").await.is_none());
    }
}
