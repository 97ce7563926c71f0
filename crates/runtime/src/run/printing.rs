//! Prints the desired state: a run that ends after `resolve`, without reading or changing the target.
//!
//! **Invariant:** the printed text contains no secret that the shard has read, and no character that a terminal
//! interprets. A text that contains either is withheld completely, because a part of the text would be different
//! data.

use futures_util::future::BoxFuture;
use futures_util::{FutureExt as _, StreamExt as _};
use qontract_diagnostics::sanitize_lines;
use qontract_telemetry::activity;

use super::round::{ActiveShard, RoundRunner};
use super::selection::ShardSelection;
use super::unresolved::{NOT_PRINTED, Unresolved};
use crate::contract::ReadContext;
use crate::deadline::with_deadline;
use crate::fault::Fault;
use crate::key::ShardKey;
use crate::outcome::RunOutcome;
use crate::redaction::ShardRedactor;
use crate::type_erasure::{DesiredKind, PrintedShard};

impl RoundRunner<'_> {
    /// Resolves the shards concurrently and adds their printed desired states to the outcome. A shard that exists
    /// only in base has no desired state.
    pub async fn print_shards(&self, work: ShardSelection, outcome: &mut RunOutcome) {
        let live = self.activate(&work, outcome);
        let read = &self.read_context();
        let mut printing: Vec<BoxFuture<'_, _>> = Vec::new();
        for shard in live.iter().filter(|shard| !shard.is_orphan) {
            printing.push(self.print_redacted(read, shard).map(|printed| (&shard.key, printed)).boxed());
        }
        let width = self.limits.max_shards.max(1);
        let printed: Vec<(&ShardKey, PrintedShard)> =
            futures_util::stream::iter(printing).buffer_unordered(width).collect().await;
        for (key, PrintedShard { text, faults }) in printed {
            let Some(shard) = outcome.shards.get_mut(key) else { continue };
            shard.printed = text;
            shard.faults.extend(faults.into_iter().filter(|fault| !fault.is_interrupted));
        }
    }

    /// Prints a shard, but withholds a text that contains a secret that the shard has read.
    async fn print_redacted(&self, read: &ReadContext, shard: &ActiveShard<'_>) -> PrintedShard {
        let (secrets, declared, key) = (shard.secrets.clone(), shard.declared, &shard.key);
        let read = &ReadContext { secrets: secrets.clone(), trust: shard.trust.clone(), ..read.clone() };
        let printing = async {
            tokio::select! {
                biased;
                printed = self.print_shard(read, shard) => printed,
                () = self.request.shutdown.requested() => Err(Fault::interrupted("interrupted")),
            }
        };
        let printed = with_deadline(self.limits.phase_timeout * 2, "printing", printing).await;
        let redactor = ShardRedactor::new(secrets.redactor(|| self.integration.public_texts(declared, key)));
        let PrintedShard { text, faults } =
            printed.unwrap_or_else(|fault| PrintedShard { text: None, faults: vec![fault] });
        let mut faults: Vec<Fault> = faults.into_iter().map(|fault| redactor.fault(fault)).collect();
        let withheld = |text: &String| {
            if redactor.finds_in_lines(text) {
                Some(format!("`{key}` is not printed: its text contains a secret"))
            } else if sanitize_lines(text) != *text {
                Some(format!("`{key}` is not printed: its text contains control characters"))
            } else {
                None
            }
        };
        let text = match text.as_ref().map(withheld) {
            Some(Some(why)) => {
                faults.push(Fault::internal(why));
                None
            }
            Some(None) | None => text,
        };
        PrintedShard { text, faults }
    }

    async fn print_shard(&self, read: &ReadContext, shard: &ActiveShard<'_>) -> Result<PrintedShard, Fault> {
        let (phase, key, declared) = (self.limits.phase_timeout, &shard.key, shard.declared);
        let desired = {
            let _activity = activity::phase("resolve", format!("resolve `{key}`"));
            with_deadline(phase, "resolve", self.integration.resolve(read, declared, key)).await?
        };
        let printing = self.integration.print(read, declared, key, &desired);
        let mut printed = with_deadline(phase, "print", printing).await?;
        let mut unresolved = Unresolved::default();
        for fact in &desired.facts {
            if let DesiredKind::Unresolved(fault) = &fact.kind {
                unresolved.add(&fact.object, fact.place.as_ref(), fault);
            }
        }
        printed.faults.extend(unresolved.into_faults(NOT_PRINTED));
        Ok(printed)
    }
}
