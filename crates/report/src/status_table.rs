//! Renders the `up` table (status table). Pure: the table depends only on the state of the loops and the size
//! of the terminal.
//!
//! **Invariant:** the table has at most (terminal rows − 2) lines, and no line is wider than the terminal
//! (`a_table_fits_its_terminal`).

mod line;

use std::time::Duration;

use qontract_access::Mode;
use qontract_diagnostics::human::{self, duration};
use qontract_diagnostics::{pluralize, sanitize};

pub use line::StatusLine;
use line::{LinePart, LineStyle, cut, width_of};

use crate::DataUse;

/// Number of terminal rows that remain free for the log and the cursor.
const MARGIN: usize = 2;

/// Maximum number of shards shown per integration.
const MAX_SHARDS: usize = 5;

/// Separators between two columns, and between two parts of a line.
const GAP: &str = "  ";
const SEPARATOR: &str = " · ";

/// The content of the table.
#[derive(Clone, Debug, Default)]
pub struct StatusView {
    /// The content of the title line.
    pub title: StatusTitle,
    /// The loops, one per integration.
    pub loops: Vec<LoopView>,
}

/// The content of the title line: the data, the mode and the targets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatusTitle {
    /// The data repo.
    pub data: String,
    /// The commit of the data.
    pub commit: Option<String>,
    /// The mode.
    pub mode: Mode,
    /// The abbreviated sha of the bundle in use.
    pub bundle: String,
    /// The targets: `sandbox DIR` or `real targets`.
    pub targets: String,
    /// If the data is invalid: the time at which it became invalid, and the number of errors.
    pub invalid: Option<String>,
    /// Number of integrations that cannot run on this machine.
    pub unchecked: usize,
}

/// The state of a loop after its last run. The states are in the order in which the table shows them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LoopState {
    /// The last run failed.
    Failed,
    /// A change needs approval.
    Held,
    /// An object does not work as declared.
    Degraded,
    /// The last run failed temporarily; the next run may succeed.
    Retrying,
    /// An operation in the target is in progress.
    Waiting,
    /// The loop has not run yet.
    Starting,
    /// The command of a foreign integration succeeded; its changes are not known.
    NotKnown,
    /// The last run succeeded.
    Ok,
}

impl LoopState {
    const ALL: [Self; 8] = [
        Self::Failed,
        Self::Held,
        Self::Degraded,
        Self::Retrying,
        Self::Waiting,
        Self::Starting,
        Self::NotKnown,
        Self::Ok,
    ];

    fn as_str(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::Held => "held",
            Self::Degraded => "degraded",
            Self::Retrying => "retrying",
            Self::Waiting => "waiting",
            Self::Starting => "starting",
            Self::NotKnown => "not known",
            Self::Ok => "ok",
        }
    }

    fn style(self) -> LineStyle {
        match self {
            Self::Failed => LineStyle::Red,
            Self::Held | Self::Degraded | Self::Retrying | Self::Waiting => LineStyle::Yellow,
            Self::Starting | Self::NotKnown => LineStyle::Dim,
            Self::Ok => LineStyle::Green,
        }
    }
}

/// The loop of one integration.
#[derive(Clone, Debug)]
pub struct LoopView {
    /// The integration.
    pub name: String,
    /// The state after the last run.
    pub state: LoopState,
    /// Number of shards, if known.
    pub shards: Option<usize>,
    /// Number of changes in the last plan.
    pub changes: usize,
    /// Number of changes in the last plan that need approval.
    pub held: usize,
    /// The duration of the last run.
    pub took: Option<Duration>,
    /// The current activity.
    pub now: LoopActivity,
    /// Shards that failed or are held.
    pub attention_shards: Vec<ShardView>,
}

/// The current activity of a loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoopActivity {
    /// The loop runs. The string describes the operation for which the run waits, if any.
    Running(Option<String>),
    /// The loop sleeps for this time until its next run.
    Sleeping(Duration),
    /// An operator paused the loop.
    Paused,
    /// The activity is unknown.
    Idle,
}

/// A shard that failed or is held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardView {
    /// The key.
    pub key: String,
    /// Whether the shard failed.
    pub failed: bool,
    /// Number of changes that need approval.
    pub held: usize,
}

/// Renders the table for a terminal of `width` columns and `height` rows.
pub fn lines(view: &StatusView, width: usize, height: usize) -> Vec<StatusLine> {
    let room = height.saturating_sub(MARGIN);
    let mut loops: Vec<&LoopView> = view.loops.iter().collect();
    loops.sort_by(|a, b| (a.state, &a.name).cmp(&(b.state, &b.name)));
    let totals = totals(view, width);
    let invalid = invalid(&view.title, width);
    let frame = 3 + invalid.iter().count();
    let body = match room {
        0 => return Vec::new(),
        // If only one line fits, it must show that the data is invalid.
        1 => return vec![invalid.unwrap_or(totals)],
        // A title and a header without a row below them are useless, so they are omitted.
        room if room <= frame => return invalid.into_iter().chain([totals]).collect(),
        _ => room - frame,
    };
    let columns = Columns::fit(&loops, width);
    let mut lines = vec![title(&view.title, width)];
    lines.extend(invalid);
    lines.push(columns.header(width));
    lines.extend(rows(&loops, &columns, body, width));
    lines.push(totals);
    lines
}

/// At most `room` rows: one for each loop, and rows for shards in the remaining space.
fn rows(loops: &[&LoopView], columns: &Columns, room: usize, width: usize) -> Vec<StatusLine> {
    let mut lines = Vec::new();
    if loops.len() > room {
        let (shown, rest) = loops.split_at(room - 1);
        lines.extend(shown.iter().map(|one| columns.row(one, width)));
        lines.push(StatusLine::of(
            &format!("… and {} more ({})", rest.len(), counts(rest).join(", ")),
            LineStyle::Dim,
            width,
        ));
        return lines;
    }
    let mut left = room - loops.len();
    for one in loops {
        lines.push(columns.row(one, width));
        let all = one.attention_shards.len();
        // The last line counts the shards that are not shown.
        let shown = if all <= MAX_SHARDS.min(left) { all } else { MAX_SHARDS.min(left.saturating_sub(1)) };
        for shard in &one.attention_shards[..shown] {
            lines.push(shard_row(shard, width));
        }
        left -= shown;
        let more = all - shown;
        if more > 0 && left > 0 {
            left -= 1;
            lines.push(StatusLine::of(
                &format!("    … and {}", pluralize(more, "more shard")),
                LineStyle::Dim,
                width,
            ));
        }
    }
    lines
}

fn shard_row(shard: &ShardView, width: usize) -> StatusLine {
    let (word, style) = match (shard.failed, shard.held) {
        (true, 0) => ("failed".to_owned(), LineStyle::Red),
        (true, held) => (format!("failed, {held} held"), LineStyle::Red),
        (false, held) => (format!("{held} held"), LineStyle::Yellow),
    };
    let key = cut(&sanitize(&shard.key), width.saturating_sub(width_of(&word) + 6));
    StatusLine::new([LinePart::plain(format!("    {key}: ")), LinePart::new(word, style)], width)
}

/// The number of loops in each state.
fn counts(loops: &[&LoopView]) -> Vec<String> {
    let count = |state: LoopState| loops.iter().filter(|one| one.state == state).count();
    let counts = LoopState::ALL.into_iter().rev().map(|state| (count(state), state.as_str()));
    counts.filter(|(count, _)| *count > 0).map(|(count, word)| format!("{count} {word}")).collect()
}

/// A part of a line that may be omitted if the line is too long.
struct RankedPart {
    /// Parts with the highest rank are omitted first; a part with rank 0 is never omitted.
    rank: u8,
    part: LinePart,
}

impl RankedPart {
    fn new(rank: u8, part: LinePart) -> Self {
        Self { rank, part }
    }
}

/// A line of parts. Parts are omitted until the line fits, those with the highest rank first.
fn fit_parts(mut parts: Vec<RankedPart>, width: usize) -> StatusLine {
    let wide = |parts: &[RankedPart]| {
        let gaps = width_of(SEPARATOR) * parts.len().saturating_sub(1);
        parts.iter().map(|ranked| ranked.part.width()).sum::<usize>() + gaps
    };
    while wide(&parts) > width && parts.len() > 1 {
        let least = parts.iter().map(|ranked| ranked.rank).max().unwrap_or_default();
        if least == 0 {
            break;
        }
        parts.retain(|ranked| ranked.rank != least);
    }
    let mut all = Vec::new();
    for (index, RankedPart { part, .. }) in parts.into_iter().enumerate() {
        if index > 0 {
            all.push(LinePart::new(SEPARATOR, LineStyle::Dim));
        }
        all.push(part);
    }
    StatusLine::new(all, width)
}

fn title(title: &StatusTitle, width: usize) -> StatusLine {
    let StatusTitle { data, commit, mode, targets, .. } = title;
    let data = match commit {
        Some(commit) => format!("{} @ {}", sanitize(data), short(commit)),
        None => sanitize(data).into_owned(),
    };
    let mode_style = match mode {
        Mode::DryRun => LineStyle::Plain,
        Mode::Real => LineStyle::Bold,
    };
    fit_parts(
        vec![
            RankedPart::new(3, LinePart::new("qontract up", LineStyle::Bold)),
            RankedPart::new(0, LinePart::plain(data)),
            RankedPart::new(1, LinePart::new(mode.as_str(), mode_style)),
            RankedPart::new(2, LinePart::plain(sanitize(targets).into_owned())),
        ],
        width,
    )
}

/// The line that reports invalid data.
fn invalid(StatusTitle { invalid, bundle, .. }: &StatusTitle, width: usize) -> Option<StatusLine> {
    let text = sanitize(invalid.as_ref()?).into_owned();
    let bundle = DataUse::Reconcile.describe(Some(&*sanitize(bundle)).filter(|sha| !sha.is_empty()));
    Some(fit_parts(
        vec![
            RankedPart::new(0, LinePart::new(text, LineStyle::Red)),
            RankedPart::new(1, LinePart::new(bundle, LineStyle::Red)),
        ],
        width,
    ))
}

fn totals(view: &StatusView, width: usize) -> StatusLine {
    let count = |state: LoopState| view.loops.iter().filter(|one| one.state == state).count();
    let mut parts = vec![RankedPart::new(2, LinePart::plain(pluralize(view.loops.len(), "integration")))];
    for state in LoopState::ALL.into_iter().rev() {
        let rank = match state {
            LoopState::Failed | LoopState::Held | LoopState::Degraded => 0,
            LoopState::Retrying
            | LoopState::Waiting
            | LoopState::Starting
            | LoopState::NotKnown
            | LoopState::Ok => 1,
        };
        if count(state) > 0 {
            parts.push(RankedPart::new(
                rank,
                LinePart::new(format!("{} {}", count(state), state.as_str()), state.style()),
            ));
        }
    }
    if view.title.unchecked > 0 {
        parts.push(RankedPart::new(
            1,
            LinePart::new(format!("{} not checked", view.title.unchecked), LineStyle::Yellow),
        ));
    }
    let changes = view.loops.iter().map(|one| one.changes).sum::<usize>();
    parts.push(RankedPart::new(3, LinePart::plain(pluralize(changes, "change"))));
    if !view.title.bundle.is_empty() {
        parts.push(RankedPart::new(5, LinePart::plain(format!("bundle {}", short(&view.title.bundle)))));
    }
    parts.push(RankedPart::new(6, LinePart::plain(sanitize(&view.title.targets).into_owned())));
    parts.push(RankedPart::new(4, LinePart::new("Ctrl-C to stop", LineStyle::Dim)));
    fit_parts(parts, width)
}

/// The abbreviation of a sha or commit.
fn short(id: &str) -> String {
    human::short_sha(&sanitize(id))
}

/// The visible columns and their widths.
struct Columns {
    name: usize,
    shards: bool,
    changes: Option<usize>,
    took: bool,
    next: Option<usize>,
}

const STATE_WIDTH: usize = 8;
const SHARDS_WIDTH: usize = 6;
const TOOK_WIDTH: usize = 6;
/// Minimum width of the column with the current activity.
const MIN_NEXT_WIDTH: usize = 7;

impl Columns {
    /// Selects as many columns as fit: the name has the highest priority, the number of shards the lowest.
    fn fit(loops: &[&LoopView], width: usize) -> Self {
        let name = loops.iter().map(|one| width_of(&sanitize(&one.name))).max().unwrap_or_default();
        let name = name.max("INTEGRATION".len());
        let mut left = width.saturating_sub(STATE_WIDTH + GAP.len() + name);
        let mut take = |wanted: usize| {
            let fits = left >= wanted + GAP.len();
            if fits {
                left -= wanted + GAP.len();
            }
            fits
        };
        let changes =
            loops.iter().map(|one| changes(one).len()).max().unwrap_or_default().max("CHANGES".len());
        let has_changes = take(changes);
        let next = take(MIN_NEXT_WIDTH);
        let took = take(TOOK_WIDTH);
        let shards = take(SHARDS_WIDTH);
        let name = name.min(width.saturating_sub(STATE_WIDTH + GAP.len()));
        Self {
            name,
            shards,
            changes: has_changes.then_some(changes),
            took,
            next: next.then_some(MIN_NEXT_WIDTH + left),
        }
    }

    fn header(&self, width: usize) -> StatusLine {
        let cells = ["STATE", "INTEGRATION", "SHARDS", "CHANGES", "TOOK", "NEXT"].map(str::to_owned);
        let text = self.cells(cells).concat();
        StatusLine::of(text.trim_end(), LineStyle::Dim, width)
    }

    fn row(&self, one: &LoopView, width: usize) -> StatusLine {
        let now = match &one.now {
            LoopActivity::Running(None) => "running".to_owned(),
            LoopActivity::Running(Some(what)) => format!("running: {}", sanitize(what)),
            LoopActivity::Sleeping(time) => format!("in {}", coarse_duration(*time)),
            LoopActivity::Paused => "paused".to_owned(),
            LoopActivity::Idle => String::new(),
        };
        let cells = [
            one.state.as_str().to_owned(),
            sanitize(&one.name).into_owned(),
            one.shards.map(|count| count.to_string()).unwrap_or_default(),
            changes(one),
            one.took.map(duration).unwrap_or_default(),
            now,
        ];
        let [state, rest @ ..] = self.cells(cells);
        let parts = [LinePart::new(state, one.state.style()), LinePart::plain(rest.concat().trim_end())];
        StatusLine::new(parts, width)
    }

    /// Pads cells to the width of their columns and adds separators.
    fn cells(&self, [state, name, shards, changes, took, next]: [String; 6]) -> [String; 6] {
        let left = |text: &str, width: usize| {
            let text = cut(text, width);
            format!("{text}{}", " ".repeat(width - width_of(&text)))
        };
        let right = |text: &str, width: usize| {
            let text = cut(text, width);
            format!("{GAP}{}{text}", " ".repeat(width - width_of(&text)))
        };
        [
            format!("{}{GAP}", left(&state, STATE_WIDTH)),
            left(&name, self.name),
            if self.shards { right(&shards, SHARDS_WIDTH) } else { String::new() },
            self.changes.map(|width| right(&changes, width)).unwrap_or_default(),
            if self.took { right(&took, TOOK_WIDTH) } else { String::new() },
            self.next.map(|width| format!("{GAP}{}", cut(&next, width))).unwrap_or_default(),
        ]
    }
}

fn changes(one: &LoopView) -> String {
    match (one.took, one.changes, one.held) {
        (None, ..) => String::new(),
        (_, changes, 0) => changes.to_string(),
        (_, changes, held) => format!("{changes}, {held} held"),
    }
}

/// Formats the time until the next run: in seconds below two minutes, in minutes below two hours, otherwise
/// in hours. The format is coarse, so that the line rarely changes.
fn coarse_duration(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..120 => format!("{seconds}s"),
        seconds @ 120..7_200 => format!("{}m", seconds / 60),
        seconds => format!("{}h", seconds / 3_600),
    }
}

#[cfg(test)]
mod tests;
