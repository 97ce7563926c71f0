//! `url(address)`: checks whether a URL responds.

use qontract_client_http::{Request, StatusCode, Url};
use qontract_runtime::Read;
use qontract_template::{Answer, Data};

use super::{ELSEWHERE, Found, Outward, failed, not_named};

/// Maximum number of consecutive redirects that are followed.
const REDIRECTS: usize = 5;

impl Outward {
    /// Checks whether a URL responds. A response that requires authentication counts; a server error is a
    /// fault, since the result is unknown.
    pub(super) async fn url(&self, read: &Read, text: &str) -> Found {
        let text = text.trim();
        if text.is_empty() {
            return Ok(Answer::Known(Data::Bool(false)));
        }
        let Ok(mut url) = Url::parse(text) else { return Ok(Answer::Failed("it is not a URL".to_owned())) };
        if !self.allowed.has_url(&url) {
            return Ok(Answer::Failed(not_named("allow_urls")));
        }
        for _ in 0..=REDIRECTS {
            let request = ELSEWHERE.into_iter().fold(Request::get(url.clone()), Request::also);
            let response = match self.http.read(&read.permit, request).await {
                Ok(response) => response,
                Err(error) => {
                    return match error.status() {
                        Some(status) if status.is_client_error() && !error.is_transient() => {
                            Ok(Answer::Known(Data::Bool(status < StatusCode::NOT_FOUND)))
                        }
                        _ => Err(failed(&error)),
                    };
                }
            };
            if !ELSEWHERE.contains(&response.status) {
                return Ok(Answer::Known(Data::Bool(true)));
            }
            let location = response.headers.get("location").and_then(|location| location.to_str().ok());
            let Some(to) = location.and_then(|location| url.join(location).ok()) else {
                return Ok(Answer::Failed("it redirects without a valid location".to_owned()));
            };
            if !self.allowed.has_url(&to) {
                let (origin, not_named) = (to.origin().ascii_serialization(), not_named("allow_urls"));
                return Ok(Answer::Failed(format!("it redirects to `{origin}`, and {not_named}")));
            }
            url = to;
        }
        Ok(Answer::Failed(format!("it redirects more than {REDIRECTS} times")))
    }
}
