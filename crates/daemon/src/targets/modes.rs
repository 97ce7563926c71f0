//! The access modes of clients.

use qontract_access::Mode;

/// The mode of each client: a run may write to one target system and only read from the others.
///
/// ```
/// use qontract_access::Mode;
/// use qontract_daemon::targets::ClientModes;
///
/// let only_secrets = ClientModes { secrets: Mode::Real, ..ClientModes::from(Mode::DryRun) };
/// assert_eq!(only_secrets.kubernetes, Mode::DryRun);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientModes {
    /// The mode of the clients of clusters.
    pub kubernetes: Mode,
    /// The mode of the client of the secret store.
    pub secrets: Mode,
    /// The mode of the clients of buckets and of the state store.
    pub blobs: Mode,
    /// The mode of the clients of queues.
    pub queue: Mode,
    /// The mode of the clients for the sources of templates, which are only read.
    pub lookups: Mode,
}

impl From<Mode> for ClientModes {
    /// Uses one mode for all clients.
    fn from(mode: Mode) -> Self {
        Self { kubernetes: mode, secrets: mode, blobs: mode, queue: mode, lookups: mode }
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use qontract_access::{Mode, WritePermit};
    use qontract_client_blobs::{BlobContent, BlobKey, Precondition};
    use qontract_client_kubernetes::{Cluster, Kind, MANAGER, ObjectAddress, ObjectDraft, WritePrecondition};
    use qontract_client_queue::NewMessage;
    use qontract_client_secrets::{Secret, SecretFields};
    use qontract_config::Config;
    use qontract_testkit::{Scratch, permits};

    use super::ClientModes;
    use crate::targets::{SandboxLocation, Targets};

    /// The names of the clients that can write with the permit of a real run.
    async fn writing_clients(targets: &Targets, permit: &WritePermit) -> Vec<&'static str> {
        let cluster =
            Cluster { name: "c1".to_owned(), server: "https://c1.example.com".to_owned(), token: None };
        let address = ObjectAddress::cluster_scoped(Kind::namespace(), "shop");
        let (precondition, body) = (WritePrecondition::Absent, serde_json::json!({}));
        let draft = ObjectDraft { address, body, precondition, is_sensitive: false };
        let kubernetes = targets.kubernetes().unwrap().put(permit, &cluster, MANAGER, &draft).await.is_ok();
        let fields = SecretFields::from([("token".to_owned(), Secret::new("t0ken"))]);
        let secrets = targets.secrets().write(permit, "creds/shop", &fields).await.is_ok();
        let (key, content) = (BlobKey::new("a").unwrap(), BlobContent::new("x"));
        let (any, message) = (Precondition::Any, NewMessage::new("x").unwrap());
        let blobs = targets.blobs("reports").unwrap().put(permit, &key, &content, &any).await.is_ok();
        let queue = targets.queue("orders").unwrap().send(permit, &message, SystemTime::now()).await.is_ok();
        let clients = [("kubernetes", kubernetes), ("secrets", secrets), ("blobs", blobs), ("queue", queue)];
        clients.into_iter().filter(|(_, has_written)| *has_written).map(|(client, _)| client).collect()
    }

    #[tokio::test]
    async fn each_client_writes_only_in_its_own_mode() {
        let (permit, dry) = (permits(Mode::Real).write.unwrap(), ClientModes::from(Mode::DryRun));
        let real = Mode::Real;
        for (modes, expect) in [
            (dry, &[][..]),
            (ClientModes { secrets: real, ..dry }, &["secrets"]),
            (ClientModes { kubernetes: real, ..dry }, &["kubernetes"]),
            (ClientModes { blobs: real, ..dry }, &["blobs"]),
            (ClientModes { queue: real, ..dry }, &["queue"]),
            (ClientModes::from(real), &["kubernetes", "secrets", "blobs", "queue"]),
        ] {
            let scratch = Scratch::new();
            let location = SandboxLocation { folder: Some(scratch.path()), repo: None };
            let targets = Targets::new(&Config::default(), location, modes).unwrap();
            assert_eq!(writing_clients(&targets, &permit).await, expect, "{modes:?}");
            let is_untouched = std::fs::read_dir(scratch.path()).unwrap().next().is_none();
            assert_eq!(is_untouched, expect.is_empty(), "{modes:?}");
        }
    }
}
