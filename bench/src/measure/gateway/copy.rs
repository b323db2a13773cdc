//! A proxy that doesn't parse anything, which shows the minimum cost of forwarding bytes.

use std::io;
use std::net::SocketAddr;

use anyhow::{Context as _, Result};
use clap::Args;
use tokio::net::{TcpListener, TcpStream};

#[derive(Debug, Args)]
pub(crate) struct CopyArgs {
    /// Address to listen on.
    #[arg(long, value_name = "ADDRESS")]
    listen: SocketAddr,
    /// Address to which all connections are forwarded.
    #[arg(long, value_name = "ADDRESS")]
    to: SocketAddr,
}

/// Copies bytes in both directions between each connection and a new one to the other address, on
/// one thread, forever.
///
/// # Errors
/// Fails if it can't listen on the address.
pub(crate) fn copy(args: &CopyArgs) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("can't start")?;
    runtime.block_on(async {
        let listener = TcpListener::bind(args.listen).await.context("can't listen")?;
        loop {
            let (client, _) = listener.accept().await.context("can't accept")?;
            let to = args.to;
            // Errors are ignored: the client sees that its connection broke.
            tokio::spawn(async move { drop(between(client, to).await) });
        }
    })
}

async fn between(mut client: TcpStream, to: SocketAddr) -> io::Result<()> {
    let mut store = TcpStream::connect(to).await?;
    client.set_nodelay(true)?;
    store.set_nodelay(true)?;
    let ((mut from_client, mut to_client), (mut from_store, mut to_store)) = (client.split(), store.split());
    tokio::try_join!(
        async {
            tokio::io::copy(&mut from_client, &mut to_store).await?;
            tokio::io::AsyncWriteExt::shutdown(&mut to_store).await
        },
        async {
            tokio::io::copy(&mut from_store, &mut to_client).await?;
            tokio::io::AsyncWriteExt::shutdown(&mut to_client).await
        },
    )?;
    Ok(())
}
