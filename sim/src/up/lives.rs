//! The part of the admin API that replaces the simulator's state: `reset`, and saving and loading
//! of snapshots.

use std::io;

use axum::body::Body;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures::{StreamExt, stream};
use http::Request;
use stowage_world::authority;
use tokio::sync::mpsc;

use super::admin_state::{Admin, refused};
use super::data::{Portable, Reading};

/// The media type of a snapshot. A page of another origin can't send it without a preflight
/// request.
pub const SNAPSHOT: &str = "application/vnd.stowage.snapshot";

/// Maximum number of snapshot parts that wait to be sent.
const AHEAD: usize = 4;

/// Runs work to completion even if the client disconnects meanwhile: the operator is stopped during
/// it and has to be started again.
///
/// # Errors
/// Returns the error of the work.
pub(super) async fn to_the_end<T: Send + 'static>(
    work: impl Future<Output = Result<T, String>> + Send + 'static,
) -> Result<T, String> {
    tokio::spawn(work).await.map_err(|error| error.to_string())?
}

/// Handles `POST /reset`.
pub(super) async fn reset(State(admin): State<Admin>) -> Response {
    let begun = to_the_end(async move {
        let host = authority(&admin.served.store);
        admin.simulator.begin_anew(&admin.beginning, &host).await
    });
    match begun.await {
        Ok(()) => StatusCode::NO_CONTENT.into_response(),
        Err(why) => refused(StatusCode::UNPROCESSABLE_ENTITY, why),
    }
}

/// Handles `GET /snapshot`.
pub(super) async fn save(State(admin): State<Admin>) -> Response {
    let portable = match to_the_end(async move { Ok(admin.simulator.portable().await) }).await {
        Ok(portable) => portable,
        Err(why) => return refused(StatusCode::INTERNAL_SERVER_ERROR, why),
    };
    let (send, receive) = mpsc::channel(AHEAD);
    tokio::task::spawn_blocking(move || write(portable, &send));
    let parts = stream::unfold(receive, |mut receive| async move { Some((receive.recv().await?, receive)) });
    ([(header::CONTENT_TYPE, SNAPSHOT)], Body::from_stream(parts)).into_response()
}

/// Sends the parts of a snapshot. If one can't be read, the answer ends incomplete.
fn write(portable: Portable, send: &mpsc::Sender<io::Result<Vec<u8>>>) {
    let gone = |_| io::Error::other("nobody wants it any more");
    if let Err(error) = portable.write(|part| send.blocking_send(Ok(part)).map_err(gone)) {
        let _ = send.blocking_send(Err(error));
    }
}

/// Handles `POST /snapshot`.
pub(super) async fn load(State(admin): State<Admin>, request: Request<Body>) -> Response {
    let loaded = async move {
        let reading = read(&admin, request.into_body()).await?;
        to_the_end(async move { admin.simulator.go_on_from(reading).await }).await
    };
    match loaded.await {
        Ok(()) => StatusCode::NO_CONTENT.into_response(),
        Err(why) => refused(StatusCode::UNPROCESSABLE_ENTITY, format!("the snapshot can't be loaded: {why}")),
    }
}

async fn read(admin: &Admin, body: Body) -> Result<Reading, String> {
    let mut reading = Reading::new(admin.simulator.data());
    let mut parts = body.into_data_stream();
    while let Some(part) = parts.next().await {
        let part = part.map_err(|error| format!("it broke off: {error}"))?;
        reading = blocking(move || reading.push(&part).map(|()| reading)).await?;
    }
    blocking(move || reading.whole()).await
}

/// Runs blocking work.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T, String> + Send + 'static) -> Result<T, String> {
    tokio::task::spawn_blocking(work).await.map_err(|error| error.to_string())?
}
