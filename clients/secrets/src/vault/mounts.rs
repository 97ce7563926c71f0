//! The KV version of each mount, queried from Vault and cached.

use std::collections::BTreeMap;
use std::time::Duration;

use parking_lot::Mutex;
use qontract_access::AccessPermit;
use qontract_client_http::{Request, StatusCode};
use qontract_concurrency::OnceMap;
use serde_json::Value;
use tokio::time::Instant;

use super::Vault;
use super::call::{json, malformed};
use crate::error::SecretsError;
use crate::location::{SecretLocation, segments};

/// The version of a KV engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KvVersion {
    /// KV 1: one version of each secret, which is overwritten.
    V1,
    /// KV 2: versions, and writes with a precondition.
    V2,
}

/// A mount: its path with a trailing slash, and its KV version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mount {
    pub path: String,
    pub kv: KvVersion,
}

/// Configured and discovered mounts. Mounts are never nested, so at most one prefix of a path is a mount.
#[derive(Debug)]
pub(super) struct MountCache {
    configured: BTreeMap<String, KvVersion>,
    discovered: Mutex<BTreeMap<String, DiscoveredMount>>,
    /// The queries in progress, by the first segment of their paths. The value is the mount, if the query
    /// found one.
    queries: OnceMap<String, Option<Mount>>,
    /// Lifetime of a discovered mount.
    ttl: Duration,
}

/// A mount that was found by a query.
#[derive(Clone, Copy, Debug)]
struct DiscoveredMount {
    kv: KvVersion,
    expires: Instant,
}

impl MountCache {
    pub fn new(given: BTreeMap<String, KvVersion>, ttl: Duration) -> Self {
        let given = given.into_iter().map(|(path, kv)| (format!("{}/", path.trim_matches('/')), kv));
        Self { configured: given.collect(), discovered: Mutex::default(), queries: OnceMap::default(), ttl }
    }

    fn lookup(&self, path: &str, now: Instant) -> Option<Mount> {
        let found = self.discovered.lock();
        path.match_indices('/').find_map(|(index, _)| {
            let prefix = &path[..=index];
            let fresh = found.get(prefix).filter(|mount| now < mount.expires);
            let kv = self.configured.get(prefix).copied().or(fresh.map(|mount| mount.kv))?;
            Some(Mount { path: prefix.to_owned(), kv })
        })
    }

    fn insert(&self, mount: &Mount, now: Instant) {
        let mut found = self.discovered.lock();
        found.insert(mount.path.clone(), DiscoveredMount { kv: mount.kv, expires: now + self.ttl });
    }
}

impl Vault {
    /// The mount of a secret. Concurrent first reads of a mount share one query; a failed query is reported
    /// only to its caller, because its error names a path.
    pub(super) async fn mount(&self, access: AccessPermit<'_>, path: &str) -> Result<Mount, SecretsError> {
        let mounts = &self.shared.mounts;
        if let Some(mount) = mounts.lookup(path, Instant::now()) {
            return Ok(mount);
        }
        let mut failure = None;
        let failed = &mut failure;
        let query = Box::pin(async move {
            self.discover_mount(access, path).await.map_err(|error| *failed = Some(error)).ok()
        });
        let first = segments(path)?.first().map_or(path, |first| *first).to_owned();
        let shared = mounts.queries.entry(first).get_or_init_if(|_| false, || query).await;
        match (failure, shared) {
            (Some(error), _) => Err(error),
            (None, Some(mount)) if format!("{path}/").starts_with(&mount.path) => Ok(mount),
            // The query found another mount with the same first segment, or it failed for a reason that does
            // not concern this path.
            (None, _) => Box::pin(self.discover_mount(access, path)).await,
        }
    }

    async fn discover_mount(&self, access: AccessPermit<'_>, path: &str) -> Result<Mount, SecretsError> {
        let mount = match self.query_mount(access, path).await? {
            Some(mount) => mount,
            None => self.probe_mount(access, path).await?,
        };
        self.shared.mounts.insert(&mount, Instant::now());
        Ok(mount)
    }

    /// Queries the mount of a path. `None` if access to the path is denied, or if the server does not support
    /// the query.
    async fn query_mount(&self, access: AccessPermit<'_>, path: &str) -> Result<Option<Mount>, SecretsError> {
        let what = format!("the mount of `{path}`");
        let place = ["sys", "internal", "ui", "mounts"].into_iter().chain(segments(path)?);
        let mut request = Request::get(self.api_url(&place.collect::<Vec<_>>()));
        // Servers without this endpoint respond with one of several statuses.
        for status in [400, 404, 405, 500, 501] {
            request = request.accept_status(StatusCode::from_u16(status).expect("an HTTP status"));
        }
        let response =
            self.send_authenticated(access, request, |error| self.unreachable(error, what.clone())).await?;
        if response.status != StatusCode::OK {
            return Ok(None);
        }
        let data = &json(&response, &what)?["data"];
        let mount = data["path"].as_str().ok_or_else(|| malformed(&what, "it has no path"))?;
        let kv = parse_engine(data).map_err(|why| malformed(&what, why))?;
        let mount = format!("{}/", mount.trim_matches('/'));
        if !format!("{path}/").starts_with(&mount) {
            return Err(malformed(&what, "the mount is not a prefix of the path"));
        }
        Ok(Some(Mount { path: mount, kv }))
    }

    /// Detects the KV version of the mount at the first segment: only KV 2 has a configuration with
    /// `max_versions`.
    async fn probe_mount(&self, access: AccessPermit<'_>, path: &str) -> Result<Mount, SecretsError> {
        let first = *segments(path)?.first().unwrap_or(&path);
        let what = format!("mount `{first}/`");
        let request = Request::get(self.api_url(&[first, "config"])).accept_status(StatusCode::NOT_FOUND);
        let response =
            self.send_authenticated(access, request, |error| self.unreachable(error, what.clone())).await?;
        let kv = match response.status {
            // The version is not guessed, because with a wrong version an existing secret would seem absent.
            StatusCode::FORBIDDEN => {
                return Err(SecretsError::Denied(SecretLocation::in_mount(path, None, &format!("{first}/"))));
            }
            StatusCode::NOT_FOUND => KvVersion::V1,
            _ => match &json(&response, &what)?["data"] {
                data if data["max_versions"].is_u64() => KvVersion::V2,
                // The response is the content of a secret named `config`, so the mount has version 1.
                data if data.is_object() && data.get("max_versions").is_none() => KvVersion::V1,
                _ => return Err(malformed(&what, "its version is unknown")),
            },
        };
        Ok(Mount { path: format!("{first}/"), kv })
    }
}

/// The KV version in the description of a mount. An unknown version is an error, because a wrong guess would
/// make a secret seem absent.
fn parse_engine(data: &Value) -> Result<KvVersion, &'static str> {
    if !matches!(data["type"].as_str(), Some("kv" | "generic")) {
        return Err("its engine is not KV");
    }
    match &data["options"] {
        // Mounts without options have version 1.
        Value::Null => Ok(KvVersion::V1),
        Value::Object(options) => match options.get("version") {
            None => Ok(KvVersion::V1),
            Some(version) if version == "1" => Ok(KvVersion::V1),
            Some(version) if version == "2" => Ok(KvVersion::V2),
            Some(_) => Err("its version is unknown"),
        },
        _ => Err("its version is unknown"),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use serde_json::{Value, json};
    use tokio::time::Instant;

    use super::{KvVersion, Mount, MountCache, parse_engine};

    #[test]
    fn a_mount_is_a_configured_or_cached_prefix() {
        let start = Instant::now();
        let mounts =
            MountCache::new(BTreeMap::from([("given".to_owned(), KvVersion::V1)]), Duration::from_mins(1));
        mounts.insert(&Mount { path: "a/b/".to_owned(), kv: KvVersion::V2 }, start);
        let check = |path: &str, after: u64, expect: Option<(&str, KvVersion)>| {
            let mount = mounts.lookup(path, start + Duration::from_secs(after));
            assert_eq!(mount, expect.map(|(path, kv)| Mount { path: path.to_owned(), kv }), "{path}");
        };
        check("a/b/c", 59, Some(("a/b/", KvVersion::V2)));
        check("a/b/c", 60, None);
        check("a/bc/d", 0, None);
        check("a/b", 0, None);
        check("given/x/y", 999, Some(("given/", KvVersion::V1)));
    }

    #[test]
    fn an_unknown_engine_is_an_error() {
        let check = |kind: Value, options: Value, expect: Result<KvVersion, &'static str>| {
            let data = json!({"type": kind, "options": options});
            assert_eq!(parse_engine(&data), expect, "{data}");
        };
        check("kv".into(), json!({"version": "2"}), Ok(KvVersion::V2));
        check("kv".into(), json!({"version": "1"}), Ok(KvVersion::V1));
        check("kv".into(), json!(null), Ok(KvVersion::V1));
        check("kv".into(), json!({}), Ok(KvVersion::V1));
        check("generic".into(), json!(null), Ok(KvVersion::V1));
        for version in [json!("3"), json!(""), json!(2), json!(null), json!(["2"])] {
            check("kv".into(), json!({"version": version}), Err("its version is unknown"));
        }
        check("kv".into(), json!("2"), Err("its version is unknown"));
        check("transit".into(), json!({"version": "2"}), Err("its engine is not KV"));
        check(json!(null), json!({"version": "2"}), Err("its engine is not KV"));
    }
}
