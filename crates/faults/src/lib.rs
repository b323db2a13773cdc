//! Fault injection for a controller under test: every call that it makes has a number and can be
//! given a fault.
//!
//! [`Effects`] is one run. It provides tower layers between a controller's clients and the services
//! behind them. Each call that passes is numbered, gets the fault that the [`Plan`] has for it, and
//! is recorded in the [`Trace`].
//!
//! ```
//! use faults::{Effects, Plan};
//! use http::{Request, Response};
//! use tower::{BoxError, Layer, ServiceExt, service_fn};
//!
//! # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
//! let plan: Plan = "kube:create configmaps@2 lost-answer".parse().expect("a plan");
//! let effects = Effects::new(plan);
//! let life = effects.instance();
//! let server = service_fn(|_: Request<()>| async {
//!     Ok::<_, BoxError>(Response::new(Vec::new()))
//! });
//! let client = effects.kube_layer(&life).layer(server);
//!
//! let create = || Request::post("/api/v1/namespaces/a/configmaps").body(()).expect("a request");
//! assert!(client.clone().oneshot(create()).await.is_ok());
//! assert!(client.clone().oneshot(create()).await.is_err(), "carried out, but the answer is lost");
//! assert_eq!(
//!     effects.trace().to_string(),
//!     "#1 kube:create configmaps a/ -> 200 0ms/1\n\
//!      #2 kube:create configmaps a/ -> broken (world 200) [lost-answer] 0ms/1\n",
//! );
//! # });
//! ```
//!
//! Modules:
//!
//! - [`call`]: requests as a [`Call`], parsed from method and URI alone;
//! - `families`: the faults, one table per family; a project adds its own family as a
//!   [`Vocabulary`];
//! - [`plan`]: faults and the calls that they meet, as text that replays a run;
//! - [`layer`]: numbers calls, applies the plan, records the [`trace`]; an [`Outage`] affects a
//!   host until it is ended;
//! - [`surroundings`]: the interface by which faults change the world behind the services;
//! - [`instance`]: one process of the controller, its end, and its suspension ([`Gate`]);
//! - `proxy`, with the feature of that name: the layer on sockets, between real clients and real
//!   servers.
//!
//! # Guarantees
//!
//! - A call without a planned fault passes unchanged.
//! - Once an [`Instance`] is dead, none of its calls reaches the world and none returns.
//! - The caller cannot distinguish a lost request from a lost answer.
//! - Every part of a refusal that clients read is what real servers send.
//!
//! # Determinism
//!
//! Nothing here draws a random number or reads a wall clock: times are tokio's. Two runs of the
//! same program with the same plan, in a deterministic runtime, have the same [`Trace::hash`].
//! Names that clients derive from the wall clock, such as those of Events, are masked in the hash.
//!
//! # Limits
//!
//! - Requests are parsed from method, URI and headers, never from bodies: S3 in path style only.
//! - A fault with [`Application::needs_world`] does nothing by itself: it needs an implementation
//!   of [`Surroundings`], and without one the call fails.
//! - A suspended process is held where it makes a call or reads an answer. Tasks that it has
//!   spawned on the runtime continue up to that point.

#![warn(clippy::too_many_lines)]

mod answer;
mod armed;
pub mod call;
mod effect;
mod families;
mod fault;
mod feature;
pub mod instance;
mod kube_call;
mod lasting;
pub mod layer;
mod outage;
mod parse;
pub mod plan;
#[cfg(feature = "proxy")]
pub mod proxy;
mod row;
mod run;
mod s3_call;
mod s3_routes;
mod standstill;
pub mod surroundings;
pub mod trace;
mod words;

#[cfg(test)]
mod standstill_tests;
#[cfg(test)]
mod tests;

pub use answer::Answered;
pub use call::{Call, CallKind, CrashPoint, KubeCall, KubeVerb, S3Call, S3Operation};
pub use families::{Applied, CallFault, ClockFault, HeadStatus, KubeFault, ProcessFault, Rival, S3Fault};
pub use fault::Fault;
pub use feature::Feature;
pub use instance::{Gate, Instance, LifeEnd, run_until_crash};
pub use layer::{EffectLayer, EffectService, Effects};
pub use outage::Outage;
pub use plan::{CallPattern, EffectPattern, Entry, Plan, PlanError};
pub use row::{Application, Calls, Lasts, Nobody, Parameter, Refusal, Row, Vocabulary};
pub use standstill::Stop;
pub use surroundings::Surroundings;
pub use trace::{CallOutcome, Counters, Line, Trace};
