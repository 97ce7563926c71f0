//! `github(repo, path, ref)`: the content of a file.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use qontract_client_http::{Request, Secret, StatusCode, Url};
use qontract_client_secrets::SecretReader;
use qontract_runtime::{Fault, ReadContext};
use qontract_template::{Data, LookupState};
use serde::Deserialize;

use super::{HttpLookups, LookupResult, REDIRECT_STATUSES, not_allowed, request_fault, secret_fault};

/// The GitHub response for a file.
#[derive(Deserialize)]
struct Contents {
    r#type: String,
    #[serde(default)]
    encoding: String,
    #[serde(default)]
    content: String,
}

/// A file of a repository at a branch, tag or commit.
pub(super) struct GithubFile<'a> {
    pub repository: &'a str,
    pub path: &'a str,
    pub reference: &'a str,
}

impl HttpLookups {
    pub(super) async fn github(
        &self,
        read: &ReadContext,
        secrets: &dyn SecretReader,
        file: GithubFile<'_>,
    ) -> LookupResult {
        let GithubFile { repository, path, reference } = file;
        if !self.allowed.has_repository(repository) {
            return Ok(LookupState::Failed(not_allowed("allow_github")));
        }
        let path = path.strip_prefix('/').unwrap_or(path);
        // A path with control characters is refused: the URL parser drops these characters, which could
        // produce dot segments.
        let is_plain = !path.chars().any(char::is_control);
        if !is_plain || path.split('/').any(|part| ["", ".", ".."].contains(&part)) {
            return Ok(LookupState::Failed("its path is not a file path".to_owned()));
        }
        let mut url = self.repository_url(repository)?;
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.push("contents").extend(path.split('/'));
        }
        url.query_pairs_mut().append_pair("ref", reference);
        let request = self.github_request(read, secrets, url).await?;
        let request = request.header("accept", "application/vnd.github+json");
        let response = match self.http.read(&read.permit, request).await {
            Ok(response) => response,
            Err(error) if error.status() == Some(StatusCode::NOT_FOUND) => {
                return Ok(LookupState::Failed(
                    "it does not exist, or the token has no access to it".to_owned(),
                ));
            }
            Err(error) => return Err(request_fault(&error)),
        };
        if REDIRECT_STATUSES.contains(&response.status) {
            return Ok(LookupState::Failed("it has moved: use its new name".to_owned()));
        }
        Ok(match serde_json::from_slice::<Contents>(&response.body) {
            Ok(file) => {
                file_text(&file).map_or_else(|why| LookupState::Failed(why.to_owned()), LookupState::Ready)
            }
            // GitHub responds with a list for a directory.
            Err(_) => LookupState::Failed("it is not a file".to_owned()),
        })
    }
}

impl HttpLookups {
    /// The commit of a branch, tag or commit of a repository.
    pub(super) async fn commit(
        &self,
        read: &ReadContext,
        secrets: &dyn SecretReader,
        commit: GithubRef<'_>,
    ) -> Result<String, Fault> {
        let GithubRef { repository, reference } = commit;
        let mut url = self.repository_url(repository)?;
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.push("commits").push(reference);
        }
        let request = self.github_request(read, secrets, url).await?;
        // The media type makes GitHub respond with the commit alone.
        let request = request.header("accept", "application/vnd.github.sha");
        let unknown = || {
            let text =
                format!("the ref `{reference}` of `{repository}` does not exist, or the token has no access");
            Fault::author(text)
        };
        let response = match self.http.read(&read.permit, request).await {
            Ok(response) if REDIRECT_STATUSES.contains(&response.status) => {
                return Err(Fault::author(format!("`{repository}` has moved: use its new name")));
            }
            Ok(response) => response,
            Err(error)
                if matches!(
                    error.status(),
                    Some(StatusCode::NOT_FOUND | StatusCode::UNPROCESSABLE_ENTITY)
                ) =>
            {
                return Err(unknown());
            }
            Err(error) => return Err(request_fault(&error)),
        };
        let commit = String::from_utf8_lossy(&response.body).trim().to_owned();
        if is_commit(&commit) { Ok(commit) } else { Err(Fault::remote("GitHub responded without a commit")) }
    }

    /// The URL of a repository in the GitHub API.
    fn repository_url(&self, repository: &str) -> Result<Url, Fault> {
        let mut url = self.allowed.github_api.clone();
        let no_base = || Fault::operator("`templates.github_api` in the configuration is not an HTTP URL");
        url.path_segments_mut()
            .map_err(|()| no_base())?
            .pop_if_empty()
            .push("repos")
            .extend(repository.split('/'));
        Ok(url)
    }

    /// A request to the GitHub API, with the token of the configuration.
    ///
    /// A redirect is not followed: if the repository was renamed, for example, its new name might not be on the
    /// allow-list.
    async fn github_request(
        &self,
        read: &ReadContext,
        secrets: &dyn SecretReader,
        url: Url,
    ) -> Result<Request, Fault> {
        let request = REDIRECT_STATUSES.into_iter().fold(Request::get(url), Request::accept_status);
        let request = request.header("x-github-api-version", "2022-11-28");
        let Some(token) = &self.allowed.github_token else { return Ok(request) };
        let token = secrets.read(&read.permit, token).await.map_err(|error| {
            let fault = secret_fault(&error);
            if fault.is_transient() { fault } else { Fault::operator(fault.text) }
        })?;
        read.secrets.record(token.expose());
        let header = Secret::new(format!("Bearer {}", token.expose()));
        Ok(request.secret_header("authorization", &header))
    }
}

/// A branch, tag or commit of a repository, whose name is its owner and its name.
#[derive(Clone, Copy, Debug)]
pub(super) struct GithubRef<'a> {
    pub repository: &'a str,
    pub reference: &'a str,
}

/// Whether a string is the whole name of a commit.
pub(super) fn is_commit(text: &str) -> bool {
    text.len() == 40 && text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

/// The owner and the name of a repository on GitHub; `None` for other hosts.
pub(super) fn github_repository(url: &str) -> Option<&str> {
    let path = url.strip_prefix("https://github.com/")?.trim_end_matches('/');
    let path = path.strip_suffix(".git").unwrap_or(path);
    let is_plain = |part: &str| {
        !["", ".", ".."].contains(&part)
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
    };
    let (owner, name) = path.split_once('/')?;
    (is_plain(owner) && is_plain(name)).then_some(path)
}

/// The decoded content of a file.
fn file_text(file: &Contents) -> Result<Data, &'static str> {
    match (file.r#type.as_str(), file.encoding.as_str()) {
        ("file", "base64") => {
            let folded: String = file.content.chars().filter(|one| !one.is_ascii_whitespace()).collect();
            let bytes = STANDARD.decode(folded).map_err(|_| "its content is not base64")?;
            String::from_utf8(bytes).map(Data::Text).map_err(|_| "it is not text")
        }
        ("file", "none") => Err("it is too large for the GitHub contents API"),
        _ => Err("it is not a file"),
    }
}

#[cfg(test)]
mod tests {
    use super::{Contents, file_text, github_repository, is_commit};
    use qontract_template::Data;

    #[test]
    fn only_a_text_file_has_a_text() {
        let check = |kind: &str, encoding: &str, content: &str, expect: Result<&str, &str>| {
            let file = Contents {
                r#type: kind.to_owned(),
                encoding: encoding.to_owned(),
                content: content.to_owned(),
            };
            assert_eq!(file_text(&file), expect.map(Data::text), "{kind} {encoding} {content}");
        };
        check("file", "base64", "aGVs\nbG8=\n", Ok("hello"));
        check("file", "base64", "", Ok(""));
        check("file", "base64", "?", Err("its content is not base64"));
        check("file", "base64", "/w==", Err("it is not text"));
        check("file", "none", "", Err("it is too large for the GitHub contents API"));
        check("submodule", "", "", Err("it is not a file"));
    }

    #[test]
    fn only_repositories_on_github_are_recognised() {
        let check = |url: &str, expect: Option<&str>| assert_eq!(github_repository(url), expect, "{url}");
        check("https://github.com/app-sre/qontract-reconcile", Some("app-sre/qontract-reconcile"));
        check("https://github.com/o/r.git/", Some("o/r"));
        check("https://gitlab.example.com/o/r", None);
        check("https://github.com/o", None);
        check("https://github.com/o/r/../x", None);
        check("https://github.com/../r", None);
    }

    #[test]
    fn a_commit_has_forty_digits() {
        assert!(is_commit(&"a1".repeat(20)));
        assert!(!is_commit("main") && !is_commit(&"A1".repeat(20)) && !is_commit(&"a".repeat(41)));
    }
}
