//! Replacement of a simulator's whole state: by the initial one, or by a snapshot.

use std::collections::{BTreeMap, BTreeSet};

use s3_sim::{Contents, Store};
use stowage_world::deeds::Began;
use stowage_world::{ADMIN_ACCESS_KEY, ADMIN_SECRET_KEY, Document, OPERATOR_NAMESPACE, parse};

use super::data::{Data, Portable, Reading, SERVED};
use super::kinds::{Kinds, is_a};
use super::manifests;
use super::simulator::{Simulator, warn_of};
use super::stores;

/// The initial content of a simulator.
pub(super) struct Beginning {
    /// The simulator's own objects, applied once.
    own: Vec<Document>,
    /// The user's manifests, applied at each start.
    given: Vec<Document>,
    /// The token to apply them with.
    token: String,
}

impl Beginning {
    /// Collects these manifests and those that the kinds need. Without an S3Backend among them,
    /// adds one for the served store at this URL. They are applied with this token.
    ///
    /// # Errors
    /// Returns an error message if a manifest of the simulator can't be parsed.
    pub(super) fn new(mut given: Vec<Document>, store: &str, kinds: Kinds, token: &str) -> Result<Self, String> {
        let namespace = format!("{{apiVersion: v1, kind: Namespace, metadata: {{name: {OPERATOR_NAMESPACE}}}}}");
        let mut own = parse("namespace", &namespace).map_err(|error| error.to_string())?;
        if !given.iter().any(|it| is_a(it, "S3Backend")) {
            own.extend(backend(store)?);
        }
        given.extend(kinds.class(&given)?);
        Ok(Self { own, given, token: token.to_owned() })
    }

    /// Applies the manifests; the simulator's own ones only `at_first`.
    ///
    /// # Errors
    /// Returns an error message about a manifest that is refused.
    pub(super) async fn bring(&self, simulator: &Simulator, at_first: bool) -> Result<(), String> {
        let front = simulator.front().ok_or("nothing is served yet")?;
        let client = manifests::client(front, simulator.recorder(), &self.token)?;
        let own = self.own.iter().filter(|_| at_first);
        for document in own.chain(&self.given) {
            manifests::apply(&client, document).await.map_err(|error| error.to_string())?;
        }
        simulator.data().iter().for_each(|data| data.keep_furnished());
        Ok(())
    }
}

/// Returns the backend for the served store.
fn backend(endpoint: &str) -> Result<Vec<Document>, String> {
    let text = include_str!("backend.yaml")
        .replace("STORE_ENDPOINT", endpoint)
        .replace("STORE_ACCESS_KEY", ADMIN_ACCESS_KEY)
        .replace("STORE_SECRET_KEY", ADMIN_SECRET_KEY);
    parse("the first backend", &text).map_err(|error| error.to_string())
}

impl Simulator {
    /// Resets to the initial state, as after a first start without data. The served store is at
    /// this host.
    ///
    /// # Errors
    /// Returns an error message about an initial manifest that is refused.
    pub(super) async fn begin_anew(&self, beginning: &Beginning, host: &str) -> Result<(), String> {
        self.without_operator(async {
            let _together = self.data().map(Data::together);
            self.empty();
            self.recorder().begin(Began::Empty, self.last_call());
            self.serve_as(host);
            self.tell_anew();
            beginning.bring(self, true).await
        })
        .await
    }

    /// Returns the whole state for a snapshot. The operator is stopped meanwhile.
    pub(super) async fn portable(&self) -> Portable {
        self.without_operator(async { Portable::new(&self.all(), self.data()) }).await
    }

    /// Replaces the state by that of a snapshot.
    ///
    /// # Errors
    /// Returns an error message if the snapshot is invalid. The state is unchanged then.
    pub(super) async fn go_on_from(&self, mut snapshot: Reading) -> Result<(), String> {
        self.without_operator(async {
            let _together = self.data().map(Data::together);
            self.become_another(&mut snapshot)?;
            self.recorder().begin(Began::FromSnapshot, self.last_call());
            Ok(())
        })
        .await
    }

    /// Removes all state: cluster, stores and faults. The clock shows the machine's time again.
    fn empty(&self) {
        self.cluster().begin_anew();
        self.kinds().serve(self.cluster());
        self.front().iter().for_each(|front| front.reissue(Vec::new()));
        self.stores().all().iter().for_each(|(_, store)| store.clear());
        self.set_clock(0);
        self.calm();
    }

    /// Replaces the state by that of a snapshot, while the operator is stopped.
    ///
    /// # Errors
    /// Returns an error message if the snapshot is invalid. The state is unchanged then.
    fn become_another(&self, snapshot: &mut Reading) -> Result<(), String> {
        let still = self.new_stores().still();
        let (stores, taken) = self.read_stores(snapshot)?;
        let version = snapshot.objects.iter().map(|kept| kept.version).max().unwrap_or(0);
        let left_out = self.cluster().restore(snapshot.objects.iter().cloned(), version)?;
        warn_of(&left_out);
        // No step from here on can fail.
        self.kinds().serve(self.cluster());
        self.front().iter().for_each(|front| front.reissue(snapshot.tokens.clone()));
        self.move_clock(snapshot.ahead);
        self.calm();
        self.stores().all().iter().for_each(|(_, store)| store.clear());
        snapshot.hosts.iter().for_each(|host| self.serve_as(host));
        for Brings { name, store, is_new, contents } in stores {
            if is_new {
                self.new_stores().keep(&name, &store);
                self.stores().add(name, store.clone());
            }
            store.replace(contents);
        }
        snapshot.hand_over(&taken);
        drop(still);
        stores::bring(self.cluster(), self.stores(), self.new_stores());
        self.data().iter().for_each(|data| data.keep_furnished());
        self.tell_anew();
        Ok(())
    }

    /// Returns the contents of the snapshot's stores, and the blobs that they use.
    fn read_stores(&self, snapshot: &Reading) -> Result<(Vec<Brings>, BTreeSet<u64>), String> {
        let hosts = self.hosts();
        let mut by_name: BTreeMap<&str, (&str, Vec<&[u8]>)> = BTreeMap::new();
        for (name, brought) in &snapshot.stores {
            // A host of the snapshot may lead to the served store here.
            let name = if hosts.contains(name) { SERVED } else { name.as_str() };
            let (_, documents) = by_name.entry(name).or_insert((brought.region.as_str(), Vec::new()));
            documents.extend(brought.documents.iter().map(Vec::as_slice));
        }
        let (mut stores, mut taken) = (Vec::new(), BTreeSet::new());
        for (name, (region, documents)) in by_name {
            let there = if name == SERVED { Some(self.store().clone()) } else { self.stores().get(name) };
            let is_new = there.is_none();
            let store = there.unwrap_or_else(|| self.new_stores().store(name, region));
            let contents = snapshot.read(&store, documents)?;
            if !contents.blobs().into_iter().all(|blob| taken.insert(blob)) {
                return Err("two stores of it share the bytes of an object".to_owned());
            }
            stores.push(Brings { name: name.to_owned(), store, is_new, contents });
        }
        Ok((stores, taken))
    }
}

/// The new content of a store.
struct Brings {
    name: String,
    store: Store,
    /// True if the store doesn't exist yet.
    is_new: bool,
    contents: Contents,
}
