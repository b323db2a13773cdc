//! A simulator begun again: empty, or from a snapshot.

use super::data::{Data, Portable, Reading, SERVED};
use super::simulator::Simulator;
use super::stores;
use crate::world::{self, ADMIN_ACCESS_KEY, ADMIN_SECRET_KEY, Document, OPERATOR_NAMESPACE, apply, parse};

/// What a simulator begins with.
#[derive(Debug)]
pub(super) struct Beginning {
    /// What it brings itself: once.
    own: Vec<Document>,
    /// What it is given: whenever it starts.
    given: Vec<Document>,
}

impl Beginning {
    /// With these manifests. Without an S3Backend among them there is one for the store that is
    /// served, at this URL.
    ///
    /// # Errors
    /// In one sentence.
    pub(super) fn new(given: Vec<Document>, store: &str) -> Result<Self, String> {
        let namespace = format!("{{apiVersion: v1, kind: Namespace, metadata: {{name: {OPERATOR_NAMESPACE}}}}}");
        let mut own = parse("namespace", &namespace).map_err(|error| error.to_string())?;
        if !given.iter().any(|it| it.object.types.as_ref().is_some_and(|types| types.kind == "S3Backend")) {
            own.extend(backend(store)?);
        }
        Ok(Self { own, given })
    }

    /// Applies it; what it brings itself only `at_first`.
    ///
    /// # Errors
    /// In one sentence, for what is refused.
    pub(super) async fn bring(&self, simulator: &Simulator, at_first: bool) -> Result<(), String> {
        let client = simulator.cluster().client("default");
        let own = self.own.iter().filter(|_| at_first);
        for document in own.chain(&self.given) {
            apply(&client, document).await.map_err(|error| error.to_string())?;
        }
        simulator.data().iter().for_each(|data| data.keep_furnished());
        Ok(())
    }
}

/// The backend for the store that is served.
fn backend(endpoint: &str) -> Result<Vec<Document>, String> {
    let text = include_str!("backend.yaml")
        .replace("STORE_ENDPOINT", endpoint)
        .replace("STORE_ACCESS_KEY", ADMIN_ACCESS_KEY)
        .replace("STORE_SECRET_KEY", ADMIN_SECRET_KEY);
    parse("the first backend", &text).map_err(|error| error.to_string())
}

impl Simulator {
    /// Begins anew, as if it had just been started with nothing kept. The store that is served is
    /// at this host.
    ///
    /// # Errors
    /// In one sentence, for what of the beginning is refused.
    pub(super) async fn begin_anew(&self, beginning: &Beginning, host: &str) -> Result<(), String> {
        self.without_operator(async {
            let _together = self.data().map(Data::together);
            self.empty();
            self.serve_as(host);
            self.tell_anew();
            beginning.bring(self, true).await
        })
        .await
    }

    /// Everything, as a snapshot takes it along, while the operator rests.
    pub(super) async fn portable(&self) -> Portable {
        self.without_operator(async { Portable::new(&self.all(), self.data()) }).await
    }

    /// Goes on from a snapshot.
    ///
    /// # Errors
    /// In one sentence.
    pub(super) async fn go_on_from(&self, snapshot: Reading) -> Result<(), String> {
        self.without_operator(async {
            let _together = self.data().map(Data::together);
            self.become_another(&snapshot)
        })
        .await
    }

    /// Empties everything: cluster, stores, faults, and the clock shows the machine's time.
    fn empty(&self) {
        self.cluster().begin_anew();
        for definition in world::definitions() {
            self.cluster().serve(definition).expect("the project's own CRDs are valid");
        }
        self.front().iter().for_each(|front| front.reissue(Vec::new()));
        self.stores().all().iter().for_each(|(_, store)| store.clear());
        self.set_clock(0);
        self.calm();
    }

    /// Makes it what a snapshot says.
    ///
    /// # Errors
    /// In one sentence. Where the cluster can't be it, nothing is changed; where a store can't be,
    /// the rest is.
    fn become_another(&self, snapshot: &Reading) -> Result<(), String> {
        let version = snapshot.objects.iter().map(|kept| kept.version).max().unwrap_or(0);
        self.cluster().restore(snapshot.objects.iter().cloned(), version)?;
        for definition in world::definitions() {
            self.cluster().serve(definition).expect("the project's own CRDs are valid");
        }
        self.front().iter().for_each(|front| front.reissue(snapshot.tokens.clone()));
        self.set_clock(snapshot.ahead);
        self.calm();
        self.stores().all().iter().for_each(|(_, store)| store.clear());
        snapshot.hosts.iter().for_each(|host| self.serve_as(host));
        let mut outcome = Ok(());
        for (name, brought) in &snapshot.stores {
            let store = match self.stores().get(name) {
                _ if name == SERVED => self.store().clone(),
                Some(store) => store,
                None => {
                    let store = self.new_stores().store(name, &brought.region);
                    self.stores().add(name.clone(), store.clone());
                    store
                }
            };
            outcome = outcome.and(snapshot.fill(&store, brought));
        }
        stores::bring(self.cluster(), self.stores(), self.new_stores());
        self.data().iter().for_each(|data| data.keep_furnished());
        self.tell_anew();
        outcome
    }
}
