//! A circuit breaker: if a store does not respond, further requests fail immediately for a while. Otherwise, each
//! request of a run would wait for its own timeout.

use std::time::Duration;

use parking_lot::Mutex;
use qontract_client_blobs::BlobsError;
use tokio::time::Instant;

/// The time for which requests fail immediately.
const OPEN: Duration = Duration::from_secs(15);

/// The duration from which a failed request counts as an outage. Faster failures do not delay the requests that
/// follow.
const SLOW: Duration = Duration::from_secs(5);

/// Records when a store did not respond.
#[derive(Default)]
pub(super) struct Outage {
    last: Mutex<Option<LostRequest>>,
}

/// A request that got no response.
struct LostRequest {
    ended: Instant,
    reason: String,
}

impl Outage {
    /// Sends a request, unless another request recently got no response.
    pub(super) async fn call<T>(
        &self,
        request: impl Future<Output = Result<T, BlobsError>>,
    ) -> Result<T, BlobsError> {
        if let Some(LostRequest { ended, reason }) = &*self.last.lock()
            && ended.elapsed() < OPEN
        {
            let what = "the request was not sent, because an earlier one".to_owned();
            return Err(BlobsError::Unreachable { what, reason: reason.clone(), transient: true });
        }
        let started = Instant::now();
        let result = request.await;
        *self.last.lock() = match &result {
            Err(BlobsError::Unreachable { reason, transient: true, .. }) if started.elapsed() >= SLOW => {
                Some(LostRequest { ended: Instant::now(), reason: reason.clone() })
            }
            _ => None,
        };
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn request(outage: &Outage, takes: Duration, is_down: bool) -> (bool, Duration) {
        let started = Instant::now();
        let result = outage.call(async {
            tokio::time::sleep(takes).await;
            let error = || BlobsError::Unreachable {
                what: "reading".to_owned(),
                reason: "timed out".to_owned(),
                transient: true,
            };
            if is_down { Err(error()) } else { Ok(()) }
        });
        (result.await.is_ok(), started.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn after_a_timeout_requests_fail_at_once_for_a_while() {
        let outage = Outage::default();
        let second = Duration::from_secs(1);
        // A refused connection is not a timeout.
        assert_eq!(request(&outage, second, true).await, (false, second));
        assert_eq!(request(&outage, second, false).await, (true, second));
        assert_eq!(request(&outage, SLOW, true).await, (false, SLOW));
        assert_eq!(request(&outage, second, false).await, (false, Duration::ZERO));
        tokio::time::advance(OPEN.checked_sub(second).unwrap()).await;
        assert_eq!(request(&outage, second, false).await, (false, Duration::ZERO));
        tokio::time::advance(second).await;
        assert_eq!(request(&outage, second, false).await, (true, second));
        assert_eq!(request(&outage, second, false).await, (true, second));
    }
}
