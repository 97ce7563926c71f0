//! A world in which every write fails and is recorded: clusters, secrets, blobs and queues.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use qontract_access::{Mode, ReadPermit, WritePermit};
use qontract_client_blobs::{
    Blob, BlobContent, BlobHead, BlobKey, BlobPage, BlobReader, BlobWriter, BlobsError, Cursor, Directory,
    Etag, Precondition,
};
use qontract_client_kubernetes::{
    ApiResource, Cluster, Kind, KubernetesError, MANAGER, Object, ObjectAddress, ObjectDraft, ObjectReader,
    ObjectVersion, ObjectWriter, Rehearsal, Sandbox, WorkloadRestart, WritePrecondition,
};
use qontract_client_promtool::Promtool;
use qontract_client_queue::{
    MessageCounts, MessageId, NewMessage, QueueDirectory, QueueError, QueueName, QueueReader, QueueWriter,
    ReceiptHandle, ReceiveOptions, ReceivedMessage,
};
use qontract_client_secrets::{
    ConfigSecrets, Secret, SecretFields, SecretReader, SecretRef, SecretWriter, SecretsError, WriteOutcome,
};
use qontract_daemon::targets::{TargetClients, made_up_secrets};
use qontract_testkit::{example, permits};

/// The attempted writes.
#[derive(Clone, Default)]
pub struct Writes(Arc<Mutex<Vec<String>>>);

impl Writes {
    /// The writes since the last call.
    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock())
    }

    fn record(&self, what: String) {
        self.0.lock().push(what);
    }
}

/// A client whose writes fail and are recorded.
struct WriteProof<T> {
    inner: T,
    writes: Writes,
}

/// The clients of a world below this directory, with the made-up secrets of the example.
pub fn clients(folder: &Path, promtool: Promtool, writes: &Writes) -> TargetClients {
    let secrets = ConfigSecrets::new(made_up_secrets(Some(&example())).unwrap());
    TargetClients {
        kubernetes: Arc::new(WriteProof { inner: Sandbox::new(folder), writes: writes.clone() }),
        secrets: Arc::new(WriteProof { inner: secrets, writes: writes.clone() }),
        blobs: Arc::new(WriteProof { inner: Directory::new(folder.join("blobs")), writes: writes.clone() }),
        queue: Arc::new(WriteProof {
            inner: QueueDirectory::new(folder.join("queue"), QueueName::new("orders").unwrap()),
            writes: writes.clone(),
        }),
        promtool,
    }
}

impl WriteProof<Sandbox> {
    fn refuse(&self, address: &ObjectAddress) -> BoxFuture<'_, Result<(), KubernetesError>> {
        let what = address.to_string();
        self.writes.record(what.clone());
        async move { Err(KubernetesError::Unsupported { what, by: "a world that fails on any write" }) }
            .boxed()
    }
}

impl ObjectReader for WriteProof<Sandbox> {
    fn api_resource<'a>(
        &'a self,
        permit: &'a ReadPermit,
        cluster: &'a Cluster,
        kind: &'a Kind,
    ) -> BoxFuture<'a, Result<ApiResource, KubernetesError>> {
        self.inner.api_resource(permit, cluster, kind)
    }

    fn list<'a>(
        &'a self,
        permit: &'a ReadPermit,
        cluster: &'a Cluster,
        kind: &'a Kind,
        namespace: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Vec<Object>, KubernetesError>> {
        self.inner.list(permit, cluster, kind, namespace)
    }

    fn get<'a>(
        &'a self,
        permit: &'a ReadPermit,
        cluster: &'a Cluster,
        address: &'a ObjectAddress,
    ) -> BoxFuture<'a, Result<Option<Object>, KubernetesError>> {
        self.inner.get(permit, cluster, address)
    }

    fn rehearse<'a>(
        &'a self,
        permit: &'a ReadPermit,
        cluster: &'a Cluster,
        manager: &'a str,
        draft: &'a ObjectDraft,
    ) -> BoxFuture<'a, Result<Rehearsal, KubernetesError>> {
        self.inner.rehearse(permit, cluster, manager, draft)
    }
}

impl ObjectWriter for WriteProof<Sandbox> {
    fn put<'a>(
        &'a self,
        _: &'a WritePermit,
        _: &'a Cluster,
        _: &'a str,
        draft: &'a ObjectDraft,
    ) -> BoxFuture<'a, Result<(), KubernetesError>> {
        self.refuse(&draft.address)
    }

    fn remove<'a>(
        &'a self,
        _: &'a WritePermit,
        _: &'a Cluster,
        address: &'a ObjectAddress,
        _: &'a ObjectVersion,
    ) -> BoxFuture<'a, Result<(), KubernetesError>> {
        self.refuse(address)
    }

    fn restart<'a>(
        &'a self,
        _: &'a WritePermit,
        _: &'a Cluster,
        restart: &'a WorkloadRestart,
    ) -> BoxFuture<'a, Result<(), KubernetesError>> {
        self.refuse(&restart.address)
    }
}

impl SecretReader for WriteProof<ConfigSecrets> {
    fn read<'a>(
        &'a self,
        permit: &'a ReadPermit,
        secret: &'a SecretRef,
    ) -> BoxFuture<'a, Result<Secret, SecretsError>> {
        self.inner.read(permit, secret)
    }

    fn read_all<'a>(
        &'a self,
        permit: &'a ReadPermit,
        path: &'a str,
        version: Option<u64>,
    ) -> BoxFuture<'a, Result<SecretFields, SecretsError>> {
        self.inner.read_all(permit, path, version)
    }
}

impl SecretWriter for WriteProof<ConfigSecrets> {
    fn write<'a>(
        &'a self,
        _: &'a WritePermit,
        path: &'a str,
        _: &'a SecretFields,
    ) -> BoxFuture<'a, Result<WriteOutcome, SecretsError>> {
        self.writes.record(format!("secret {path}"));
        async { Err(SecretsError::Unsupported("this world fails on any write")) }.boxed()
    }
}

impl BlobReader for WriteProof<Directory> {
    fn get<'a>(
        &'a self,
        permit: &'a ReadPermit,
        key: &'a BlobKey,
    ) -> BoxFuture<'a, Result<Option<Blob>, BlobsError>> {
        self.inner.get(permit, key)
    }

    fn head<'a>(
        &'a self,
        permit: &'a ReadPermit,
        key: &'a BlobKey,
    ) -> BoxFuture<'a, Result<Option<BlobHead>, BlobsError>> {
        self.inner.head(permit, key)
    }

    fn list<'a>(
        &'a self,
        permit: &'a ReadPermit,
        prefix: &'a str,
        cursor: Option<&'a Cursor>,
    ) -> BoxFuture<'a, Result<BlobPage, BlobsError>> {
        self.inner.list(permit, prefix, cursor)
    }
}

impl BlobWriter for WriteProof<Directory> {
    fn put<'a>(
        &'a self,
        _: &'a WritePermit,
        key: &'a BlobKey,
        _: &'a BlobContent,
        _: &'a Precondition,
    ) -> BoxFuture<'a, Result<Etag, BlobsError>> {
        self.writes.record(format!("blob {key}"));
        async { Err(BlobsError::Unsupported("this world fails on any write".to_owned())) }.boxed()
    }

    fn delete<'a>(
        &'a self,
        _: &'a WritePermit,
        key: &'a BlobKey,
        _: Option<&'a Etag>,
    ) -> BoxFuture<'a, Result<(), BlobsError>> {
        self.writes.record(format!("blob {key}"));
        async { Err(BlobsError::Unsupported("this world fails on any write".to_owned())) }.boxed()
    }
}

impl WriteProof<QueueDirectory> {
    fn refuse<T: Send>(&self, what: &str) -> BoxFuture<'_, Result<T, QueueError>> {
        self.writes.record(format!("queue {what}"));
        async { Err(QueueError::Unsupported("this world fails on any write".to_owned())) }.boxed()
    }
}

impl QueueReader for WriteProof<QueueDirectory> {
    fn counts<'a>(
        &'a self,
        permit: &'a ReadPermit,
        now: SystemTime,
    ) -> BoxFuture<'a, Result<MessageCounts, QueueError>> {
        self.inner.counts(permit, now)
    }
}

impl QueueWriter for WriteProof<QueueDirectory> {
    fn send<'a>(
        &'a self,
        _: &'a WritePermit,
        _: &'a NewMessage,
        _: SystemTime,
    ) -> BoxFuture<'a, Result<MessageId, QueueError>> {
        self.refuse("send")
    }

    fn receive<'a>(
        &'a self,
        _: &'a WritePermit,
        _: ReceiveOptions,
        _: SystemTime,
    ) -> BoxFuture<'a, Result<Vec<ReceivedMessage>, QueueError>> {
        self.refuse("receive")
    }

    fn delete<'a>(
        &'a self,
        _: &'a WritePermit,
        _: &'a ReceiptHandle,
        _: SystemTime,
    ) -> BoxFuture<'a, Result<(), QueueError>> {
        self.refuse("delete")
    }

    fn change_visibility<'a>(
        &'a self,
        _: &'a WritePermit,
        _: &'a ReceiptHandle,
        _: Duration,
        _: SystemTime,
    ) -> BoxFuture<'a, Result<(), QueueError>> {
        self.refuse("hide")
    }
}

/// Every client records its writes. The clients are listed without `..`, so that a new client does not compile
/// until it is part of this world.
#[tokio::test]
async fn every_client_of_the_world_records_its_writes() {
    let (scratch, writes) = (qontract_testkit::Scratch::new(), Writes::default());
    let promtool = Promtool::new(Err("not needed".to_owned()));
    // promtool has no Write half.
    let TargetClients { kubernetes, secrets, blobs, queue, promtool: _ } =
        clients(scratch.path(), promtool, &writes);
    let permit = permits(Mode::Real).write.unwrap();
    let cluster = Cluster { name: "c1".to_owned(), server: "https://c1.example.com".to_owned(), token: None };
    let address = ObjectAddress::cluster_scoped(Kind::namespace(), "shop");
    let (precondition, body) = (WritePrecondition::Absent, serde_json::json!({}));
    let draft = ObjectDraft { address, body, precondition, is_sensitive: false };
    kubernetes.put(&permit, &cluster, MANAGER, &draft).await.unwrap_err();
    assert_eq!(writes.take().len(), 1);
    secrets.write(&permit, "creds/shop", &SecretFields::new()).await.unwrap_err();
    assert_eq!(writes.take(), ["secret creds/shop"]);
    let key = BlobKey::new("a").unwrap();
    blobs.put(&permit, &key, &BlobContent::new("x"), &Precondition::Any).await.unwrap_err();
    blobs.delete(&permit, &key, None).await.unwrap_err();
    assert_eq!(writes.take(), ["blob a", "blob a"]);
    let (now, receipt) = (SystemTime::now(), ReceiptHandle("r".to_owned()));
    queue.send(&permit, &NewMessage::new("x").unwrap(), now).await.unwrap_err();
    queue.receive(&permit, ReceiveOptions::new(1, Duration::ZERO).unwrap(), now).await.unwrap_err();
    queue.delete(&permit, &receipt, now).await.unwrap_err();
    queue.change_visibility(&permit, &receipt, Duration::ZERO, now).await.unwrap_err();
    assert_eq!(writes.take(), ["queue send", "queue receive", "queue delete", "queue hide"]);
    assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 0);
}
