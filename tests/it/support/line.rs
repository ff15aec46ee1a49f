//! A line to an API server that can be cut: bytes go through as they are, TLS included.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// How the line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// Bytes go through.
    Whole,
    /// Connections are taken and live on, but nothing goes through.
    Silent,
    /// Connections end, and new ones end at once.
    Cut,
}

/// The line; it ends when it is dropped.
pub(crate) struct Line {
    address: SocketAddr,
    state: Arc<watch::Sender<State>>,
    stop: CancellationToken,
}

impl Drop for Line {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl Line {
    /// Lays a line to a server.
    pub(crate) async fn to(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(watch::Sender::new(State::Whole));
        let (stop, states) = (CancellationToken::new(), Arc::clone(&state));
        let serve = async move {
            while let Ok((near, _)) = listener.accept().await {
                tokio::spawn(carry(near, server, states.subscribe()));
            }
        };
        tokio::spawn(stop.clone().run_until_cancelled_owned(serve));
        Self {
            address,
            state,
            stop,
        }
    }

    /// Returns the near end.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Changes how the line is, from now on.
    pub(crate) fn set(&self, state: State) {
        self.state.send_replace(state);
    }
}

async fn carry(near: TcpStream, server: SocketAddr, states: watch::Receiver<State>) {
    if *states.borrow() == State::Cut {
        return;
    }
    let Ok(far) = TcpStream::connect(server).await else {
        return;
    };
    let _ = (near.set_nodelay(true), far.set_nodelay(true));
    let ((near_in, near_out), (far_in, far_out)) = (near.into_split(), far.into_split());
    let mut cut = states.clone();
    tokio::select! {
        () = pump(near_in, far_out, states.clone()) => {}
        () = pump(far_in, near_out, states) => {}
        _ = cut.wait_for(|state| *state == State::Cut) => {}
    }
}

async fn pump(
    mut from: tokio::net::tcp::OwnedReadHalf,
    mut to: tokio::net::tcp::OwnedWriteHalf,
    mut states: watch::Receiver<State>,
) {
    let mut bytes = vec![0; 64 * 1024];
    loop {
        let Ok(count @ 1..) = from.read(&mut bytes).await else {
            return;
        };
        if states
            .wait_for(|state| *state != State::Silent)
            .await
            .is_err()
        {
            tokio::time::sleep(Duration::from_secs(600)).await;
        }
        if to.write_all(&bytes[..count]).await.is_err() {
            return;
        }
    }
}
