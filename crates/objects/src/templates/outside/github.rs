//! `github(repo, path, ref)`: the text of a file.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use qontract_client_http::{Request, Secret, StatusCode};
use qontract_client_secrets::Reader;
use qontract_runtime::{Fault, Read};
use qontract_template::{Answer, Data};
use serde::Deserialize;

use super::{ELSEWHERE, Found, Outward, failed, not_named};

/// What GitHub tells about a file.
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

impl Outward {
    pub(super) async fn github(&self, read: &Read, secrets: &dyn Reader, file: GithubFile<'_>) -> Found {
        let GithubFile { repository, path, reference } = file;
        if !self.allowed.has_repository(repository) {
            return Ok(Answer::Failed(not_named("allow_github")));
        }
        let path = path.strip_prefix('/').unwrap_or(path);
        // The parser of addresses drops control characters, and would then see dots.
        let is_plain = !path.chars().any(char::is_control);
        if !is_plain || path.split('/').any(|part| ["", ".", ".."].contains(&part)) {
            return Ok(Answer::Failed("its path is none of a file".to_owned()));
        }
        let mut url = self.allowed.github_api.clone();
        let no_base =
            || Fault::operator("`templates.github_api` in the configuration is no address of the web");
        url.path_segments_mut()
            .map_err(|()| no_base())?
            .pop_if_empty()
            .push("repos")
            .extend(repository.split('/'))
            .push("contents")
            .extend(path.split('/'));
        url.query_pairs_mut().append_pair("ref", reference);
        // A repository that was renamed, say: what it is called now may not be on the list.
        let request = ELSEWHERE.into_iter().fold(Request::get(url), Request::also);
        let mut request = request
            .header("accept", "application/vnd.github+json")
            .header("x-github-api-version", "2022-11-28");
        if let Some(token) = &self.allowed.github_token {
            let token = secrets.read(&read.permit, token).await.map_err(|error| {
                let fault = crate::resources::resolve::fault(&error);
                if fault.is_transient() { fault } else { Fault::operator(fault.text) }
            })?;
            read.secrets.record(token.expose());
            let header = Secret::new(format!("Bearer {}", token.expose()));
            request = request.secret_header("authorization", &header);
        }
        let response = match self.http.read(&read.permit, request).await {
            Ok(response) => response,
            Err(error) if error.status() == Some(StatusCode::NOT_FOUND) => {
                return Ok(Answer::Failed("it is not there, or not shown to us".to_owned()));
            }
            Err(error) => return Err(failed(&error)),
        };
        if ELSEWHERE.contains(&response.status) {
            return Ok(Answer::Failed("it is somewhere else now: name that".to_owned()));
        }
        Ok(match serde_json::from_slice::<Contents>(&response.body) {
            Ok(file) => text(&file).map_or_else(|why| Answer::Failed(why.to_owned()), Answer::Known),
            // A folder is a list.
            Err(_) => Answer::Failed("it is no file".to_owned()),
        })
    }
}

/// The text of a file.
fn text(file: &Contents) -> Result<Data, &'static str> {
    match (file.r#type.as_str(), file.encoding.as_str()) {
        ("file", "base64") => {
            let folded: String = file.content.chars().filter(|one| !one.is_ascii_whitespace()).collect();
            let bytes = STANDARD.decode(folded).map_err(|_| "its content is no base64")?;
            String::from_utf8(bytes).map(Data::Text).map_err(|_| "it is no text")
        }
        ("file", "none") => Err("it is larger than GitHub tells"),
        _ => Err("it is no file"),
    }
}

#[cfg(test)]
mod tests {
    use super::{Contents, text};
    use qontract_template::Data;

    #[test]
    fn only_a_file_that_is_text_has_a_text() {
        let check = |kind: &str, encoding: &str, content: &str, expect: Result<&str, &str>| {
            let file = Contents {
                r#type: kind.to_owned(),
                encoding: encoding.to_owned(),
                content: content.to_owned(),
            };
            assert_eq!(text(&file), expect.map(Data::text), "{kind} {encoding} {content}");
        };
        check("file", "base64", "aGVs\nbG8=\n", Ok("hello"));
        check("file", "base64", "", Ok(""));
        check("file", "base64", "?", Err("its content is no base64"));
        check("file", "base64", "/w==", Err("it is no text"));
        check("file", "none", "", Err("it is larger than GitHub tells"));
        check("submodule", "", "", Err("it is no file"));
    }
}
