//! The simulated and the real API server as one `Pair`.

use std::time::Duration;

use kube::Client;
use kube_sim::Cluster;
use serde_json::{Value, json};

use super::super::difference::AnswerPair;
use super::super::rule::System;
use super::super::run::Pair;
use super::call::{Call, Kind, MERGE, Operation, Page, Scope, Verb};
use super::generate;
use super::settle::{IMPATIENCE, PATIENCE, run_controllers, settle};
use super::side::Side;
use super::watch::watch;

/// Time that must be left in a second to start an operation on both sides. Few operations take a
/// tenth of it.
const ALL_BUT_OVER: Duration = Duration::from_millis(150);

/// A simulated cluster, and a client of a real one with the same definitions.
pub struct KubernetesPair {
    cluster: Cluster,
    clients: [Client; 2],
    sides: Option<[Side; 2]>,
    /// Namespace of all sequences. One namespace per sequence would keep the real namespace
    /// controller busy.
    namespace: Option<String>,
    /// Prefix for the names of cluster-scoped objects of the sequence.
    place: String,
    /// Time limit for the real controllers.
    patience: Duration,
}

impl KubernetesPair {
    /// Compares this simulated cluster with the cluster that the client connects to.
    pub fn new(cluster: Cluster, real: Client) -> Self {
        let clients = [cluster.client("default"), real];
        Self { cluster, clients, sides: None, namespace: None, place: String::new(), patience: PATIENCE }
    }
}

impl std::fmt::Debug for KubernetesPair {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KubernetesPair").field("place", &self.place).finish_non_exhaustive()
    }
}

impl Pair for KubernetesPair {
    type Operation = Operation;

    fn system(&self) -> System {
        System::Kubernetes
    }

    fn sequence(seed: u64, number: u64) -> Vec<Operation> {
        generate::sequence(seed, number)
    }

    async fn open(&mut self, place: &str) -> Result<(), String> {
        place.clone_into(&mut self.place);
        let namespace = self.namespace.clone().unwrap_or_else(|| place.to_owned());
        let mut sides = self.clients.clone().map(|client| Side::new(client, &namespace, place));
        if self.namespace.is_none() {
            for side in &mut sides {
                let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
                let answer = side.send(&Call::new(Verb::Post, Kind::Namespace, None).body(object)).await?;
                if answer.code != 201 {
                    return Err(format!("can't make namespace {namespace}: {}", answer.body["message"]));
                }
            }
            self.namespace = Some(namespace);
        }
        self.sides = Some(sides);
        Ok(())
    }

    async fn step(&mut self, operation: &Operation) -> Result<AnswerPair, String> {
        same_second().await;
        let [simulated, real] = self.sides.as_mut().ok_or("no sequence is open")?;
        let (simulated, real) = match operation {
            Operation::Call(call) => (simulated.call(call).await?, real.call(call).await?),
            Operation::Watch(one) => (watch(simulated, one).await?, watch(real, one).await?),
            Operation::Pages(page) => (pages(simulated, page).await?, pages(real, page).await?),
            Operation::Settle => {
                let (wanted, found) = settle(&self.cluster, simulated, real, self.patience).await?;
                if wanted != found {
                    self.patience = IMPATIENCE;
                }
                (wanted, found)
            }
        };
        Ok(AnswerPair { simulated, real })
    }

    async fn close(&mut self) -> Result<(), String> {
        for side in self.sides.take().iter_mut().flatten() {
            clear(side, &self.place).await?;
        }
        run_controllers(&self.cluster);
        Ok(())
    }

    async fn finish(&mut self) -> Result<(), String> {
        let Some(namespace) = self.namespace.take() else { return Ok(()) };
        for client in self.clients.clone() {
            let delete = Call::new(Verb::Delete, Kind::Namespace, Some(&namespace));
            Side::new(client, &namespace, "").send(&delete).await?;
        }
        Ok(())
    }
}

/// Waits for the next second if this one is almost over. A write that only renews a time is a
/// change only if the second differs, so both sides must see the same second.
async fn same_second() {
    let into = Duration::from_nanos(jiff::Timestamp::now().subsec_nanosecond().unsigned_abs().into());
    if into > Duration::from_secs(1) - ALL_BUT_OVER {
        tokio::time::sleep(Duration::from_secs(1) - into).await;
    }
}

/// Requests pages of a list, each with the continue token of the page before.
async fn pages(side: &mut Side, page: &Page) -> Result<Value, String> {
    let mut all = Vec::new();
    let mut call = page.first.clone();
    for _ in 0..page.pages {
        let answer = side.send(&call).await?;
        let more = answer.body["metadata"]["continue"].as_str().is_some_and(|token| !token.is_empty());
        all.push(side.comparable(&answer));
        if !more {
            break;
        }
        call = page.first.clone().query("continue", "$(continue)");
    }
    Ok(all.into())
}

/// Deletes every object of the sequence: everything in its namespaces, and cluster-scoped objects
/// with its name prefix.
async fn clear(side: &mut Side, place: &str) -> Result<(), String> {
    let namespace = side.text("$(namespace)");
    for kind in Kind::ALL {
        let list = Call { scope: Scope::Everywhere, ..Call::new(Verb::Get, kind, None) };
        let found = side.send(&list).await?;
        for object in found.body["items"].as_array().into_iter().flatten() {
            let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
            let inside = text("namespace") == namespace || text("namespace").starts_with(place);
            let called = !kind.is_namespaced() && text("name").starts_with(place) && text("name") != namespace;
            if !inside && !called {
                continue;
            }
            let scope = Scope::Namespace(text("namespace").to_owned());
            let on = |verb: Verb| Call { scope: scope.clone(), ..Call::new(verb, kind, Some(text("name"))) };
            if !object["metadata"]["finalizers"].is_null() {
                side.send(&on(MERGE).body(json!({"metadata": {"finalizers": null}}))).await?;
            }
            side.send(&on(Verb::Delete)).await?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::super::run::{ConformanceReport, Limits, Start, run};
    use super::*;
    use crate::conformance::kubernetes::simulated;

    fn limits(start: Start, operations: u64) -> Limits {
        let (prefix, command) = ("c".to_owned(), "stowage-proof conformance".to_owned());
        Limits { seed: 1, operations, time: None, shrink: true, start, prefix, command }
    }

    /// Compares the simulator with itself. The controllers of the second one run on their own, like
    /// those of a cluster.
    async fn against_itself(change: impl Fn(&Cluster), limits: &Limits) -> ConformanceReport {
        let real = simulated();
        change(&real);
        let mut pair = KubernetesPair::new(simulated(), real.client("default"));
        let controllers = async {
            loop {
                run_controllers(&real);
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::select! {
            report = run(&mut pair, limits, |_| {}) => report.expect("both sides answer"),
            () = controllers => unreachable!("controllers never end"),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_simulator_agrees_with_itself() {
        let table = super::super::table::len() as u64;
        for number in [0, 4, table, table + 1, table + 2, table + 3, table + 4, table + 5, table + 6, table + 7] {
            let report = against_itself(|_| {}, &limits(Start::Only(number), 1)).await;
            assert_eq!(report.differences, [], "sequence {number}");
            assert!(report.operations > 0);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_with_another_rule_is_found_out() {
        let loosen = |cluster: &Cluster| {
            for mut definition in stowage_operator::api::crds() {
                let mut schema = serde_json::to_value(&definition.spec).expect("a definition is JSON");
                let rules = &mut schema["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
                rules["x-kubernetes-validations"] = Value::Null;
                definition.spec = serde_json::from_value(schema).expect("it is a definition still");
                cluster.install_crd(&definition).expect("the definition is accepted");
            }
        };
        let report = against_itself(loosen, &limits(Start::From(0), 900)).await;
        assert!(report.unexplained > 0);
        let found = report.differences.first().expect("the first differences are told");
        assert!(found.leaves.iter().any(|leaf| leaf.path == "code"), "{found}");
        assert!(found.replay.ends_with(&format!("--seed 1 --sequence {}", found.sequence)));
    }
}
