//! Lists a kind and delivers the objects like a watch.

use kube::api::{ListParams, ObjectList};
use kube::runtime::watcher::Event;

use crate::kubernetes::describe;

/// Page size of a list.
const PAGE: u32 = 100;

/// Maximum number of times that an expired list is begun.
const MOST_LISTS: u8 = 3;

/// Lists in pages. A list whose continue token expires is begun again.
///
/// # Errors
/// An error message about what can't be listed, and why.
pub(super) async fn list<K: Clone>(
    what: &str,
    labels: &str,
    ask: impl AsyncFn(ListParams) -> kube::Result<ObjectList<K>>,
    take: impl FnMut(Event<K>),
) -> Result<(), String> {
    listed(labels, ask, take).await.map_err(|error| format!("can't list {what}: {}", describe(&error)))
}

/// Like [`list`], for a kind that the cluster may not have. Returns true if it has it.
///
/// # Errors
/// An error message about what can't be listed, and why.
pub(super) async fn list_if_known<K: Clone>(
    what: &str,
    labels: &str,
    ask: impl AsyncFn(ListParams) -> kube::Result<ObjectList<K>>,
    take: impl FnMut(Event<K>),
) -> Result<bool, String> {
    match listed(labels, ask, take).await {
        Ok(()) => Ok(true),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(false),
        Err(error) => Err(format!("can't list {what}: {}", describe(&error))),
    }
}

async fn listed<K: Clone>(
    labels: &str,
    ask: impl AsyncFn(ListParams) -> kube::Result<ObjectList<K>>,
    mut take: impl FnMut(Event<K>),
) -> kube::Result<()> {
    let first = ListParams::default().limit(PAGE).labels(labels);
    let (mut begun, mut params) = (1, first.clone());
    take(Event::Init);
    loop {
        let page: ObjectList<K> = match ask(params.clone()).await {
            Ok(page) => page,
            Err(kube::Error::Api(status)) if status.code == 410 && begun < MOST_LISTS => {
                begun += 1;
                params = first.clone();
                take(Event::Init);
                continue;
            }
            Err(error) => return Err(error),
        };
        page.items.into_iter().for_each(|object| take(Event::InitApply(object)));
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => break,
        }
    }
    take(Event::InitDone);
    Ok(())
}
