//! Groups the commands in `qontract --help`.

use clap::{Command, CommandFactory as _};
use qontract_runtime::IntegrationMeta;

use super::{Cli, ColorWhen};
use crate::run;
use crate::terminal::TerminalSize;

/// The command that runs an integration, of `qontract` and of [`PEER`].
pub const RECONCILE: &str = "reconcile";

/// The command that contains the peer tools.
pub const PEER: &str = "peer";

/// Groups of commands. A command without a group is listed in the last one.
const GROUPS: [(&str, &[&str]); 5] = [
    ("Start here", &["up"]),
    ("Data", &["validate", "bundle", "diff", "get", "query", "serve", "schema"]),
    (
        "Reconciliation",
        &["plan", "affected", "reconcile", "approve", "runs", "explain", "journal", "loop", "state"],
    ),
    ("Inspection", &["integrations", "fleet", "shards", "inventory"]),
    ("Setup and other", &["config", "peer", "completions", "man", "version", "help"]),
];

/// Maximum number of columns of a line.
const MAX_WIDTH: usize = 100;

/// The clap definition of the command line. `version` is the output of `--version`, and `integrations` are
/// the subcommands of `reconcile`.
pub fn ungrouped_command(version: &'static str, integrations: &[IntegrationMeta]) -> Command {
    let with_integrations = |command: Command| match command.get_name() {
        RECONCILE => command.subcommands(integrations.iter().map(run::subcommand)),
        _ => command,
    };
    Cli::command().long_version(version).mut_subcommands(|command| match command.get_name() {
        PEER => command.mut_subcommands(with_integrations),
        _ => with_integrations(command),
    })
}

/// The clap definition of the command line, like [`ungrouped_command`], with grouped commands.
pub fn command(color: ColorWhen, version: &'static str, integrations: &[IntegrationMeta]) -> Command {
    let command = ungrouped_command(version, integrations).color(color.into());
    let template = format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{}{}\n{{options}}{{after-help}}",
        groups(&command, TerminalSize::detect().map_or(MAX_WIDTH, |size| size.width.min(MAX_WIDTH))),
        heading("Options")
    );
    command.help_template(template)
}

/// The help text of the grouped commands, each with its description.
fn groups(command: &Command, width: usize) -> String {
    let is_grouped = |name: &str| GROUPS.iter().any(|(_, names)| names.contains(&name));
    let all: Vec<(&str, String)> = command
        .get_subcommands()
        .filter(|command| !command.is_hide_set())
        .map(|command| (command.get_name(), command.get_about().map(ToString::to_string).unwrap_or_default()))
        .collect();
    let column = all.iter().map(|(name, _)| name.len()).max().unwrap_or_default() + 4;
    let mut text = String::new();
    for (index, (heading, names)) in GROUPS.iter().enumerate() {
        text.push_str(&format!("{}\n", self::heading(heading)));
        let named = names.iter().filter_map(|name| all.iter().find(|(other, _)| other == name));
        let others = all.iter().filter(|(name, _)| index + 1 == GROUPS.len() && !is_grouped(name));
        for (name, about) in named.chain(others) {
            let name_width = column - 2;
            text.push_str(&format!("  \x1b[1m{name}\x1b[0m{:1$}", "", name_width - name.len()));
            text.push_str(&wrapped(about, width.saturating_sub(column), column));
            text.push('\n');
        }
        text.push('\n');
    }
    text
}

/// A heading with the style of clap's headings.
fn heading(text: &str) -> String {
    format!("\x1b[1m\x1b[4m{text}:\x1b[0m")
}

/// Wraps text at `width` columns and indents all lines except the first.
fn wrapped(text: &str, width: usize, indent: usize) -> String {
    let (mut out, mut used) = (String::new(), 0);
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if used > 0 && used + 1 + length > width {
            out.push_str(&format!("\n{:indent$}", ""));
            used = 0;
        } else if used > 0 {
            out.push(' ');
            used += 1;
        }
        out.push_str(word);
        used += length;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_of_the_runner_are_reserved() {
        let command = Cli::command();
        let reconcile = command.find_subcommand("reconcile").unwrap();
        for flag in reconcile.get_arguments().chain(command.get_arguments()).filter_map(clap::Arg::get_long) {
            assert!(
                qontract_runtime::process::is_reserved(flag),
                "`--{flag}` of a program would shadow the runner's"
            );
        }
        let shorts =
            reconcile.get_arguments().chain(command.get_arguments()).filter_map(clap::Arg::get_short);
        for short in shorts.chain(['h', 'V']) {
            assert!(qontract_runtime::is_reserved_short(short), "`-{short}` is the runner's");
        }
    }

    #[test]
    fn every_command_is_in_one_group() {
        let grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        for command in Cli::command().get_subcommands() {
            let name = command.get_name();
            assert_eq!(grouped.iter().filter(|other| **other == name).count(), 1, "{name}");
        }
    }

    #[test]
    fn every_grouped_name_is_a_command() {
        let command = Cli::command();
        for name in GROUPS.iter().flat_map(|(_, names)| names.iter().copied()) {
            assert!(name == "help" || command.find_subcommand(name).is_some(), "{name}");
        }
    }

    #[test]
    fn lines_are_wrapped_between_words() {
        assert_eq!(wrapped("one two three", 7, 2), "one two\n  three");
        assert_eq!(wrapped("one two three", 6, 2), "one\n  two\n  three");
        assert_eq!(wrapped("verylongword x", 4, 1), "verylongword\n x");
        assert_eq!(wrapped("", 4, 1), "");
    }
}
