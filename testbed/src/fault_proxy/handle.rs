//! The controls of the proxy that an operator goes through: of one in this process, or over the API
//! server of one in a pod, by its admin API.

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

/// Between two looks at the calls, which are announced to nobody: where they are read, and where
/// they are asked for.
const LOOK_HERE: Duration = Duration::from_millis(5);
const LOOK_THERE: Duration = Duration::from_millis(50);
/// The number of the first operator's life.
pub const FIRST_LIFE: u32 = 1;

/// A proxy.
pub enum Handle {
    Here(Proxy),
    There(Remote),
}

/// A proxy in a pod.
#[derive(Clone)]
pub struct Remote {
    client: Client,
    /// Where the API server passes requests on to its admin API.
    path: String,
    /// The first calls, of which nothing changes any more.
    settled: Rc<RefCell<Vec<Line>>>,
}

/// What the admin API tells of effects.
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
    /// Calls count from one, in the operator's first life, and meet what this plan has for them.
    pub async fn begin(&self, plan: &Plan) -> Result<()> {
        match self {
            Self::Here(proxy) => Ok(proxy.begin(plan.clone())?),
            Self::There(remote) => remote.begin(plan).await,
        }
    }

    /// From now on this is the plan: patterns count from one, numbers go on.
    pub async fn set_plan(&self, plan: &Plan) -> Result<()> {
        match self {
            Self::Here(proxy) => Ok(proxy.set_plan(plan.clone())?),
            Self::There(remote) => remote.tell(Method::PUT, "plan", plan).await,
        }
    }

    /// An operator is about to start, and what ran before is dead; gives the number of its life.
    pub async fn next_life(&self) -> Result<u32> {
        match self {
            Self::Here(proxy) => Ok(proxy.next_life()),
            Self::There(remote) => remote.ask::<Life>(Method::POST, "life").await.map(|told| told.life),
        }
    }

    /// Comes to an end when the operator's life does.
    pub async fn crash(&self) -> Result<Crash> {
        match self {
            Self::Here(proxy) => Ok(proxy.crash().await),
            Self::There(remote) => remote.crash().await,
        }
    }

    /// All calls since the beginning.
    pub async fn calls(&self) -> Result<Vec<Line>> {
        match self {
            Self::Here(proxy) => Ok(proxy.effects().trace().lines().to_vec()),
            Self::There(remote) => remote.calls().await,
        }
    }

    /// What of the plan has met no call yet.
    pub async fn unfired(&self) -> Result<Plan> {
        match self {
            Self::Here(proxy) => Ok(proxy.effects().unfired()),
            Self::There(remote) => {
                let told: Effects = remote.ask(Method::GET, &format!("effects/after/{}", u64::MAX)).await?;
                told.unfired.parse().context("the proxy tells of a plan that is none")
            }
        }
    }

    /// How long to wait before the calls are looked at again.
    pub fn look(&self) -> Duration {
        match self {
            Self::Here(_) => LOOK_HERE,
            Self::There(_) => LOOK_THERE,
        }
    }
}

impl Remote {
    /// The proxy behind this port of a Service.
    pub fn new(client: Client, namespace: &str, service: &str, port: &str) -> Self {
        let path = format!("/api/v1/namespaces/{namespace}/services/{service}:{port}/proxy");
        Self { client, path, settled: Rc::default() }
    }

    /// The operator's process was killed, and others may start it again: none of its calls passes
    /// any more.
    pub async fn end_life(&self) -> Result<()> {
        self.request(Method::DELETE, "life", Vec::new()).await.map(|_| ())
    }

    async fn begin(&self, plan: &Plan) -> Result<()> {
        self.settled.borrow_mut().clear();
        self.tell(Method::POST, "begin", plan).await
    }

    async fn crash(&self) -> Result<Crash> {
        loop {
            // It is answered after a while in any case, and then with nothing.
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
