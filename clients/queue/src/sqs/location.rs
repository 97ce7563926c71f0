//! The location of a queue: its endpoint, its region, and its URL or name. Pure.

use qontract_client_http::Url;

use crate::message::QueueName;

/// The default region of a queue.
const DEFAULT_REGION: &str = "us-east-1";

/// The way in which a queue is addressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueAddress<'a> {
    /// By its URL, such as `https://sqs.us-east-1.amazonaws.com/123456789012/orders`.
    Url(&'a str),
    /// By its name, in the account of the credentials.
    Name(&'a str),
}

/// The location of a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SqsLocation {
    endpoint: Url,
    region: String,
    name: QueueName,
    /// The URL, if the queue is addressed by its URL.
    url: Option<String>,
}

/// The reason why a location is not valid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SqsLocationError {
    /// The address is not the URL of a queue.
    #[error("not the URL of a queue such as `https://sqs.us-east-1.amazonaws.com/123456789012/orders`")]
    Url,
    /// The address is not the name of a queue.
    #[error("not a queue name: 1 to 80 letters, digits, `-` and `_`, and `.fifo` at the end")]
    Name,
    /// The region is not the name of a region.
    #[error("not a region such as `us-east-1`")]
    Region,
    /// The endpoint is not a URL without a path.
    #[error("not a URL such as `https://sqs.example.com`, without user, path and query")]
    Endpoint,
}

impl SqsLocation {
    /// The location of a queue. Without a region, the region of the URL is used; without an endpoint, the
    /// host of the URL, or the AWS endpoint of the region.
    pub fn new(
        address: QueueAddress<'_>,
        region: Option<&str>,
        endpoint: Option<&str>,
    ) -> Result<Self, SqsLocationError> {
        let url = match address {
            QueueAddress::Url(text) => Some(parse(text).ok_or(SqsLocationError::Url)?),
            QueueAddress::Name(_) => None,
        };
        let name = match (&url, address) {
            (Some(url), _) => queue_name(url).ok_or(SqsLocationError::Url)?,
            (None, QueueAddress::Url(name) | QueueAddress::Name(name)) => {
                QueueName::new(name).map_err(|_| SqsLocationError::Name)?
            }
        };
        let named = url.as_ref().and_then(Url::host_str).and_then(region_of_host);
        let region = region.or(named).unwrap_or(DEFAULT_REGION).to_owned();
        let is_region = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        if region.is_empty() || !region.bytes().all(is_region) {
            return Err(SqsLocationError::Region);
        }
        let endpoint = match (endpoint, &url) {
            (Some(text), _) => {
                parse(text).filter(|url| url.path() == "/").ok_or(SqsLocationError::Endpoint)?
            }
            (None, Some(url)) => url.join("/").map_err(|_| SqsLocationError::Url)?,
            (None, None) => {
                let suffix = if region.starts_with("cn-") { ".cn" } else { "" };
                let text = format!("https://sqs.{region}.amazonaws.com{suffix}/");
                Url::parse(&text).map_err(|_| SqsLocationError::Region)?
            }
        };
        Ok(Self { endpoint, region, name, url: url.map(String::from) })
    }

    /// The URL to which requests are sent.
    pub fn endpoint(&self) -> &Url {
        &self.endpoint
    }

    /// The region.
    pub fn region(&self) -> &str {
        &self.region
    }

    /// The name of the queue.
    pub fn name(&self) -> &QueueName {
        &self.name
    }

    /// The URL, if the queue is addressed by its URL.
    pub(super) fn url(&self) -> Option<&str> {
        self.url.as_deref()
    }
}

/// A URL without user, query and fragment.
fn parse(text: &str) -> Option<Url> {
    let is_plain = !text.contains(['@', '?', '#', '%', '\\']);
    let url = Url::parse(text).ok().filter(|_| is_plain)?;
    (["http", "https"].contains(&url.scheme()) && url.host_str().is_some()).then_some(url)
}

/// The name of the queue with this URL: its last segment, after the account.
fn queue_name(url: &Url) -> Option<QueueName> {
    let (account, name) = url.path().strip_prefix('/')?.rsplit_once('/')?;
    (!account.is_empty()).then(|| QueueName::new(name).ok())?
}

/// The region in the host name of an endpoint of AWS.
fn region_of_host(host: &str) -> Option<&str> {
    let rest = host.strip_suffix(".cn").unwrap_or(host).strip_suffix(".amazonaws.com")?;
    rest.strip_prefix("sqs.").or_else(|| rest.strip_suffix(".queue"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(
        address: QueueAddress<'_>,
        region: Option<&str>,
        endpoint: Option<&str>,
        expect: Result<&str, SqsLocationError>,
    ) {
        let location = SqsLocation::new(address, region, endpoint);
        let shown = location.map(|it| format!("{} {} {} {:?}", it.endpoint, it.region, it.name, it.url));
        assert_eq!(shown, expect.map(str::to_owned), "{address:?} {region:?} {endpoint:?}");
    }

    const URL: &str = "https://sqs.eu-west-1.amazonaws.com/123456789012/orders.fifo";

    #[test]
    fn a_url_contains_endpoint_region_and_name() {
        let url = QueueAddress::Url(URL);
        let expect = format!("https://sqs.eu-west-1.amazonaws.com/ eu-west-1 orders.fifo Some({URL:?})");
        check(url, None, None, Ok(&expect));
        let expect = format!("http://127.0.0.1:5000/ us-west-2 orders.fifo Some({URL:?})");
        check(url, Some("us-west-2"), Some("http://127.0.0.1:5000"), Ok(&expect));
        let old = "https://eu-west-1.queue.amazonaws.com/1/q";
        let expect = format!("https://eu-west-1.queue.amazonaws.com/ eu-west-1 q Some({old:?})");
        check(QueueAddress::Url(old), None, None, Ok(&expect));
    }

    #[test]
    fn a_name_is_looked_up_at_the_endpoint_of_its_region() {
        let name = QueueAddress::Name("orders");
        check(name, None, None, Ok("https://sqs.us-east-1.amazonaws.com/ us-east-1 orders None"));
        let china = "https://sqs.cn-north-1.amazonaws.com.cn/ cn-north-1 orders None";
        check(name, Some("cn-north-1"), None, Ok(china));
    }

    #[test]
    fn what_is_not_exact_is_refused() {
        for url in [
            "orders",
            "https://sqs.us-east-1.amazonaws.com/orders",
            "https://sqs.us-east-1.amazonaws.com/1/",
            "https://u:p@sqs.us-east-1.amazonaws.com/1/orders",
            "https://sqs.us-east-1.amazonaws.com/1/orders?Action=DeleteQueue",
            "ftp://h/1/orders",
        ] {
            check(QueueAddress::Url(url), None, None, Err(SqsLocationError::Url));
        }
        check(QueueAddress::Name("a/b"), None, None, Err(SqsLocationError::Name));
        let name = QueueAddress::Name("a");
        for region in ["", "us_east", "x/y", "evil.example.com"] {
            check(name, Some(region), None, Err(SqsLocationError::Region));
        }
        for endpoint in ["h", "https://h/path", "https://u@h", "https://h?x", "file:///x"] {
            check(name, None, Some(endpoint), Err(SqsLocationError::Endpoint));
        }
    }
}
