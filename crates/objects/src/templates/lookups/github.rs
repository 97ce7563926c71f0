//! `github(repo, path, ref)`: the content of a file.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use qontract_client_http::{Request, Secret, StatusCode};
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
        let mut url = self.allowed.github_api.clone();
        let no_base = || Fault::operator("`templates.github_api` in the configuration is not an HTTP URL");
        url.path_segments_mut()
            .map_err(|()| no_base())?
            .pop_if_empty()
            .push("repos")
            .extend(repository.split('/'))
            .push("contents")
            .extend(path.split('/'));
        url.query_pairs_mut().append_pair("ref", reference);
        // A redirect is not followed: if the repository was renamed, for example, its new name might not be
        // on the allow-list.
        let request = REDIRECT_STATUSES.into_iter().fold(Request::get(url), Request::accept_status);
        let mut request = request
            .header("accept", "application/vnd.github+json")
            .header("x-github-api-version", "2022-11-28");
        if let Some(token) = &self.allowed.github_token {
            let token = secrets.read(&read.permit, token).await.map_err(|error| {
                let fault = secret_fault(&error);
                if fault.is_transient() { fault } else { Fault::operator(fault.text) }
            })?;
            read.secrets.record(token.expose());
            let header = Secret::new(format!("Bearer {}", token.expose()));
            request = request.secret_header("authorization", &header);
        }
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
    use super::{Contents, file_text};
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
}
