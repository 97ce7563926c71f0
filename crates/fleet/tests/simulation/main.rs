//! Simulated fleets: how well keys are balanced, how few of them move, and that noise moves none.

#![expect(clippy::unwrap_used, reason = "a panic is a test failure")]

mod baselines;
mod fleets;
mod handovers;
mod membership;
mod noise;
mod optimum;
mod resizing;
mod statistics;

use fleets::Family;
use qontract_testkit::chaos_count;

/// 1,000 fleets of each family, and 250 with noise, with `cargo xtask chaos fleet-balance`, which prints the tables of
/// `docs/performance.md`.
#[test]
#[expect(clippy::print_stdout, reason = "`cargo xtask chaos fleet-balance` prints the tables")]
fn simulated_fleets_are_balanced_with_few_moves() {
    let count = chaos_count(6);
    let mut rows = Vec::new();
    for family in Family::ALL {
        rows.extend(resizing::simulate(family, count));
    }
    println!("{}", resizing::table(&rows));
    println!("{}", optimum::table(count));
    println!("{}", noise::table(count.div_ceil(4)));
}
