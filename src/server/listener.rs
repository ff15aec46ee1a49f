//! A listener with a bound on its connections and on the life of each.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::serve::Listener;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Sleep, sleep};

use crate::model::limits::{SERVER_CONNECTION_DEADLINE, SERVER_CONNECTIONS_MAX};

/// Accepts a connection only while there is room for one.
pub(super) struct BoundedListener {
    listener: TcpListener,
    room: Arc<Semaphore>,
}

/// A connection that holds its place, and fails when its time is over.
pub(super) struct BoundedStream {
    stream: TcpStream,
    deadline: Pin<Box<Sleep>>,
    _place: OwnedSemaphorePermit,
}

impl BoundedListener {
    pub(super) fn new(listener: TcpListener) -> Self {
        Self {
            listener,
            room: Arc::new(Semaphore::new(SERVER_CONNECTIONS_MAX)),
        }
    }
}

impl Listener for BoundedListener {
    type Io = BoundedStream;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        let place = Arc::clone(&self.room)
            .acquire_owned()
            .await
            .expect("the semaphore is never closed");
        // axum's own implementation waits a while after an error such as too many open files.
        let (stream, address) = Listener::accept(&mut self.listener).await;
        let stream = BoundedStream {
            stream,
            deadline: Box::pin(sleep(SERVER_CONNECTION_DEADLINE)),
            _place: place,
        };
        (stream, address)
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        self.listener.local_addr()
    }
}

impl BoundedStream {
    fn check_deadline(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        match self.deadline.as_mut().poll(context) {
            Poll::Ready(()) => Err(io::ErrorKind::TimedOut.into()),
            Poll::Pending => Ok(()),
        }
    }
}

impl AsyncRead for BoundedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.check_deadline(context)?;
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for BoundedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.check_deadline(context)?;
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
