//! Signs requests (AWS Signature Version 4). Pure.

use std::time::SystemTime;

use aws_credential_types::Credentials;
use aws_sigv4::http_request::{SignableBody, SignableRequest, SigningSettings, sign as sign_request};
use aws_sigv4::sign::v4::SigningParams;
use qontract_client_http::Secret;

use super::location::SqsLocation;

/// The name of the service in signatures.
const SERVICE: &str = "sqs";

/// The headers that sign a `POST` to the endpoint with these headers and this body.
pub(super) fn sign(
    location: &SqsLocation,
    headers: &[(&str, &str)],
    body: &[u8],
    credentials: &Credentials,
    now: SystemTime,
) -> Result<Vec<(String, Secret)>, &'static str> {
    let failed = "the request could not be signed";
    let identity = credentials.clone().into();
    let params = SigningParams::builder()
        .identity(&identity)
        .region(location.region())
        .name(SERVICE)
        .time(now)
        .settings(SigningSettings::default())
        .build()
        .map_err(|_| failed)?;
    let headers = headers.iter().copied();
    let request =
        SignableRequest::new("POST", location.endpoint().as_str(), headers, SignableBody::Bytes(body))
            .map_err(|_| failed)?;
    let (instructions, _) = sign_request(request, &params.into()).map_err(|_| failed)?.into_parts();
    let headers = instructions.headers();
    Ok(headers.map(|(name, value)| (name.to_owned(), Secret::new(value))).collect())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::sqs::QueueAddress;

    /// The expected value was computed with `botocore.auth.SigV4Auth`.
    #[test]
    fn a_signature_is_that_of_the_reference_implementation() {
        let location =
            SqsLocation::new(QueueAddress::Name("orders"), None, Some("http://127.0.0.1:5000")).unwrap();
        let credentials = Credentials::new("AKIATEST", "s3cret-key", Some("t0ken".to_owned()), None, "test");
        let headers =
            [("content-type", "application/x-amz-json-1.0"), ("x-amz-target", "AmazonSQS.GetQueueUrl")];
        let now = SystemTime::UNIX_EPOCH + Duration::from_hours(500_000);
        let signed = sign(&location, &headers, br#"{"QueueName":"orders"}"#, &credentials, now).unwrap();
        let signed: Vec<(&str, &str)> =
            signed.iter().map(|(name, value)| (name.as_str(), value.expose())).collect();
        assert_eq!(
            signed,
            [
                ("x-amz-date", "20270115T080000Z"),
                (
                    "authorization",
                    "AWS4-HMAC-SHA256 Credential=AKIATEST/20270115/us-east-1/sqs/aws4_request, SignedHeaders=content-type;host;x-amz-date;x-amz-security-token;x-amz-target, Signature=13e4c9989afd01d83ed2156e54ddbc1f5e01428def682680f7b02430a487f9ec"
                ),
                ("x-amz-security-token", "t0ken"),
            ]
        );
    }
}
