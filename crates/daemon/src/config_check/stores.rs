//! Checks that the buckets of the configuration and of the state store can be listed, and that the messages
//! of the configured queues can be counted.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use anyhow::Context as _;
use qontract_access::{Mode, ReadPermit};
use qontract_client_blobs::Blobs;
use qontract_client_queue::Queue;
use qontract_config::Config;
use qontract_diagnostics::pluralize;
use tokio::runtime::Runtime;
use tokio::time::timeout;

use super::report::CheckReport;
use crate::targets::{BlobStores, QueueStores, secret_store, state_settings};

/// Time limit for listing a bucket, and for counting the messages of a queue.
const DEADLINE: Duration = Duration::from_secs(15);

/// Lists every bucket of `[targets]` and counts the messages of every queue.
pub fn check(config: &Config, runtime: &Runtime, report: &mut CheckReport) {
    let has_state = config.targets.state.is_some() || state_settings().is_some();
    let is_empty = !has_state && config.targets.blobs.is_empty() && config.targets.queue.is_empty();
    if config.sandbox.is_some() || is_empty {
        return;
    }
    // If Vault cannot be used, another check reports it.
    let Ok(secrets) = secret_store(config, Mode::DryRun) else { return };
    let permit = ReadPermit::for_targets(Mode::DryRun);
    let stores = BlobStores::in_buckets(&permit, config.targets.clone(), Arc::clone(&secrets) as _);
    let queues = QueueStores::configured(&permit, &config.targets, secrets);
    let mut check = |title: &str, opened: anyhow::Result<Arc<dyn Blobs>>| {
        let listed = opened.and_then(|blobs| runtime.block_on(list(&*blobs, &permit)));
        match listed {
            Ok(()) => report.ok(title, "can be listed".to_owned()),
            Err(error) => {
                let hint = "check the bucket, its key, and the permission `s3:ListBucket`";
                report.failed(title, format!("{error:#}"), hint);
            }
        }
    };
    for name in config.targets.blobs.keys() {
        check(&format!("blobs {name}"), stores.blobs(name));
    }
    if has_state {
        check("state store", stores.state());
    }
    for name in config.targets.queue.keys() {
        let title = format!("queue {name}");
        let counted = queues.queue(name).and_then(|queue| runtime.block_on(count(&*queue, &permit)));
        match counted {
            Ok(messages) => report.ok(&title, format!("has {messages}")),
            Err(error) => {
                let hint = "check the queue, its key, and the permissions `sqs:GetQueueUrl` and `sqs:GetQueueAttributes`";
                report.failed(&title, format!("{error:#}"), hint);
            }
        }
    }
}

async fn count(queue: &dyn Queue, permit: &ReadPermit) -> anyhow::Result<String> {
    let counted = timeout(DEADLINE, queue.counts(permit, SystemTime::now())).await;
    let counts = counted.with_context(|| format!("timed out after {} s", DEADLINE.as_secs()))??;
    let total = usize::try_from(counts.visible.saturating_add(counts.hidden)).unwrap_or(usize::MAX);
    Ok(format!("about {}", pluralize(total, "message")))
}

async fn list(blobs: &dyn Blobs, permit: &ReadPermit) -> anyhow::Result<()> {
    let listed = timeout(DEADLINE, blobs.list(permit, "", None)).await;
    listed.with_context(|| format!("timed out after {} s", DEADLINE.as_secs()))??;
    Ok(())
}
