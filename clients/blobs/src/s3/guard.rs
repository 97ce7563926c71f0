//! Applies the guard of the HTTP stack to requests of the AWS SDK.

use aws_sdk_s3::config::interceptors::BeforeTransmitInterceptorContextRef;
use aws_sdk_s3::config::{ConfigBag, Intercept, RuntimeComponents};
use aws_sdk_s3::error::BoxError;
use qontract_access::{Access, Mode};
use qontract_client_http::{Method, RequestPolicy, Url};

/// Refuses requests that a run of this mode must not send.
#[derive(Debug)]
pub(super) struct DryRunGuard {
    pub mode: Mode,
}

impl Intercept for DryRunGuard {
    fn name(&self) -> &'static str {
        "DryRunGuard"
    }

    fn read_before_transmit(
        &self,
        context: &BeforeTransmitInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let request = context.request();
        let method: Method = request.method().parse()?;
        let url = Url::parse(request.uri())?;
        let is_safe = [Method::GET, Method::HEAD, Method::OPTIONS].contains(&method);
        let access = if is_safe { Access::Read } else { Access::Write };
        Ok(RequestPolicy::default().check(self.mode, &method, &url, access)?)
    }
}
