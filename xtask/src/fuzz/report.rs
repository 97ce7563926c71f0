//! Parses the stderr output of a libFuzzer run, and formats the table of several runs.

use crate::console;

/// One run of one target.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct FuzzReport {
    /// The target's name.
    pub target: String,
    /// Whether the run finished without a crash.
    pub survived: bool,
    seconds: Option<u64>,
    executions: u64,
    coverage: u64,
}

impl FuzzReport {
    /// A run that has not reported anything yet.
    pub fn new(target: &str) -> Self {
        Self { target: target.to_owned(), ..Self::default() }
    }

    /// Reads one line of output: `#8192 NEW cov: 21 ft: 30 …`, `Done 8192 runs in 31 second(s)`,
    /// `stat::number_of_executed_units: 8192`.
    pub fn parse_line(&mut self, line: &str) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let number = |word: Option<&&str>| word.and_then(|word| word.parse().ok());
        if let Some(count) =
            line.strip_prefix('#').and_then(|rest| number(rest.split_whitespace().next().as_ref()))
        {
            self.executions = count;
            let after = words.iter().position(|word| *word == "cov:").map(|index| index + 1);
            self.coverage = after.and_then(|index| number(words.get(index))).unwrap_or(self.coverage);
        } else if let ["Done", runs, "runs", "in", seconds, ..] = words.as_slice() {
            self.executions = number(Some(runs)).unwrap_or(self.executions);
            self.seconds = number(Some(seconds));
        } else if let ["stat::number_of_executed_units:", count] = words.as_slice() {
            self.executions = number(Some(count)).unwrap_or(self.executions);
        }
    }
}

/// Formats the reports as a table with a heading.
pub fn table(reports: &[FuzzReport]) -> String {
    let heading = ["target", "seconds", "executions", "coverage", "result"];
    let rows = reports.iter().map(|report| {
        vec![
            report.target.clone(),
            report.seconds.map_or_else(|| "–".to_owned(), |seconds| seconds.to_string()),
            report.executions.to_string(),
            report.coverage.to_string(),
            (if report.survived { "ok" } else { "CRASH" }).to_owned(),
        ]
    });
    let rows: Vec<_> = [heading.map(str::to_owned).to_vec()].into_iter().chain(rows).collect();
    console::table(&rows)
}

#[cfg(test)]
mod tests {
    use super::{FuzzReport, table};

    const RUN: &str = "INFO: Seed: 3310340917\n\
        #2\tINITED cov: 5 ft: 6 corp: 1/1b exec/s: 0 rss: 41Mb\n\
        #4096\tpulse  cov: 21 ft: 30 corp: 3/11b lim: 43 exec/s: 2048 rss: 43Mb\n\
        #8192\tDONE   cov: 22 ft: 31 corp: 4/12b lim: 43 exec/s: 2048 rss: 44Mb\n\
        Done 8192 runs in 5 second(s)\n\
        stat::number_of_executed_units: 8192\n\
        stat::average_exec_per_sec:     2048\n";

    fn check(output: &str, expect: (Option<u64>, u64, u64)) {
        let mut report = FuzzReport::new("yaml");
        output.lines().for_each(|line| report.parse_line(line));
        assert_eq!((report.seconds, report.executions, report.coverage), expect);
    }

    #[test]
    fn a_whole_run_is_read() {
        check(RUN, (Some(5), 8192, 22));
    }

    #[test]
    fn a_crashed_run_is_read_up_to_the_crash() {
        check(&RUN[..RUN.find("#8192").expect("it exists")], (None, 4096, 21));
        check("#not a number\n", (None, 0, 0));
    }

    #[test]
    fn the_table_shows_which_target_crashed() {
        let good = FuzzReport { survived: true, seconds: Some(5), executions: 10, ..FuzzReport::new("yaml") };
        let expected = "  target  seconds  executions  coverage  result\n  \
                          yaml          5          10         0      ok\n  \
                          bundle        –           0         0   CRASH";
        assert_eq!(table(&[good, FuzzReport::new("bundle")]), expected);
    }
}
