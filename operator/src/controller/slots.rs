//! How many passes work at once, not counting those that wait for a store.
//!
//! A store may take half a minute for each call, and hundreds of claims may wait for it: what they
//! wait in must not be what the claims on other stores need. So kube's controllers run without a
//! bound of their own (they never run two passes over one object at once all the same), and a pass
//! holds a slot but while it waits for a store. How many wait is bounded by the objects, how many
//! call by each store's own limit.

use futures::future::{BoxFuture, Shared};
use tokio::sync::{Semaphore, SemaphorePermit};

/// The slots of one controller.
pub(super) struct Slots {
    free: Semaphore,
    shutdown: Shared<BoxFuture<'static, ()>>,
}

/// A slot, held until it is dropped.
pub(super) struct Slot<'a> {
    free: &'a Semaphore,
    permit: Option<SemaphorePermit<'a>>,
}

impl Slots {
    /// So many, handed out in the order of asking until `shutdown`.
    pub(super) fn new(count: u16, shutdown: Shared<BoxFuture<'static, ()>>) -> Self {
        Self { free: Semaphore::new(usize::from(count)), shutdown }
    }

    /// Waits for a slot. `None` once told to stop: a pass that has not begun does not begin any
    /// more.
    pub(super) async fn take(&self) -> Option<Slot<'_>> {
        let mut slot = Slot { free: &self.free, permit: None };
        tokio::select! {
            biased;
            () = self.shutdown.clone() => None,
            () = slot.acquire() => Some(slot),
        }
    }
}

impl Slot<'_> {
    /// Waits for something without the slot, then for a slot.
    pub(super) async fn aside<T>(&mut self, wait: impl Future<Output = T>) -> T {
        self.permit = None;
        let output = wait.await;
        self.acquire().await;
        output
    }

    /// The semaphore is never closed, so a permit is always had.
    async fn acquire(&mut self) {
        self.permit = self.free.acquire().await.ok();
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
        let mut waiting = slots.take().await.expect("there is one");
        assert!(slots.take().now_or_never().is_none(), "there is but one");
        let mut aside = Box::pin(waiting.aside(pending::<()>()));
        assert!(aside.as_mut().now_or_never().is_none());
        assert!(slots.take().now_or_never().flatten().is_some());
    }

    #[tokio::test]
    async fn who_comes_back_waits_for_a_slot_again() {
        let slots = slots(pending());
        let mut one = slots.take().await.expect("there is one");
        let (answer, answered) = tokio::sync::oneshot::channel::<()>();
        let mut aside = Box::pin(one.aside(answered));
        assert!(aside.as_mut().now_or_never().is_none());
        let other = slots.take().await.expect("it is free");
        answer.send(()).expect("somebody waits");
        assert!(aside.as_mut().now_or_never().is_none());
        drop(other);
        assert!(aside.now_or_never().is_some());
    }

    #[tokio::test]
    async fn nobody_begins_after_the_end() {
        assert!(slots(ready(())).take().await.is_none());
    }
}
