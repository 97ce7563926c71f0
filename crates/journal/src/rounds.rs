//! The steps of rounds, which are stored before the first of them is applied (write-ahead), and their results.
//!
//! A run whose record was stored has ended, even if its rounds have no results. A run with rounds and without a
//! record is in progress or was killed; its rounds list the changes that it may have made.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use qontract_access::{ReadPermit, WritePermit};
use qontract_bundle::Sha256;
use qontract_client_blobs::{BlobContent, BlobKey, Blobs, BlobsError, Precondition};
use qontract_runtime::StepResult;
use qontract_runtime::audit::{IntendedChange, IntendedRound, IntendedStep};
use qontract_runtime::record::BundleRecord;
use serde::{Deserialize, Serialize};

use crate::lease::LeaseProcess;
use crate::run_key::{RunId, days_since};

/// The key prefix of rounds.
const PREFIX: &str = "rounds/";

/// The version of the format of rounds.
const VERSION: u32 = 1;

/// The end of the key that a process writes before it reports a run that did not finish.
const REPORTED: &str = "reported";

/// Number of hexadecimal digits of a shard's digest in a key.
const DIGEST_LEN: usize = 12;

/// A round of one shard.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoundRecord {
    version: u32,
    /// The id of the run.
    pub run: String,
    /// The start time of the run.
    pub began: Timestamp,
    /// The bundle of the run.
    pub head: BundleRecord,
    /// The process of the run.
    pub process: LeaseProcess,
    /// The number of the round in the run, over all shards.
    pub number: u32,
    /// The shard of the round.
    pub shard: String,
    /// The time at which the round started to apply its steps.
    pub at: Timestamp,
    /// The steps that the round applies.
    pub steps: Vec<IntendedStep>,
    /// The results of the changes that were attempted, in the order in which they were reported; `None` if the
    /// results are not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub results: Option<Vec<ChangeResult>>,
}

/// The result of a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeResult {
    /// The change, as shown to people.
    pub text: String,
    /// The result of the change.
    pub result: StepResult,
}

impl RoundRecord {
    /// The changes that may be partially applied: all changes of the round if the results are not known, and
    /// otherwise those that were interrupted.
    pub fn uncertain_changes(&self) -> impl Iterator<Item = &IntendedChange> {
        let changes = self.steps.iter().flat_map(|step| &step.changes);
        changes.filter(|change| match &self.results {
            None => true,
            Some(results) => results
                .iter()
                .any(|result| result.text == change.text && result.result == StepResult::Interrupted),
        })
    }
}

/// The run to which rounds belong.
#[derive(Clone, Debug)]
pub struct RoundOwner {
    /// The id of the run.
    pub run: RunId,
    /// The start time of the run.
    pub began: Timestamp,
    /// The bundle of the run.
    pub head: BundleRecord,
    /// The process of the run.
    pub process: LeaseProcess,
}

impl RoundOwner {
    /// Creates the record of a round of this run that starts now.
    pub fn round(&self, number: u32, intended: &IntendedRound, now: Timestamp) -> RoundRecord {
        let Self { run, began, head, process } = self.clone();
        RoundRecord {
            version: VERSION,
            run: run.to_string(),
            began,
            head,
            process,
            number,
            shard: intended.shard.to_string(),
            at: now,
            steps: intended.steps.clone(),
            results: None,
        }
    }
}

/// Access to the rounds in a store.
#[derive(Clone)]
pub struct Rounds {
    blobs: Arc<dyn Blobs>,
    read: ReadPermit,
}

impl fmt::Debug for Rounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rounds").finish_non_exhaustive()
    }
}

impl Rounds {
    /// Creates access to the rounds in a store.
    pub fn new(blobs: Arc<dyn Blobs>) -> Self {
        Self { blobs, read: ReadPermit::for_data() }
    }

    /// Stores a round; a round with results replaces the stored round without results.
    pub async fn store(&self, write: &WritePermit, round: &RoundRecord) -> Result<(), BlobsError> {
        let Some(run) = RunId::parse(&round.run) else { return Ok(()) };
        let digest = Sha256::of(round.shard.as_bytes()).to_string();
        let key = format!("{}{:05}-{}", prefix(&run), round.number, &digest[..DIGEST_LEN]);
        let bytes = serde_json::to_vec(round).expect("a round can be written as JSON");
        let content = BlobContent::new(bytes);
        self.blobs.put(write, &BlobKey::new(key)?, &content, &Precondition::Any).await.map(drop)
    }

    /// The runs since a time that have rounds, with the keys of their rounds in the order in which they were made.
    pub async fn runs(
        &self,
        since: Option<Timestamp>,
        now: Timestamp,
    ) -> Result<BTreeMap<RunId, Vec<String>>, BlobsError> {
        let first = since.map(|since| since.strftime("%Y%m%dT%H%M%SZ").to_string()).unwrap_or_default();
        let mut runs: BTreeMap<RunId, Vec<String>> = BTreeMap::new();
        for prefix in days_since(PREFIX, since, now) {
            for key in self.blobs.keys(&self.read, &prefix).await? {
                let run = key.rsplit_once('/').and_then(|(_, name)| RunId::parse(name.split_once('~')?.0));
                if let Some(run) = run.filter(|run| run.second() >= first.as_str()) {
                    runs.entry(run).or_default().push(key);
                }
            }
        }
        Ok(runs)
    }

    /// The keys of the rounds of a run, in the order in which they were made.
    pub async fn of_run(&self, run: &RunId) -> Result<Vec<String>, BlobsError> {
        self.blobs.keys(&self.read, &prefix(run)).await
    }

    /// Claims the report about a run that did not finish: returns `true` for the first caller only.
    pub async fn claim_report(&self, write: &WritePermit, run: &RunId) -> Result<bool, BlobsError> {
        let key = BlobKey::new(format!("{}{REPORTED}", prefix(run)))?;
        match self.blobs.put(write, &key, &BlobContent::new(""), &Precondition::IfAbsent).await {
            Ok(_) => Ok(true),
            Err(BlobsError::Stale { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Reads rounds. Rounds that were removed since they were listed, and rounds that cannot be read, are omitted.
    pub async fn read(&self, keys: &[String]) -> Result<Vec<RoundRecord>, BlobsError> {
        let mut rounds = Vec::new();
        for key in keys {
            let blob = self.blobs.get(&self.read, &BlobKey::new(key.as_str())?).await?;
            rounds.extend(blob.and_then(|blob| serde_json::from_slice::<RoundRecord>(&blob.bytes).ok()));
        }
        Ok(rounds)
    }

    /// Removes the rounds of a run.
    pub async fn remove(&self, write: &WritePermit, run: &RunId) -> Result<(), BlobsError> {
        for key in self.of_run(run).await? {
            self.blobs.delete(write, &BlobKey::new(key)?, None).await?;
        }
        Ok(())
    }
}

fn prefix(run: &RunId) -> String {
    format!("{PREFIX}{}/{run}~", run.day())
}

#[cfg(test)]
mod tests {
    use qontract_access::Mode;
    use qontract_client_blobs::Directory;
    use qontract_runtime::{ChangeKind, PlanDigest, ShardKey};
    use qontract_testkit::{Scratch, permits};

    use super::*;

    fn owner(run: &str) -> RoundOwner {
        let process =
            LeaseProcess { id: "i".to_owned(), host: "h".to_owned(), pid: 1, started: 2, machine: None };
        let head = BundleRecord { sha: "s".to_owned(), commit: None, modified: false };
        RoundOwner { run: RunId::parse(run).unwrap(), began: Timestamp::UNIX_EPOCH, head, process }
    }

    fn intended(shard: &str, texts: &[&str]) -> IntendedRound {
        let change = |text: &&str| IntendedChange {
            kind: ChangeKind::Add,
            text: (*text).to_owned(),
            version: Some("1".to_owned()),
        };
        let steps = texts
            .iter()
            .map(|text| IntendedStep { digest: PlanDigest::from("d"), changes: vec![change(text)] });
        IntendedRound { shard: ShardKey::new([("app", shard)]), steps: steps.collect(), places: Vec::new() }
    }

    fn texts(round: &RoundRecord) -> Vec<&str> {
        round.uncertain_changes().map(|change| change.text.as_str()).collect()
    }

    #[tokio::test]
    async fn a_round_is_found_by_its_run_with_the_changes_whose_results_are_not_known() {
        let scratch = Scratch::new();
        let rounds = Rounds::new(Arc::new(Directory::new(scratch.path())));
        let write = permits(Mode::Real).write.unwrap();
        let now: Timestamp = "2026-11-19T12:00:00Z".parse().unwrap();
        let (one, two) = (owner("20261119T080000Z-x-1"), owner("20261118T080000Z-x-2"));
        let first = one.round(1, &intended("a", &["+ a", "+ b"]), now);
        rounds.store(&write, &first).await.unwrap();
        rounds.store(&write, &one.round(2, &intended("b", &["+ c"]), now)).await.unwrap();
        rounds.store(&write, &two.round(1, &intended("a", &["+ d"]), now)).await.unwrap();
        assert_eq!(texts(&first), ["+ a", "+ b"]);
        let result = |text: &str, result| ChangeResult { text: text.to_owned(), result };
        let results = vec![result("+ a", StepResult::Done), result("+ b", StepResult::Interrupted)];
        rounds.store(&write, &RoundRecord { results: Some(results), ..first }).await.unwrap();
        let runs = rounds.runs(Some("2026-11-19T00:00:00Z".parse().unwrap()), now).await.unwrap();
        assert_eq!(runs.keys().collect::<Vec<_>>(), [&one.run]);
        let read = rounds.read(&runs[&one.run]).await.unwrap();
        assert_eq!(read.iter().map(texts).collect::<Vec<_>>(), [vec!["+ b"], vec!["+ c"]]);
        // The other runs of that day are not removed.
        let later = rounds.runs(Some("2026-11-19T09:00:00Z".parse().unwrap()), now).await.unwrap();
        assert_eq!(later.len(), 0);
        assert_eq!(rounds.runs(None, now).await.unwrap().len(), 2);
        let claim = async || rounds.claim_report(&write, &one.run).await.unwrap();
        assert_eq!((claim().await, claim().await), (true, false));
        assert_eq!(rounds.read(&rounds.of_run(&one.run).await.unwrap()).await.unwrap().len(), 2);
        rounds.remove(&write, &one.run).await.unwrap();
        assert_eq!(rounds.of_run(&one.run).await.unwrap(), [""; 0]);
        assert_eq!(rounds.of_run(&two.run).await.unwrap().len(), 1);
    }
}
