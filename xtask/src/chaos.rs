//! Plays many seeds against the runtime: more of what the tests play a little of.

use crate::cli::ChaosArgs;
use crate::house::House;
use anyhow::Result;

/// Faults against the runner, then random changes against the judgement of what they affect.
pub fn run(house: &House, arguments: &ChaosArgs) -> Result<()> {
    let play = |package: &str, filter: &str, seeds: u64| {
        let words = format!("test --package {package} {filter} -- --nocapture");
        house.cargo(&words).env("QONTRACT_SEEDS", seeds.to_string()).run()
    };
    play("qontract-runtime", "--test faults", arguments.seeds)?;
    play("qontract", "--bin qontract what_is_said_to_be_unaffected", arguments.seeds / 10)
}
