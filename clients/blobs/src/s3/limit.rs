//! Limits the size of response bodies below the AWS SDK, which reads bodies of any size into memory.
//!
//! **Invariant:** no response body is read beyond its limit, whether the response is an object, a listing or
//! an error.

use std::error::Error;

use aws_sdk_s3::config::interceptors::{BeforeDeserializationInterceptorContextMut, InterceptorContext};
use aws_sdk_s3::config::retry::{ClassifyRetry, RetryAction};
use aws_sdk_s3::config::{ConfigBag, Intercept, RuntimeComponents};
use aws_sdk_s3::error::BoxError;
use aws_sdk_s3::primitives::SdkBody;
use aws_smithy_runtime_api::client::orchestrator::Metadata;
use http_body_util::{LengthLimitError, Limited};

/// Maximum size of the body of an error, in bytes. Only the status and the code of an error are used.
pub(super) const MAX_ERROR_BYTES: u64 = 64 << 10;

/// Maximum size of every other body that is not an object, in bytes: a page of a listing with 1,000 keys of
/// 1,024 bytes has about 1.5 MB.
pub(super) const MAX_ANSWER_BYTES: u64 = 4 << 20;

/// Interceptor that truncates every response body at its limit.
#[derive(Debug)]
pub(super) struct BodyLimit {
    /// Maximum size of an object, in bytes.
    pub object: u64,
}

impl BodyLimit {
    /// The limit for the response to this operation.
    fn of(&self, is_success: bool, operation: Option<&str>) -> u64 {
        match operation {
            _ if !is_success => MAX_ERROR_BYTES,
            Some("GetObject") => self.object,
            _ => MAX_ANSWER_BYTES,
        }
    }
}

impl Intercept for BodyLimit {
    fn name(&self) -> &'static str {
        "BodyLimit"
    }

    fn modify_before_deserialization(
        &self,
        context: &mut BeforeDeserializationInterceptorContextMut<'_>,
        _: &RuntimeComponents,
        config: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let operation = config.load::<Metadata>().map(Metadata::name);
        let limit = self.of(context.response().status().is_success(), operation);
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let body = context.response_mut().take_body();
        *context.response_mut().body_mut() = SdkBody::from_body_1_x(Limited::new(body, limit));
        Ok(())
    }
}

/// Whether an error was caused by a body that is larger than its limit.
pub(super) fn is_too_large(error: &(dyn Error + 'static)) -> bool {
    let mut chain = std::iter::successors(Some(error), |error| (*error).source());
    chain.any(<dyn Error>::is::<LengthLimitError>)
}

/// Prevents a retry after a response that is too large, because the next response would also be read up to
/// the limit.
#[derive(Debug)]
pub(super) struct NoRetryOfTooLarge;

impl ClassifyRetry for NoRetryOfTooLarge {
    fn classify_retry(&self, context: &InterceptorContext) -> RetryAction {
        let error = context.output_or_error().and_then(Result::err);
        let source = error.and_then(Error::source);
        if source.is_some_and(is_too_large) {
            RetryAction::RetryForbidden
        } else {
            RetryAction::NoActionIndicated
        }
    }

    fn name(&self) -> &'static str {
        "NoRetryOfTooLarge"
    }
}

#[cfg(test)]
mod tests {
    use super::{BodyLimit, MAX_ANSWER_BYTES, MAX_ERROR_BYTES};

    #[test]
    fn objects_have_their_own_limit_and_only_in_success() {
        let check = |is_success: bool, operation: Option<&str>, expect: u64| {
            assert_eq!(
                BodyLimit { object: 7 }.of(is_success, operation),
                expect,
                "{is_success} {operation:?}"
            );
        };
        check(true, Some("GetObject"), 7);
        check(false, Some("GetObject"), MAX_ERROR_BYTES);
        for other in [Some("ListObjectsV2"), Some("PutObject"), None] {
            check(true, other, MAX_ANSWER_BYTES);
            check(false, other, MAX_ERROR_BYTES);
        }
    }
}
