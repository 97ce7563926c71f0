//! The operator's allow-lists for template lookups. Pure.

use std::time::Duration;

use qontract_client_blobs::S3Endpoint;
use qontract_client_http::Url;
use qontract_client_secrets::SecretRef;

/// The addresses that templates may reach besides secrets and the data. Empty by default.
#[derive(Clone, Debug)]
pub struct AllowList {
    urls: Vec<Url>,
    repositories: Vec<String>,
    buckets: Vec<String>,
    /// Base URL of the GitHub API.
    pub github_api: Url,
    /// The token for GitHub, if any.
    pub github_token: Option<SecretRef>,
    /// The S3 endpoint, if it is not that of AWS.
    pub s3_endpoint: Option<S3Endpoint>,
    /// Limits of a lookup.
    pub limits: LookupLimits,
}

/// Limits of a lookup.
#[derive(Clone, Copy, Debug)]
pub struct LookupLimits {
    /// Maximum duration, including retries.
    pub deadline: Duration,
    /// Maximum size of a response in bytes.
    pub max_bytes: usize,
}

impl Default for LookupLimits {
    fn default() -> Self {
        Self { deadline: Duration::from_secs(20), max_bytes: 4 << 20 }
    }
}

impl AllowList {
    /// Creates the lists from URL prefixes, repositories (`owner/name` or `owner/*`) and buckets
    /// (`account/bucket`).
    pub fn new(
        urls: &[String],
        repositories: &[String],
        buckets: &[String],
        github_api: Url,
    ) -> Result<Self, String> {
        let urls = urls.iter().map(|text| url_prefix(text)).collect::<Result<_, _>>()?;
        for (list, setting) in [(repositories, "allow_github"), (buckets, "allow_s3")] {
            if let Some(wrong) = list.iter().find(|entry| !is_pair(entry)) {
                return Err(format!(
                    "`templates.{setting}` has `{wrong}`, which is not of the form `one/other`"
                ));
            }
        }
        Ok(Self {
            urls,
            repositories: repositories.to_vec(),
            buckets: buckets.to_vec(),
            github_api,
            github_token: None,
            s3_endpoint: None,
            limits: LookupLimits::default(),
        })
    }

    /// Whether all lists are empty.
    pub fn is_empty(&self) -> bool {
        self.urls.is_empty() && self.repositories.is_empty() && self.buckets.is_empty()
    }

    /// Whether a URL is listed, or is below a listed URL that ends with a slash.
    pub(super) fn has_url(&self, url: &Url) -> bool {
        // Escaped separators and dot segments are rejected: the server may resolve them differently.
        let path = url.path().to_ascii_lowercase();
        let is_dots = |segment: &str| matches!(segment.split(';').next(), Some("." | ".."));
        let is_plain = !["%25", "%2f", "%5c", "%2e", "\\"].iter().any(|escape| path.contains(escape))
            && !path.split('/').any(is_dots);
        let has_user = !url.username().is_empty() || url.password().is_some();
        is_plain
            && !has_user
            && self.urls.iter().any(|named| {
                let same = named.origin() == url.origin();
                let below = named.path().ends_with('/') && url.path().starts_with(named.path());
                same && (below || named.path() == url.path())
            })
    }

    /// Whether a repository, or all repositories of its owner, are listed.
    pub(super) fn has_repository(&self, name: &str) -> bool {
        let Some((owner, repository)) = name.split_once('/') else { return false };
        is_pair(name) && repository != "*" && {
            let all = format!("{owner}/*");
            self.repositories.iter().any(|named| *named == name || *named == all)
        }
    }

    /// Whether a bucket is listed.
    pub(super) fn has_bucket(&self, account: &str, bucket: &str) -> bool {
        let name = format!("{account}/{bucket}");
        is_pair(&name) && self.buckets.contains(&name)
    }
}

/// Parses a listed URL prefix.
fn url_prefix(text: &str) -> Result<Url, String> {
    let wrong = |why: &str| format!("`templates.allow_urls` has `{text}`, which {why}");
    let url = Url::parse(text).map_err(|_| wrong("is not a URL"))?;
    if !["http", "https"].contains(&url.scheme()) || !url.has_host() {
        return Err(wrong("is not an HTTP URL"));
    }
    if url.query().is_some() || url.fragment().is_some() || !url.username().is_empty() {
        return Err(wrong("has components other than host and path"));
    }
    Ok(url)
}

/// Whether the entry has the form `word/word`.
fn is_pair(text: &str) -> bool {
    let is_word = |word: &str| {
        !word.is_empty()
            && !word.chars().all(|one| one == '.')
            && !word.contains(|one: char| one == '/' || one.is_whitespace() || one.is_control())
    };
    text.split_once('/').is_some_and(|(one, other)| is_word(one) && is_word(other))
}

#[cfg(test)]
mod tests {
    use super::AllowList;
    use qontract_client_http::Url;

    fn allowed(urls: &[&str], repositories: &[&str], buckets: &[&str]) -> Result<AllowList, String> {
        let texts = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let api = Url::parse("http://forge.example.com").unwrap();
        AllowList::new(&texts(urls), &texts(repositories), &texts(buckets), api)
    }

    #[test]
    fn a_url_is_listed_or_lies_below_one_that_is() {
        let list = ["https://docs.example.com/runbooks/", "http://h.example.com:8080/ping"];
        let allowed = allowed(&list, &[], &[]).unwrap();
        let check = |url: &str, expect: bool| {
            assert_eq!(allowed.has_url(&Url::parse(url).unwrap()), expect, "{url}");
        };
        check("https://docs.example.com/runbooks/a?x=1#y", true);
        check("https://DOCS.example.com:443/runbooks/", true);
        check("http://h.example.com:8080/ping", true);
        for other in [
            "https://docs.example.com/runbooks",
            "https://docs.example.com/other/",
            "https://docs.example.com/runbooks/../other/a",
            "https://docs.example.com/runbooks/%2e%2e/other/a",
            "https://docs.example.com/runbooks/..%2Fother",
            "https://docs.example.com/runbooks/..%5cother",
            "https://docs.example.com.evil.example.org/runbooks/a",
            "https://docs.example.com@evil.example.org/runbooks/a",
            "https://ann@docs.example.com/runbooks/a",
            "https://docs.example.com:444/runbooks/a",
            "http://docs.example.com/runbooks/a",
            "http://h.example.com:8080/ping/more",
            "http://h.example.com:8080/pingpong",
            "file:///runbooks/a",
        ] {
            check(other, false);
        }
    }

    #[test]
    fn a_repository_is_listed_or_its_owner_is() {
        let allowed = allowed(&[], &["shop/manifests", "platform/*"], &[]).unwrap();
        let check = |name: &str, expect: bool| assert_eq!(allowed.has_repository(name), expect, "{name}");
        check("shop/manifests", true);
        check("platform/anything", true);
        for other in [
            "shop/other",
            "shop/*",
            "platform/*",
            "platform/..",
            "platform/a/b",
            "shop",
            "",
            "/",
            "platform/",
        ] {
            check(other, false);
        }
    }

    #[test]
    fn a_bucket_is_listed_with_its_account() {
        let allowed = allowed(&[], &[], &["shop/images"]).unwrap();
        assert!(allowed.has_bucket("shop", "images"));
        assert!(!allowed.has_bucket("platform", "images"));
        assert!(!allowed.has_bucket("shop", "other"));
    }

    #[test]
    fn lists_are_empty_by_default() {
        assert!(allowed(&[], &[], &[]).unwrap().is_empty());
    }

    #[test]
    fn an_invalid_entry_is_an_error() {
        let check = |urls: &[&str], repositories: &[&str], expect: &str| {
            assert_eq!(allowed(urls, repositories, &[]).unwrap_err(), expect);
        };
        check(&["docs"], &[], "`templates.allow_urls` has `docs`, which is not a URL");
        check(&["ftp://h/x"], &[], "`templates.allow_urls` has `ftp://h/x`, which is not an HTTP URL");
        check(
            &["http://h/?x"],
            &[],
            "`templates.allow_urls` has `http://h/?x`, which has components other than host and path",
        );
        check(&[], &["shop"], "`templates.allow_github` has `shop`, which is not of the form `one/other`");
    }
}
