//! Finds the integration and the configuration that a command line names, before the command line is parsed.
//!
//! The integrations are subcommands, and the configuration may define some of them, so it must be read before
//! the parser exists.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgAction, Command, CommandFactory as _, value_parser};

use crate::groups::{PEER, RECONCILE};
use crate::{Cli, CliFlavor};

/// The id of the argument that collects the integration and the words after it.
const WORDS: &str = "words";

/// A command line that runs an integration, or prints the help of such a command.
#[derive(Debug, PartialEq, Eq)]
pub struct ReconcileLine {
    /// `reconcile` or `peer reconcile`.
    pub flavor: CliFlavor,
    /// The file that `--config` names.
    pub config: Option<PathBuf>,
    /// The integration.
    pub integration: Option<String>,
}

impl ReconcileLine {
    /// Reads a command line; `None` if it runs another command. Nothing is validated: the parser reports
    /// errors later. Options that are not those of the runner may be flags of the integration, and are
    /// skipped.
    pub fn of(arguments: &[OsString]) -> Option<Self> {
        let command = lenient_command();
        let mut arguments = arguments.to_vec();
        let matches = loop {
            match command.clone().try_get_matches_from(&arguments) {
                Ok(matches) => break matches,
                Err(error) => {
                    let unknown = position_of_unknown(&error, &arguments)?;
                    arguments.remove(unknown);
                }
            }
        };
        let (flavor, run) = match matches.subcommand()? {
            (RECONCILE, run) => (CliFlavor::Qontract, run),
            (PEER, peer) => (CliFlavor::QontractReconcile, peer.subcommand_matches(RECONCILE)?),
            _ => return None,
        };
        let mut words = run.get_many::<OsString>(WORDS).into_iter().flatten();
        let config = run.get_many::<OsString>("config").and_then(Iterator::last);
        Some(Self {
            flavor,
            config: config.map(PathBuf::from),
            integration: words.next().and_then(|word| word.to_str()).map(str::to_owned),
        })
    }
}

/// The position in `arguments` of the argument that the parser does not recognise; `None` for another error.
/// The last match is used, because arguments after `--` are never options.
fn position_of_unknown(error: &clap::Error, arguments: &[OsString]) -> Option<usize> {
    let Some(ContextValue::String(unknown)) = error.get(ContextKind::InvalidArg) else { return None };
    if error.kind() != ErrorKind::UnknownArgument {
        return None;
    }
    let position = |is_unknown: &dyn Fn(&str) -> bool| {
        arguments.iter().skip(1).rposition(|word| is_unknown(&word.to_string_lossy())).map(|index| index + 1)
    };
    let unknown = unknown.as_str();
    let is_same = |word: &str| word == unknown;
    let has_value = |word: &str| word.strip_prefix(unknown).is_some_and(|rest| rest.starts_with('='));
    // Several letters after one dash are several options, and the parser may recognise only the first of
    // these.
    let letter = unknown.strip_prefix('-').filter(|letter| letter.chars().count() == 1);
    let is_in_group = |word: &str| {
        let letters = word.strip_prefix('-').filter(|letters| !letters.starts_with('-'));
        letter.is_some_and(|letter| letters.is_some_and(|letters| letters.contains(letter)))
    };
    position(&is_same).or_else(|| position(&has_value)).or_else(|| position(&is_in_group))
}

/// A command line with the options of `reconcile`, but without validation rules. Other commands have no
/// options: everything after them is skipped.
fn lenient_command() -> Command {
    let cli = Cli::command();
    let options = |command: &Command| command.get_arguments().filter_map(lenient_option).collect::<Vec<_>>();
    let of_run = cli.find_subcommand(RECONCILE).map(options).unwrap_or_default();
    let words = Arg::new(WORDS).num_args(0..).action(ArgAction::Append).value_parser(value_parser!(OsString));
    let reconcile = Command::new(RECONCILE).args(of_run).arg(words);
    let other_tools = Command::new(PEER).allow_external_subcommands(true);
    Command::new("qontract")
        .disable_help_flag(true)
        .disable_version_flag(true)
        .disable_help_subcommand(true)
        .allow_external_subcommands(true)
        .args(options(&cli))
        .subcommand(reconcile.clone())
        .subcommand(other_tools.subcommand(reconcile))
}

/// An option without its validation rules; `None` for an argument that is not an option.
fn lenient_option(option: &Arg) -> Option<Arg> {
    let lenient = Arg::new(option.get_id().clone())
        .long(option.get_long()?.to_owned())
        .short(option.get_short())
        .global(option.is_global_set());
    if !option.get_action().takes_values() {
        return Some(lenient.action(ArgAction::Count));
    }
    // The parser reports missing values.
    let lenient = lenient.action(ArgAction::Append).num_args(0..=1).value_parser(value_parser!(OsString));
    Some(lenient.require_equals(option.is_require_equals_set()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Option<ReconcileLine> {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        ReconcileLine::of(&words)
    }

    #[test]
    fn only_commands_that_run_an_integration_are_read() {
        for line in [
            "qontract",
            "qontract up --config c.toml",
            "qontract runs list reconcile",
            "qontract --quiet runs list reconcile --config c.toml",
            "qontract peer server --config c.toml",
            "qontract help reconcile",
            "qontract recncile prog",
            "qontract get --nonsense",
        ] {
            assert_eq!(read(line), None, "{line}");
        }
    }

    #[test]
    fn the_configuration_is_found_between_flags_of_the_integration() {
        let check = |line: &str, config: Option<&str>, integration: Option<&str>| {
            let expect = ReconcileLine {
                flavor: CliFlavor::Qontract,
                config: config.map(PathBuf::from),
                integration: integration.map(str::to_owned),
            };
            assert_eq!(read(line), Some(expect), "{line}");
        };
        check("qontract reconcile", None, None);
        check("qontract reconcile prog", None, Some("prog"));
        check("qontract reconcile --config c.toml prog", Some("c.toml"), Some("prog"));
        check("qontract reconcile prog --config=c.toml", Some("c.toml"), Some("prog"));
        check("qontract --quiet reconcile prog --config c.toml", Some("c.toml"), Some("prog"));
        check("qontract reconcile prog --own a --config c.toml --more=b", Some("c.toml"), Some("prog"));
        check("qontract reconcile --data prog --wait other -h", None, Some("other"));
        check("qontract reconcile prog --help --config c.toml", Some("c.toml"), Some("prog"));
        check("qontract reconcile -qv prog -xq --config c.toml", Some("c.toml"), Some("prog"));
        check("qontract reconcile prog --config a -- --config b", Some("a"), Some("prog"));
    }

    #[test]
    fn values_and_combinations_that_the_parser_refuses_do_not_matter() {
        let lines = [
            "qontract reconcile prog --shards many --config c.toml",
            "qontract reconcile prog --dry-run --wait --every 0s --config c.toml",
            "qontract reconcile prog --dry-run --dry-run --config c.toml",
            "qontract reconcile prog -r env=ref project -renv=ref 17 --config c.toml",
            "qontract reconcile prog -qr env=ref --config c.toml",
            "qontract reconcile prog --config c.toml --data",
        ];
        for line in lines {
            let read = read(line).expect("a reconcile command");
            assert_eq!(read.config, Some("c.toml".into()), "{line}");
        }
    }

    #[test]
    fn the_tool_of_the_peer_has_its_own_flavor() {
        let read = read("qontract peer reconcile --config c.toml prog --own").expect("a reconcile command");
        assert_eq!((read.flavor, read.integration.as_deref()), (CliFlavor::QontractReconcile, Some("prog")));
    }
}
