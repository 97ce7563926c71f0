//! Options of every command.

use std::ffi::OsString;

use anstream::ColorChoice;
use clap::{Args, ValueEnum};

use crate::printer::Verbosity;

/// Options of every command.
#[derive(Args, Debug, Default)]
pub struct GlobalOptions {
    /// Print only results, warnings and errors
    #[arg(short, long, global = true, conflicts_with = "verbose", help_heading = "Global options")]
    pub quiet: bool,
    /// Print more: the log level is DEBUG unless `--log-level` is given
    #[arg(short, long, global = true, help_heading = "Global options")]
    pub verbose: bool,
    /// When to use colours: `auto` (on a terminal, unless `$NO_COLOR` is set), `always` or `never`
    #[arg(
        long,
        value_name = "WHEN",
        global = true,
        value_enum,
        default_value_t,
        hide_possible_values = true,
        hide_default_value = true,
        help_heading = "Global options"
    )]
    pub color: ColorWhen,
}

impl GlobalOptions {
    /// The verbosity that `--quiet` and `--verbose` select.
    pub fn verbosity(&self) -> Verbosity {
        match (self.quiet, self.verbose) {
            (true, _) => Verbosity::Quiet,
            (false, true) => Verbosity::Verbose,
            (false, false) => Verbosity::Normal,
        }
    }
}

/// When colours are used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ColorWhen {
    /// On a terminal
    #[default]
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

impl ColorWhen {
    /// Reads `--color` before the rest of the command line is parsed, because parse errors are coloured too.
    pub fn of(arguments: &[OsString]) -> Self {
        let words = || arguments.iter().filter_map(|word| word.to_str());
        let joined = words().find_map(|word| word.strip_prefix("--color="));
        let apart = words().zip(words().skip(1)).find(|(flag, _)| *flag == "--color").map(|(_, when)| when);
        let when = joined.or(apart).and_then(|when| Self::from_str(when, false).ok());
        when.unwrap_or_default()
    }

    /// Applies the choice to everything that this process prints.
    pub fn set(self) {
        match self {
            Self::Auto => {}
            Self::Always => ColorChoice::Always.write_global(),
            Self::Never => ColorChoice::Never.write_global(),
        }
    }
}

impl From<ColorWhen> for clap::ColorChoice {
    fn from(when: ColorWhen) -> Self {
        match when {
            ColorWhen::Auto => Self::Auto,
            ColorWhen::Always => Self::Always,
            ColorWhen::Never => Self::Never,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn color_is_accepted_anywhere_on_the_command_line() {
        let check = |line: &str, expect: ColorWhen| {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            assert_eq!(ColorWhen::of(&words), expect, "{line}");
        };
        check("qontract get apps", ColorWhen::Auto);
        check("qontract --color never get apps", ColorWhen::Never);
        check("qontract get apps --color=always", ColorWhen::Always);
        check("qontract get apps --color", ColorWhen::Auto);
        check("qontract get apps --color sometimes", ColorWhen::Auto);
    }
}
