//! Many slow clients, each of which downloads or uploads its object a little at a time. The
//! gateway's memory shows the size of its buffers for each.

use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, ensure};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpSocket;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::load::{Ask, Target};
use super::message::Source;
use super::pattern;

/// Number of bytes that a client transfers at once.
const STEP: u64 = 16 << 10;
/// Pause after each transfer.
const REST: Duration = Duration::from_millis(500);
/// Receive buffer of a client's socket, in bytes. It is small, so that the gateway has to buffer
/// and not the kernel.
const RECEIVE: u32 = 32 << 10;

/// Running slow clients.
pub(super) struct Slow {
    stop: watch::Sender<bool>,
    ended: oneshot::Receiver<Result<()>>,
}

impl Slow {
    /// Starts a client for each request, for objects of `length` bytes, and waits until all have
    /// received the head of a response, or have sent something.
    pub(super) async fn start(target: Target, asks: Vec<Ask>, sends: bool, length: u64) -> Result<Self> {
        let (stop, stopped) = watch::channel(false);
        let ((begun, has_begun), (end, ended)) = (oneshot::channel(), oneshot::channel());
        let work = move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let all = |runtime: tokio::runtime::Runtime| {
                runtime.block_on(async move {
                    let mut clients = JoinSet::new();
                    let (tell, mut told) = watch::channel(0_usize);
                    let count = asks.len();
                    for ask in asks {
                        let (target, stopped, tell) = (target.clone(), stopped.clone(), tell.clone());
                        clients.spawn(async move {
                            let begun = || tell.send_modify(|count| *count += 1);
                            if sends {
                                give(&target, &ask, length, stopped, begun).await
                            } else {
                                take(&target, &ask, length, stopped, begun).await
                            }
                        });
                    }
                    let all = async {
                        while let Some(one) = clients.join_next().await {
                            one.map_err(|why| anyhow!("a client is gone: {why}"))??;
                        }
                        Ok(())
                    };
                    let mut all = std::pin::pin!(all);
                    tokio::select! {
                        ended = &mut all => return ended,
                        _ = told.wait_for(|begun| *begun == count) => (),
                    }
                    let _ = begun.send(());
                    all.await
                })
            };
            let _ = end.send(runtime.context("can't start").and_then(all));
        };
        std::thread::Builder::new().name("slow-clients".to_owned()).spawn(work).context("can't start a thread")?;
        let slow = Self { stop, ended };
        if has_begun.await.is_err() {
            slow.ended.await.context("the clients are gone")??;
            return Err(anyhow!("slow clients ended before all had begun"));
        }
        Ok(slow)
    }

    /// Stops all clients.
    ///
    /// # Errors
    /// Returns the first unexpected response or error.
    pub(super) async fn stop(self) -> Result<()> {
        self.stop.send_replace(true);
        self.ended.await.context("the clients are gone")?
    }
}

/// Pauses; returns true if the client was stopped.
async fn rested(stopped: &mut watch::Receiver<bool>) -> bool {
    tokio::select! {
        _ = stopped.wait_for(|stop| *stop) => true,
        () = sleep(REST) => false,
    }
}

async fn connect(target: &Target) -> Result<tokio::net::TcpStream> {
    let socket = TcpSocket::new_v4().context("no socket")?;
    socket.set_recv_buffer_size(RECEIVE).context("can't set an option of a socket")?;
    socket.connect(target.address).await.context("a slow client can't connect")
}

/// Downloads an object slowly.
async fn take(
    target: &Target,
    ask: &Ask,
    length: u64,
    mut stopped: watch::Receiver<bool>,
    begun: impl FnOnce(),
) -> Result<()> {
    let mut connection = Source::new(connect(target).await?);
    connection.get_mut().write_all(&ask.head).await.context("a request could not be sent")?;
    let head = connection.head().await.context("an answer could not be read")?.context("no answer came")?;
    ensure!(head.word(1) == b"200" && head.length == length, "{}", String::from_utf8_lossy(head.line()));
    begun();
    let mut got = 0;
    while got < length && !rested(&mut stopped).await {
        let (some, is_right) = connection.some(STEP.min(length - got), |bytes| pattern::is(got, bytes)).await?;
        ensure!(is_right, "an answer with other bytes than were stored, after byte {got}");
        got += some;
    }
    Ok(())
}

/// Uploads an object slowly.
async fn give(
    target: &Target,
    ask: &Ask,
    length: u64,
    mut stopped: watch::Receiver<bool>,
    begun: impl FnOnce(),
) -> Result<()> {
    let mut stream = connect(target).await?;
    stream.write_all(&ask.head).await.context("a request could not be sent")?;
    begun();
    let mut sent = 0;
    while sent < length && !rested(&mut stopped).await {
        let piece = pattern::piece(sent, STEP.min(length - sent));
        stream.write_all(piece).await.context("a body could not be sent")?;
        sent += piece.len() as u64;
    }
    Ok(())
}
