//! Judges a history of pods: whether two pods of one shard existed at a time, and how long a shard had none.

use std::collections::BTreeMap;
use std::time::Duration;

/// An event of a watch over pods.
#[derive(Clone, Debug)]
pub struct PodEvent {
    /// The time since the start of the watch.
    pub at: Duration,
    /// The shard that the pod runs.
    pub shard: String,
    pub uid: String,
    pub state: PodState,
}

/// The state of a pod after an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PodState {
    /// The pod exists, and is not ready yet.
    Starting,
    Ready,
    /// The pod exists, and is asked to end.
    Ending,
    /// The pod does not exist any more.
    Gone,
}

/// A time in which a shard had no pod that works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outage {
    pub shard: String,
    /// The time until the old pod was gone.
    pub ending: Duration,
    /// The time from the end of the old pod until a new one was ready; `None` if none became ready.
    pub starting: Option<Duration>,
}

/// What a history shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Judgement {
    /// The shards that had several pods at a time, once for each additional pod.
    pub overlaps: Vec<String>,
    pub outages: Vec<Outage>,
}

impl Judgement {
    /// The longest time from the end of an old pod until a new one was ready.
    pub fn longest_start(&self) -> Duration {
        self.outages.iter().filter_map(|outage| outage.starting).max().unwrap_or_default()
    }

    /// The longest time in which a shard had no pod that works.
    pub fn longest_outage(&self) -> Duration {
        let whole = |outage: &Outage| outage.ending + outage.starting.unwrap_or_default();
        self.outages.iter().map(whole).max().unwrap_or_default()
    }
}

/// The pods of a shard.
#[derive(Default)]
struct ShardPods {
    pods: BTreeMap<String, PodState>,
    /// The time at which the last pod that worked was asked to end.
    ending_since: Option<Duration>,
    /// The time at which the last pod was gone.
    gone_since: Option<Duration>,
}

/// Judges a history. The order of the events decides about overlaps, and their times about outages. A pod counts from
/// its creation until it is gone.
pub fn judge(events: &[PodEvent]) -> Judgement {
    let mut judgement = Judgement::default();
    let mut shards: BTreeMap<&str, ShardPods> = BTreeMap::new();
    for PodEvent { at, shard, uid, state } in events {
        let pods = shards.entry(shard).or_default();
        let before = pods.pods.insert(uid.clone(), *state);
        if before.is_none() && pods.pods.len() > 1 {
            judgement.overlaps.push(shard.clone());
        }
        match state {
            PodState::Starting => {}
            PodState::Ending => pods.ending_since = pods.ending_since.or(Some(*at)),
            PodState::Gone => {
                pods.pods.remove(uid);
                if pods.pods.is_empty() && before.is_some() {
                    pods.gone_since = Some(*at);
                }
            }
            PodState::Ready => {
                if let Some(gone) = pods.gone_since.take() {
                    let ending = gone.saturating_sub(pods.ending_since.take().unwrap_or(gone));
                    let starting = Some(at.saturating_sub(gone));
                    judgement.outages.push(Outage { shard: shard.clone(), ending, starting });
                }
            }
        }
    }
    for (shard, pods) in shards {
        if let Some(gone) = pods.gone_since {
            let ending = gone.saturating_sub(pods.ending_since.unwrap_or(gone));
            judgement.outages.push(Outage { shard: shard.to_owned(), ending, starting: None });
        }
    }
    judgement
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Outage, PodEvent, PodState, judge};

    /// Checks the overlaps and the outages of a history: the second, the shard, the pod and its state.
    fn check(
        history: &[(u64, &str, &str, PodState)],
        overlaps: &[&str],
        outages: &[(&str, u64, Option<u64>)],
    ) {
        let event = |(at, shard, uid, state): &(u64, &str, &str, PodState)| PodEvent {
            at: Duration::from_secs(*at),
            shard: (*shard).to_owned(),
            uid: (*uid).to_owned(),
            state: *state,
        };
        let found = judge(&history.iter().map(event).collect::<Vec<_>>());
        let outage = |(shard, ending, starting): &(&str, u64, Option<u64>)| Outage {
            shard: (*shard).to_owned(),
            ending: Duration::from_secs(*ending),
            starting: starting.map(Duration::from_secs),
        };
        assert_eq!(found.overlaps, overlaps);
        assert_eq!(found.outages, outages.iter().map(outage).collect::<Vec<_>>());
    }

    #[test]
    fn a_pod_that_replaces_another_after_its_end_is_an_outage() {
        use PodState::{Ending, Gone, Ready, Starting};
        let history = [
            (0, "a", "1", Ready),
            (0, "b", "2", Ready),
            (10, "a", "1", Ending),
            (15, "a", "1", Gone),
            (16, "a", "3", Starting),
            (18, "a", "3", Ready),
        ];
        check(&history, &[], &[("a", 5, Some(3))]);
        check(&history[..5], &[], &[("a", 5, None)]);
    }

    #[test]
    fn a_pod_beside_one_that_is_not_gone_is_an_overlap() {
        use PodState::{Ending, Gone, Ready, Starting};
        let history = [
            (0, "a", "1", Ready),
            (10, "a", "1", Ending),
            (10, "a", "1", Ending),
            (11, "a", "2", Starting),
            (12, "b", "3", Starting),
            (13, "a", "2", Ready),
            (15, "a", "1", Gone),
        ];
        check(&history, &["a"], &[]);
    }
}
