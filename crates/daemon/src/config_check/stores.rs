//! Checks that the buckets of the configuration, and that of the state store, can be listed.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use qontract_access::{Mode, ReadPermit};
use qontract_client_blobs::Blobs;
use qontract_config::Config;
use tokio::runtime::Runtime;
use tokio::time::timeout;

use super::report::CheckReport;
use crate::targets::{BlobStores, secret_store, state_settings};

/// Time limit for listing a bucket.
const DEADLINE: Duration = Duration::from_secs(15);

/// Lists every bucket of `[targets]`.
pub fn check(config: &Config, runtime: &Runtime, report: &mut CheckReport) {
    let has_state = config.targets.state.is_some() || state_settings().is_some();
    if config.sandbox.is_some() || (!has_state && config.targets.blobs.is_empty()) {
        return;
    }
    // A Vault that cannot be used is reported separately.
    let Ok(secrets) = secret_store(config, Mode::DryRun) else { return };
    let permit = ReadPermit::for_targets(Mode::DryRun);
    let stores = BlobStores::in_buckets(&permit, config.targets.clone(), secrets);
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
}

async fn list(blobs: &dyn Blobs, permit: &ReadPermit) -> anyhow::Result<()> {
    let listed = timeout(DEADLINE, blobs.list(permit, "", None)).await;
    listed.with_context(|| format!("timed out after {} s", DEADLINE.as_secs()))??;
    Ok(())
}
