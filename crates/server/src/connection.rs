//! Connections: how many there are, and how long a client may be silent.

use std::collections::BTreeMap;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::Notify;
use tokio::time::{Instant, Sleep};

/// The connections that are open.
pub struct Connections {
    open: Mutex<BTreeMap<u64, Arc<Connection>>>,
    next: AtomicU64,
    most: usize,
    since: Instant,
}

/// One of them.
pub struct Connection {
    is_busy: AtomicBool,
    /// When it became idle, in milliseconds since the server began.
    idle_since: AtomicU64,
    close: Notify,
}

impl Connection {
    /// Waits until it has to give way.
    pub async fn must_close(&self) {
        self.close.notified().await;
    }
}

/// A connection that is open until this is dropped.
pub struct Open {
    connections: Arc<Connections>,
    id: u64,
    /// The connection.
    pub connection: Arc<Connection>,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.connections.lock().remove(&self.id);
    }
}

/// A connection that is being answered until this is dropped.
pub struct Busy {
    connections: Arc<Connections>,
    connection: Arc<Connection>,
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.connection.idle_since.store(self.connections.elapsed(), Ordering::Relaxed);
        self.connection.is_busy.store(false, Ordering::Relaxed);
    }
}

impl Connections {
    /// At most this many.
    pub fn new(most: usize) -> Self {
        Self { open: Mutex::default(), next: AtomicU64::new(0), most, since: Instant::now() }
    }

    /// One more. If there are too many, the one that is idle the longest gives way; if none is idle, this one is not taken.
    pub fn open(self: &Arc<Self>) -> Option<Open> {
        let mut open = self.lock();
        if open.len() >= self.most {
            let idle = open.iter().filter(|(_, connection)| !connection.is_busy.load(Ordering::Relaxed));
            let longest = idle.min_by_key(|(_, connection)| connection.idle_since.load(Ordering::Relaxed));
            let id = longest.map(|(id, _)| *id)?;
            let closed = open.remove(&id)?;
            closed.close.notify_one();
        }
        let (id, connection) = (
            self.next.fetch_add(1, Ordering::Relaxed),
            Arc::new(Connection {
                is_busy: AtomicBool::new(false),
                idle_since: AtomicU64::new(self.elapsed()),
                close: Notify::new(),
            }),
        );
        open.insert(id, Arc::clone(&connection));
        drop(open);
        Some(Open { connections: Arc::clone(self), id, connection })
    }

    /// A request begins on a connection.
    pub fn begin(self: &Arc<Self>, connection: &Arc<Connection>) -> Busy {
        connection.is_busy.store(true, Ordering::Relaxed);
        Busy { connections: Arc::clone(self), connection: Arc::clone(connection) }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.lock().len()
    }

    fn elapsed(&self) -> u64 {
        u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<u64, Arc<Connection>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A stream whose other side must read: writing that does not get on for too long is an error.
pub struct Patient<S> {
    stream: S,
    patience: Duration,
    stalled: Option<Pin<Box<Sleep>>>,
}

impl<S> Patient<S> {
    /// This stream, with patience for so long.
    pub fn new(stream: S, patience: Duration) -> Self {
        Self { stream, patience, stalled: None }
    }

    /// What became of an attempt to write.
    fn wrote<T>(&mut self, cx: &mut Context<'_>, polled: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if polled.is_ready() {
            self.stalled = None;
            return polled;
        }
        let patience = self.patience;
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(tokio::time::sleep(patience)));
        match stalled.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Patient<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Patient<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.wrote(cx, polled)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write_vectored(cx, slices);
        self.wrote(cx, polled)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_flush(cx);
        self.wrote(cx, polled)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt as _;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_longest_idle_gives_way_and_the_busy_do_not() {
        let connections = Arc::new(Connections::new(2));
        let first = connections.open().unwrap();
        let _busy = connections.begin(&first.connection);
        tokio::time::advance(Duration::from_secs(1)).await;
        let second = connections.open().unwrap();
        let third = connections.open().unwrap();
        second.connection.must_close().await;
        let _busy_too = connections.begin(&third.connection);
        assert!(connections.open().is_none());
        drop(first);
        assert!(connections.open().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_reads_nothing_is_left() {
        let (ours, _theirs) = tokio::io::duplex(16);
        let mut patient = Patient::new(ours, Duration::from_secs(30));
        let began = Instant::now();
        let error = patient.write_all(&[0; 100]).await.unwrap_err();
        assert_eq!((error.kind(), began.elapsed().as_secs()), (io::ErrorKind::TimedOut, 30));
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_reads_slowly_is_served() {
        let (ours, mut theirs) = tokio::io::duplex(16);
        let mut patient = Patient::new(ours, Duration::from_secs(30));
        let reading = tokio::spawn(async move {
            let mut buffer = [0; 16];
            for _ in 0..7 {
                tokio::time::sleep(Duration::from_secs(20)).await;
                tokio::io::AsyncReadExt::read(&mut theirs, &mut buffer).await.unwrap();
            }
        });
        patient.write_all(&[0; 100]).await.unwrap();
        drop(patient);
        reading.await.unwrap();
    }
}
