//! Plays many seeds against the runtime, and kills it many times: more of what the tests play a little of.

use crate::cli::ChaosArgs;
use crate::house::House;
use crate::test::cluster;
use crate::{setup, talk};
use anyhow::Result;

/// Faults against the runner; random changes against the judgement of what they affect; loops that panic and hang; and
/// kills in the midst of writing to a real cluster.
pub fn run(house: &House, arguments: &ChaosArgs) -> Result<()> {
    let play = |package: &str, filter: &str, seeds: u64| {
        let words = format!("test --package {package} {filter} -- --nocapture");
        house.cargo(&words).env("QONTRACT_SEEDS", seeds.to_string()).run()
    };
    play("qontract-runtime", "--test faults", arguments.seeds)?;
    play("qontract", "--bin qontract what_is_said_to_be_unaffected", arguments.seeds / 10)?;
    let soak = house.cargo("test --package qontract-runtime --test soak -- --nocapture");
    soak.env("QONTRACT_SOAK_SECONDS", arguments.soak.to_string()).run()?;
    if arguments.kills == 0 {
        talk::say("nothing is killed, as asked");
        return Ok(());
    }
    setup::run(&house.cache, &[&setup::Kubernetes])?;
    let server = cluster::start(house)?;
    let kill = house.cargo("test --package qontract --test real_cluster killed_anywhere -- --nocapture");
    let kill = kill.env("QONTRACT_KILLS", arguments.kills.to_string());
    cluster::tell(kill, Some(&server), house)?.run()
}
