//! One attempt: sends the request, follows redirects if they are allowed, and reads the body.
//!
//! **Invariant:** only reads follow redirects, and never to another origin, so a request for one target is
//! never sent to another.

use std::error::Error;
use std::io;

use qontract_access::Access;
use reqwest::header::LOCATION;
use reqwest::{Client, Method, StatusCode, Url};
use tokio::time::timeout;

use crate::call::origin;
use crate::cause::cause;
use crate::error::{HttpError, excerpt};
use crate::request::PreparedRequest;
use crate::response::Response;
use crate::retry::retry_after;
use crate::settings::Settings;

/// Maximum number of consecutive redirects that are followed.
const MAX_REDIRECTS: usize = 5;
/// Maximum number of bytes that are read of the body of an error response.
const MAX_ERROR_BODY_BYTES: usize = 16 << 10;

/// Sends the request once and reads the whole response.
pub async fn attempt(
    client: &Client,
    settings: &Settings,
    prepared: &PreparedRequest,
) -> Result<Response, HttpError> {
    let limit = settings.attempt_timeout;
    let max_body = prepared.max_body.unwrap_or(usize::MAX).min(settings.max_body_bytes);
    timeout(limit, exchange(client, max_body, prepared))
        .await
        .unwrap_or_else(|_| Err(HttpError::AttemptTimeout { call: prepared.call.clone(), limit }))
}

async fn exchange(
    client: &Client,
    largest: usize,
    prepared: &PreparedRequest,
) -> Result<Response, HttpError> {
    let mut url = prepared.request.url().clone();
    let mut redirects = 0;
    loop {
        let mut request = prepared.request.try_clone().expect("a body in memory can be cloned");
        *request.url_mut() = url.clone();
        let response = client.execute(request).await.map_err(|error| transport_error(prepared, error))?;
        let status = response.status();
        if status.is_success() || prepared.accepted_statuses.contains(&status) {
            return read_response(prepared, response, largest).await;
        }
        if !is_redirect(status) {
            return Err(status_error(prepared, response).await);
        }
        redirects += 1;
        url = redirect_target(prepared, &url, &response, redirects)?;
    }
}

async fn read_response(
    prepared: &PreparedRequest,
    mut response: reqwest::Response,
    largest: usize,
) -> Result<Response, HttpError> {
    let too_large = || HttpError::BodyTooLarge { call: prepared.call.clone(), limit: largest };
    let announced = response.content_length().unwrap_or_default();
    if *prepared.request.method() != Method::HEAD && announced > largest as u64 {
        return Err(too_large());
    }
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| transport_error(prepared, error))? {
        if body.len() + chunk.len() > largest {
            return Err(too_large());
        }
        body.extend_from_slice(&chunk);
    }
    Ok(Response { status: response.status(), headers: std::mem::take(response.headers_mut()), body })
}

/// The error for a response with an error status. The body of the response is used only for the message, so a
/// failure to read it is ignored.
async fn status_error(prepared: &PreparedRequest, mut response: reqwest::Response) -> HttpError {
    let (status, retry_after) = (response.status(), retry_after(response.headers()));
    let mut body = Vec::new();
    while let Ok(Some(chunk)) = response.chunk().await {
        body.extend_from_slice(&chunk);
        if body.len() >= MAX_ERROR_BODY_BYTES {
            break;
        }
    }
    HttpError::Status {
        call: prepared.call.clone(),
        status,
        retry_after,
        excerpt: excerpt(&body, &prepared.secrets),
    }
}

fn is_redirect(status: StatusCode) -> bool {
    matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)
}

/// The target of a redirect, if it may be followed.
fn redirect_target(
    prepared: &PreparedRequest,
    from: &Url,
    response: &reqwest::Response,
    number: usize,
) -> Result<Url, HttpError> {
    let location = response.headers().get(LOCATION).and_then(|location| location.to_str().ok());
    let to = location.and_then(|location| from.join(location).ok());
    let same_origin = to.as_ref().is_some_and(|to| origin(to) == origin(from));
    let is_read = match prepared.access {
        Access::Read => *prepared.request.method() != Method::POST,
        Access::Write => false,
    };
    match to {
        Some(mut to) if is_read && same_origin && number <= MAX_REDIRECTS => {
            let cleared = to.set_username("").and_then(|()| to.set_password(None));
            debug_assert!(cleared.is_ok(), "http has a host");
            Ok(to)
        }
        to => Err(HttpError::Redirect {
            call: prepared.call.clone(),
            status: response.status(),
            to: to.map_or_else(|| "nowhere".to_owned(), |to| origin(&to)),
        }),
    }
}

/// The error for a request without a response. The URL is removed from the error of the library, because it
/// includes the query.
fn transport_error(prepared: &PreparedRequest, error: reqwest::Error) -> HttpError {
    let (call, source) = (prepared.call.clone(), error.without_url());
    if source.is_builder() {
        return HttpError::Prepare { call, why: "the HTTP client rejects it".to_owned() };
    }
    let cause = cause(&source, prepared.request.url().host_str().unwrap_or_default());
    if source.is_connect() {
        return HttpError::Connect { call, transient: !is_tls_failure(&source), cause };
    }
    HttpError::Exchange { call, cause }
}

/// Whether the TLS handshake failed, for example because of an untrusted certificate or a server without TLS.
fn is_tls_failure(error: &reqwest::Error) -> bool {
    let mut chain = std::iter::successors(error.source(), |error| (*error).source());
    chain.any(|error| error.downcast_ref().is_some_and(is_invalid_data))
}

/// Whether an error, or an error wrapped in it, has the kind that the TLS library uses for handshake failures.
fn is_invalid_data(error: &io::Error) -> bool {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref());
    error.kind() == io::ErrorKind::InvalidData || inner.is_some_and(is_invalid_data)
}
