//! `url(address)`: checks whether a URL responds.

use qontract_client_http::{Request, StatusCode, Url};
use qontract_runtime::ReadContext;
use qontract_template::{Data, LookupState};

use super::{HttpLookups, LookupResult, REDIRECT_STATUSES, not_allowed, request_fault};

/// Maximum number of consecutive redirects that are followed.
const MAX_REDIRECTS: usize = 5;

impl HttpLookups {
    /// Checks whether a URL responds. A response that requires authentication also counts. A server error is
    /// a fault, because the result is unknown.
    pub(super) async fn url(&self, read: &ReadContext, text: &str) -> LookupResult {
        let text = text.trim();
        if text.is_empty() {
            return Ok(LookupState::Ready(Data::Bool(false)));
        }
        let Ok(mut url) = Url::parse(text) else {
            return Ok(LookupState::Failed("it is not a URL".to_owned()));
        };
        if !self.allowed.has_url(&url) {
            return Ok(LookupState::Failed(not_allowed("allow_urls")));
        }
        for _ in 0..=MAX_REDIRECTS {
            let request =
                REDIRECT_STATUSES.into_iter().fold(Request::get(url.clone()), Request::accept_status);
            let response = match self.http.read(&read.permit, request).await {
                Ok(response) => response,
                Err(error) => {
                    return match error.status() {
                        Some(status) if status.is_client_error() && !error.is_transient() => {
                            Ok(LookupState::Ready(Data::Bool(status < StatusCode::NOT_FOUND)))
                        }
                        _ => Err(request_fault(&error)),
                    };
                }
            };
            if !REDIRECT_STATUSES.contains(&response.status) {
                return Ok(LookupState::Ready(Data::Bool(true)));
            }
            let location = response.headers.get("location").and_then(|location| location.to_str().ok());
            let Some(to) = location.and_then(|location| url.join(location).ok()) else {
                return Ok(LookupState::Failed("it redirects without a valid location".to_owned()));
            };
            if !self.allowed.has_url(&to) {
                let (origin, not_named) = (to.origin().ascii_serialization(), not_allowed("allow_urls"));
                return Ok(LookupState::Failed(format!("it redirects to `{origin}`, and {not_named}")));
            }
            url = to;
        }
        Ok(LookupState::Failed(format!("it redirects more than {MAX_REDIRECTS} times")))
    }
}
