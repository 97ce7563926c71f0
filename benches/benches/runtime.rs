//! Declared states of base and head compared: two of 100 MB, equal but for one value.

#[path = "measure.rs"]
mod measure;

use std::collections::BTreeMap;
use std::time::Instant;

use measure::say;
use qontract_runtime::ShardKey;
use qontract_runtime::state::{Declared, Shard, compare};

type State = Vec<BTreeMap<String, String>>;

/// About 100 MB of state: a thousand shards of namespaces with their objects.
fn state() -> Declared<(), String, State> {
    let mut declared = Declared::new(());
    for shard in 0..1000 {
        let object = |number: usize| {
            let entry = |key: &str, value: String| (key.to_owned(), value);
            BTreeMap::from([
                entry("name", format!("object-{number}-of-{shard}")),
                entry("kind", "ConfigMap".to_owned()),
                entry("content", format!("key: \"value {number}\"\nother: {}\n", "text ".repeat(180))),
                entry("place", format!("/services/app-{shard}/namespaces/namespace-{number}.yml")),
            ])
        };
        let key = ShardKey::new([("cluster", "c1"), ("namespace", &format!("namespace-{shard:04}"))]);
        declared
            .add(key, Shard::new("https://api.example.com".to_owned(), (0..100).map(object).collect(), None));
    }
    declared
}

fn main() {
    let (base, mut head) = (state(), state());
    let size = serde_json::to_vec(&base.shards.values().map(|shard| &shard.state).collect::<Vec<_>>())
        .map(|text| text.len());
    let middle = head.shards.values_mut().nth(500);
    if let Some(object) = middle.and_then(|shard| shard.state.get_mut(7)) {
        object.insert("content".to_owned(), "something else".to_owned());
    }
    say("| what | MB each | differing shards | seconds |");
    say("|---|---|---|---|");
    let mut times: Vec<f64> = Vec::new();
    let mut differing = 0;
    for _ in 0..5 {
        let began = Instant::now();
        differing = compare(&base, &head).shards.len();
        times.push(began.elapsed().as_secs_f64());
    }
    times.sort_by(f64::total_cmp);
    let megabytes = size.unwrap_or_default() / 1_000_000;
    say(&format!("| two declared states compared | {megabytes} | {differing} | {:.2} |", times[2]));
}
