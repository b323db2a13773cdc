//! How many passes work at once, not counting those that wait for a store.
//!
//! A store may take half a minute for each call, and hundreds of claims may wait for it: what they
//! wait in must not be what the claims on other stores need. So kube's controllers run without a
//! bound of their own (they never run two passes over one object at once all the same), and a pass
//! holds a slot but while it waits for a store. How many wait is bounded by the objects, how many
//! call by each store's own limit.
//!
//! A pass that comes back from a store goes before those that have not begun. Otherwise each of its
//! calls would cost a wait behind all of them, and of many claims all would be done late.

use futures::future::{BoxFuture, Shared};

use crate::turns::{Rank, Share, Turn, Turns};

/// The slots of one controller.
pub(super) struct Slots {
    turns: Turns,
    shutdown: Shared<BoxFuture<'static, ()>>,
}

/// A slot, held until it is dropped.
pub(super) struct Slot<'a> {
    turns: &'a Turns,
    turn: Option<Turn<'a>>,
    place: u64,
}

impl Slots {
    /// So many, handed out namespace by namespace until `shutdown`.
    pub(super) fn new(count: u16, shutdown: Shared<BoxFuture<'static, ()>>) -> Self {
        Self { turns: Turns::new(usize::from(count), 0), shutdown }
    }

    /// Waits for a slot, for an object of this namespace. `None` once told to stop: a pass that has
    /// not begun does not begin any more.
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
    /// Where its pass stands among all that have begun: those before it have lower ones.
    pub(super) fn place(&self) -> u64 {
        self.place
    }

    /// Waits for something without the slot, then for a slot, ahead of who began later.
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
