//! The controls of the operator's fault proxy: of one in this process, or of one in a pod by its
//! admin API, through the API server's service proxy.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use http::{Method, Request};
use kube::Client;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use stowage_world::effects::{CallOutcome, Line, Plan};
use stowage_world::serve::proxy::{Crash, EffectLine, Proxy};

/// Intervals at which the list of calls is polled: in this process, and by the admin API.
const LOOK_HERE: Duration = Duration::from_millis(5);
const LOOK_THERE: Duration = Duration::from_millis(50);
/// Number of the first operator's life.
pub const FIRST_LIFE: u32 = 1;

/// A fault proxy.
pub enum Handle {
    Here(Proxy),
    There(Remote),
}

/// A fault proxy in a pod.
#[derive(Clone)]
pub struct Remote {
    client: Client,
    /// Path of its admin API in the API server's service proxy.
    path: String,
    /// The first calls, up to the last one that can't change any more.
    settled: Rc<RefCell<Vec<Line>>>,
}

/// The admin API's report of effects.
#[derive(Deserialize)]
struct Effects {
    effects: Vec<EffectLine>,
    unfired: String,
}

#[derive(Deserialize)]
struct Life {
    life: u32,
}

impl Handle {
    /// Starts a new plan. Calls count from one, in the operator's first life.
    pub async fn begin(&self, plan: &Plan) -> Result<()> {
        match self {
            Self::Here(proxy) => Ok(proxy.begin(plan.clone())?),
            Self::There(remote) => remote.begin(plan).await,
        }
    }

    /// Replaces the plan. Patterns count from one again; call numbers continue.
    pub async fn set_plan(&self, plan: &Plan) -> Result<()> {
        match self {
            Self::Here(proxy) => Ok(proxy.set_plan(plan.clone())?),
            Self::There(remote) => remote.tell(Method::PUT, "plan", plan).await,
        }
    }

    /// Begins the next operator's life, once the previous operator is dead. Returns its number.
    pub async fn next_life(&self) -> Result<u32> {
        match self {
            Self::Here(proxy) => Ok(proxy.next_life()),
            Self::There(remote) => remote.ask::<Life>(Method::POST, "life").await.map(|told| told.life),
        }
    }

    /// Completes when the operator's life ends.
    pub async fn crash(&self) -> Result<Crash> {
        match self {
            Self::Here(proxy) => Ok(proxy.crash().await),
            Self::There(remote) => remote.crash().await,
        }
    }

    /// Returns all calls since the plan was started by [`begin`](Self::begin).
    pub async fn calls(&self) -> Result<Vec<Line>> {
        match self {
            Self::Here(proxy) => Ok(proxy.effects().trace().lines().to_vec()),
            Self::There(remote) => remote.calls().await,
        }
    }

    /// Returns the part of the plan that has met no call yet.
    pub async fn unfired(&self) -> Result<Plan> {
        match self {
            Self::Here(proxy) => Ok(proxy.effects().unfired()),
            Self::There(remote) => {
                let told: Effects = remote.ask(Method::GET, &format!("effects/after/{}", u64::MAX)).await?;
                told.unfired.parse().context("the proxy tells of a plan that is none")
            }
        }
    }

    /// Returns the polling interval.
    pub fn look(&self) -> Duration {
        match self {
            Self::Here(_) => LOOK_HERE,
            Self::There(_) => LOOK_THERE,
        }
    }
}

impl Remote {
    /// Creates a handle for the proxy behind this port of a Service.
    pub fn new(client: Client, namespace: &str, service: &str, port: &str) -> Self {
        let path = format!("/api/v1/namespaces/{namespace}/services/{service}:{port}/proxy");
        Self { client, path, settled: Rc::default() }
    }

    /// Ends the life of an operator that was killed: the proxy lets none of its calls pass any
    /// more, even if the kubelet restarts it.
    pub async fn end_life(&self) -> Result<()> {
        self.request(Method::DELETE, "life", Vec::new()).await.map(|_| ())
    }

    async fn begin(&self, plan: &Plan) -> Result<()> {
        self.settled.borrow_mut().clear();
        self.tell(Method::POST, "begin", plan).await
    }

    async fn crash(&self) -> Result<Crash> {
        loop {
            // A long poll: the answer is empty if nothing has happened before it ends.
            let told = self.request(Method::GET, "crash", Vec::new()).await?;
            if !told.is_empty() {
                return understood(&told);
            }
        }
    }

    async fn calls(&self) -> Result<Vec<Line>> {
        let known = self.settled.borrow().len();
        let told: Effects = self.ask(Method::GET, &format!("effects/after/{known}")).await?;
        let lines: Vec<Line> = told.effects.into_iter().map(Line::try_from).collect::<Result<_, _>>()?;
        let mut settled = self.settled.borrow_mut();
        let all = settled.iter().cloned().chain(lines.iter().cloned()).collect();
        settled.extend(lines.into_iter().take_while(|line| line.answer != CallOutcome::Pending));
        Ok(all)
    }

    async fn tell(&self, method: Method, what: &str, plan: &Plan) -> Result<()> {
        let body = json!({"plan": plan.to_string()}).to_string().into_bytes();
        self.request(method, what, body).await.map(|_| ())
    }

    async fn ask<T: DeserializeOwned>(&self, method: Method, what: &str) -> Result<T> {
        understood(&self.request(method, what, Vec::new()).await?)
    }

    async fn request(&self, method: Method, what: &str, body: Vec<u8>) -> Result<String> {
        let request = Request::builder().method(method).uri(format!("{}/{what}", self.path));
        let request = request.header("content-type", "application/json").body(body);
        let request = request.context("no request to the proxy")?;
        self.client.request_text(request).await.with_context(|| format!("the proxy's {what}"))
    }
}

fn understood<T: DeserializeOwned>(told: &str) -> Result<T> {
    serde_json::from_str(told).context("the proxy tells what is not understood")
}
