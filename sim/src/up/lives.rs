//! The admin API, as far as it begins the simulator again: `reset`, and snapshots in and out.

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

/// What a snapshot is said to be. A page of another origin can't send such a thing unasked.
pub const SNAPSHOT: &str = "application/vnd.stowage.snapshot";

/// Parts of a snapshot that wait to be sent.
const AHEAD: usize = 4;

/// Does something to its end, also where whoever has asked for it goes away meanwhile: the operator
/// rests during it, and has to come back.
///
/// # Errors
/// Its own.
pub(super) async fn to_the_end<T: Send + 'static>(
    work: impl Future<Output = Result<T, String>> + Send + 'static,
) -> Result<T, String> {
    tokio::spawn(work).await.map_err(|error| error.to_string())?
}

/// `POST /reset`.
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

/// `GET /snapshot`.
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

/// Sends the parts; one that can't be read ends the answer before its end.
fn write(portable: Portable, send: &mpsc::Sender<io::Result<Vec<u8>>>) {
    let gone = |_| io::Error::other("nobody wants it any more");
    if let Err(error) = portable.write(|part| send.blocking_send(Ok(part)).map_err(gone)) {
        let _ = send.blocking_send(Err(error));
    }
}

/// `POST /snapshot`.
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

/// Does what may take a while.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T, String> + Send + 'static) -> Result<T, String> {
    tokio::task::spawn_blocking(work).await.map_err(|error| error.to_string())?
}
