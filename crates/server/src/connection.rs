//! Limits the number of connections, closes waiting connections in favour of new ones, and times out stalled
//! clients.
//!
//! A connection is *busy* from the moment its request is complete until its response is sent. At any other time it is
//! *waiting* for its client: it is idle, or it is receiving a head or a body. When the limit is reached, the
//! connection that has waited longest is closed in favour of the new connection.
//!
//! **Invariant:** `/healthz` is answered regardless of the number of open connections. When every connection is busy,
//! new connections are admitted to a small reserve. The connections of the reserve become free quickly, because they
//! serve only health checks.

use std::collections::BTreeMap;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::Notify;
use tokio::time::{Instant, Sleep};

/// Number of additional connections beyond the limit, which may only make health checks.
const HEALTH_RESERVE: usize = 16;

/// The open connections.
pub struct Connections {
    open: Mutex<BTreeMap<u64, Arc<Connection>>>,
    next: AtomicU64,
    max: usize,
    since: Instant,
}

/// The requests that a connection may make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// All requests.
    Full,
    /// Only `/healthz`, because the connection was opened while all others were busy.
    HealthOnly,
}

/// An open connection.
pub struct Connection {
    /// The requests that the connection may make.
    pub admission: Admission,
    is_busy: AtomicBool,
    /// The time at which the connection began to wait for its client, in milliseconds since the server started.
    waiting_since: AtomicU64,
    close: Notify,
}

impl Connection {
    /// Completes when the connection must be closed in favour of another connection.
    pub async fn must_close(&self) {
        self.close.notified().await;
    }

    fn is_waiting(&self) -> bool {
        !self.is_busy.load(Ordering::Relaxed)
    }
}

/// A guard that keeps a connection registered as open until the guard is dropped.
pub struct OpenConnection {
    connections: Arc<Connections>,
    id: u64,
    /// The open connection.
    pub connection: Arc<Connection>,
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.connections.lock().remove(&self.id);
    }
}

/// A guard that marks a connection as busy until the guard is dropped.
pub struct BusyConnection {
    connections: Arc<Connections>,
    connection: Arc<Connection>,
}

impl Drop for BusyConnection {
    fn drop(&mut self) {
        self.connections.mark_waiting_for_body(&self.connection);
        self.connection.is_busy.store(false, Ordering::Relaxed);
    }
}

impl Connections {
    /// Creates a registry that admits up to `max` connections, plus the reserve for health checks.
    pub fn new(max: usize) -> Self {
        Self { open: Mutex::default(), next: AtomicU64::new(0), max, since: Instant::now() }
    }

    /// Admits a connection. If the limit is reached, the connection that has waited longest for its client is
    /// closed. If all connections are busy, the new connection is admitted to the reserve, to which the same
    /// rule applies. `None` if the new connection must be refused.
    pub fn open(self: &Arc<Self>) -> Option<OpenConnection> {
        let mut open = self.lock();
        let admission = [Admission::Full, Admission::HealthOnly]
            .into_iter()
            .find(|admission| make_space(&mut open, *admission, self.limit(*admission)))?;
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let connection = Arc::new(Connection {
            admission,
            is_busy: AtomicBool::new(false),
            waiting_since: AtomicU64::new(self.elapsed()),
            close: Notify::new(),
        });
        open.insert(id, Arc::clone(&connection));
        drop(open);
        Some(OpenConnection { connections: Arc::clone(self), id, connection })
    }

    /// Closes the connection that has waited longest for its client, to free a file descriptor. Returns whether a
    /// connection was waiting.
    pub fn close_oldest_waiting(&self) -> bool {
        close_oldest_waiting(&mut self.lock(), |_| true)
    }

    /// Records that the head of a request has arrived, so that the connection now waits for the body.
    pub fn mark_waiting_for_body(&self, connection: &Connection) {
        connection.waiting_since.store(self.elapsed(), Ordering::Relaxed);
    }

    /// Marks a connection as busy, because a complete request has arrived.
    pub fn begin(self: &Arc<Self>, connection: &Arc<Connection>) -> BusyConnection {
        connection.is_busy.store(true, Ordering::Relaxed);
        BusyConnection { connections: Arc::clone(self), connection: Arc::clone(connection) }
    }

    /// Number of open connections.
    pub fn count(&self) -> usize {
        self.lock().len()
    }

    fn limit(&self, admission: Admission) -> usize {
        match admission {
            Admission::Full => self.max,
            Admission::HealthOnly => HEALTH_RESERVE,
        }
    }

    fn elapsed(&self) -> u64 {
        u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Connection>>> {
        self.open.lock()
    }
}

/// Whether one more connection with this admission fits within the limit. If necessary, a waiting connection is
/// closed.
fn make_space(open: &mut BTreeMap<u64, Arc<Connection>>, admission: Admission, limit: usize) -> bool {
    let is_same = |connection: &Connection| connection.admission == admission;
    let count = open.values().filter(|connection| is_same(connection)).count();
    count < limit || close_oldest_waiting(open, is_same)
}

fn close_oldest_waiting(
    open: &mut BTreeMap<u64, Arc<Connection>>,
    may_close: impl Fn(&Connection) -> bool,
) -> bool {
    let waiting = open.iter().filter(|(_, connection)| connection.is_waiting() && may_close(connection));
    let oldest = waiting.min_by_key(|(_, connection)| connection.waiting_since.load(Ordering::Relaxed));
    let Some(closed) = oldest.map(|(id, _)| *id).and_then(|id| open.remove(&id)) else { return false };
    closed.close.notify_one();
    true
}

/// A stream with a write timeout: a write that makes no progress within the timeout fails.
pub struct StallTimeout<S> {
    stream: S,
    timeout: Duration,
    timer: Option<Pin<Box<Sleep>>>,
}

impl<S> StallTimeout<S> {
    /// Wraps a stream with this timeout.
    pub fn new(stream: S, timeout: Duration) -> Self {
        Self { stream, timeout, timer: None }
    }

    /// Starts the timer when a write stalls and resets the timer on progress.
    fn check_progress<T>(
        &mut self,
        cx: &mut Context<'_>,
        polled: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if polled.is_ready() {
            self.timer = None;
            return polled;
        }
        let timeout = self.timeout;
        let stalled = self.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep(timeout)));
        match stalled.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for StallTimeout<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for StallTimeout<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.check_progress(cx, polled)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write_vectored(cx, slices);
        self.check_progress(cx, polled)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_flush(cx);
        self.check_progress(cx, polled)
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
    async fn the_longest_waiting_connection_is_closed_and_busy_ones_are_not() {
        let connections = Arc::new(Connections::new(2));
        let first = connections.open().unwrap();
        let _busy = connections.begin(&first.connection);
        tokio::time::advance(Duration::from_secs(1)).await;
        let second = connections.open().unwrap();
        let third = connections.open().unwrap();
        second.connection.must_close().await;
        assert_eq!(third.connection.admission, Admission::Full);
    }

    #[tokio::test(start_paused = true)]
    async fn a_half_sent_request_waits_since_its_head() {
        let connections = Arc::new(Connections::new(2));
        let [first, second] = [(); 2].map(|()| connections.open().unwrap());
        tokio::time::advance(Duration::from_secs(1)).await;
        // A head arrived on the first connection, so it has waited for a shorter time than the second
        // connection.
        connections.mark_waiting_for_body(&first.connection);
        let _third = connections.open().unwrap();
        second.connection.must_close().await;
        tokio::time::advance(Duration::from_secs(1)).await;
        let _fourth = connections.open().unwrap();
        first.connection.must_close().await;
        assert_eq!(connections.count(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_waits_since_the_end_of_its_response() {
        let connections = Arc::new(Connections::new(2));
        let [first, second] = [(); 2].map(|()| connections.open().unwrap());
        let busy = connections.begin(&first.connection);
        tokio::time::advance(Duration::from_secs(1)).await;
        drop(busy);
        let _third = connections.open().unwrap();
        second.connection.must_close().await;
    }

    #[tokio::test(start_paused = true)]
    async fn when_all_are_busy_the_reserve_serves_only_health_checks() {
        let connections = Arc::new(Connections::new(1));
        let first = connections.open().unwrap();
        let busy = connections.begin(&first.connection);
        let reserve: Vec<_> = (0..HEALTH_RESERVE).map(|_| connections.open().unwrap()).collect();
        assert!(reserve.iter().all(|one| one.connection.admission == Admission::HealthOnly));
        // In the reserve, the connection that has waited longest is also closed.
        let _next = connections.open().unwrap();
        reserve[0].connection.must_close().await;
        assert_eq!(connections.count(), 1 + HEALTH_RESERVE);
        drop(busy);
        assert_eq!(connections.open().unwrap().connection.admission, Admission::Full);
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_is_refused_when_the_reserve_is_busy_too() {
        let connections = Arc::new(Connections::new(0));
        let reserve: Vec<_> = (0..HEALTH_RESERVE).map(|_| connections.open().unwrap()).collect();
        let mut busy: Vec<_> = reserve.iter().map(|one| connections.begin(&one.connection)).collect();
        assert!(connections.open().is_none());
        assert!(!connections.close_oldest_waiting());
        busy.pop();
        assert!(connections.open().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_reads_nothing_times_out() {
        let (ours, _theirs) = tokio::io::duplex(16);
        let mut stream = StallTimeout::new(ours, Duration::from_secs(30));
        let began = Instant::now();
        let error = stream.write_all(&[0; 100]).await.unwrap_err();
        assert_eq!((error.kind(), began.elapsed().as_secs()), (io::ErrorKind::TimedOut, 30));
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_reads_slowly_is_served() {
        let (ours, mut theirs) = tokio::io::duplex(16);
        let mut stream = StallTimeout::new(ours, Duration::from_secs(30));
        let reading = tokio::spawn(async move {
            let mut buffer = [0; 16];
            for _ in 0..7 {
                tokio::time::sleep(Duration::from_secs(20)).await;
                tokio::io::AsyncReadExt::read(&mut theirs, &mut buffer).await.unwrap();
            }
        });
        stream.write_all(&[0; 100]).await.unwrap();
        drop(stream);
        reading.await.unwrap();
    }
}
