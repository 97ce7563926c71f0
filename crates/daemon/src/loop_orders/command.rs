//! The orders that a person gives to loops.

use std::fmt::Write as _;
use std::time::Duration;

use anyhow::Context as _;
use jiff::{SignedDuration, Timestamp};
use qontract_access::Mode;
use qontract_config::variable;
use qontract_diagnostics::{pluralize, sanitize};
use qontract_journal::{Journal, LoggedOrder, Order, OrderAction, OrderOrigin, Pause};
use serde::Serialize;

use super::JournalKind;
use crate::exit::UsageError;
use crate::journal;
use crate::lease_host::this_process;

/// Maximum length of a reason and of the name of a person.
const MAX_TEXT: usize = 500;

/// What is wrong if no loop has used a journal.
const NO_LOOP: &str = "no such loop has used this journal so far: check `--runs`, `--sandbox` and `--config`";

/// Interval at which a drain looks for runs in progress.
const DRAIN_POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Gives orders to loops through a journal.
pub struct OrderDesk<'a> {
    journal: &'a Journal,
    kind: JournalKind,
    by: String,
}

/// The pauses and the last orders, as JSON output.
#[derive(Serialize)]
struct OrderList<'a> {
    pauses: Vec<PauseEntry<'a>>,
    orders: &'a [LoggedOrder],
}

#[derive(Serialize)]
struct PauseEntry<'a> {
    /// The integration; `None` means all integrations.
    integration: Option<&'a str>,
    #[serde(flatten)]
    pause: &'a Pause,
}

impl<'a> OrderDesk<'a> {
    /// Creates a desk for orders of this person, who is by default the user of this process.
    pub fn new(journal: &'a Journal, kind: JournalKind, by: Option<String>) -> Result<Self, UsageError> {
        let by = by.unwrap_or_else(|| {
            let user = ["USER", "LOGNAME"].into_iter().find_map(variable);
            format!("{}@{}", user.as_deref().unwrap_or("unknown user"), this_process().host)
        });
        check_text("`--by`", &by)?;
        Ok(Self { journal, kind, by })
    }

    /// Gives an order and returns a message about it.
    pub async fn give(&self, integration: Option<String>, action: OrderAction) -> anyhow::Result<String> {
        if let OrderAction::Pause { reason, .. } = &action {
            check_text("`--reason`", reason)?;
        }
        let now = Timestamp::now();
        let stored = self.journal.orders().current().await?;
        // A running loop keeps a pause that was lost together with the journal.
        let may_be_lost = stored.is_none();
        let current = stored.unwrap_or_default();
        let own_pause = current.pauses(now).find(|(name, _)| *name == integration.as_deref());
        let loops =
            integration.clone().map_or("all loops".to_owned(), |name| format!("the loops of `{name}`"));
        let other = integration.as_deref().and_then(|name| current.pause(name, now));
        match (&action, own_pause, other) {
            (OrderAction::Resume, None, Some(pause)) => {
                let text = format!(
                    "{loops} are not paused themselves, but all integrations are: {pause}; use `--all`"
                );
                return Err(UsageError(text).into());
            }
            (OrderAction::Resume, None, None) if !may_be_lost => {
                return Err(UsageError(format!("{loops} are not paused")).into());
            }
            (OrderAction::Run, _, Some(pause)) | (OrderAction::Run, Some((_, pause)), None) => {
                return Err(UsageError(format!("{loops} are {pause}")).into());
            }
            _ => {}
        }
        let origin = OrderOrigin { by: self.by.clone(), at: now, id: format!("{:016x}", fastrand::u64(..)) };
        let permits = journal::permits();
        let write = permits.write.as_ref().context("the journal is written in every run")?;
        let order = Order { integration, action };
        self.journal.orders().give(write, &order, &origin).await?;
        let place = &self.journal.location().place;
        let is_known = self.has_loops(order.integration.as_deref()).await?;
        let unknown = if is_known { String::new() } else { format!("\nwarning: {NO_LOOP}") };
        let heard = match self.kind {
            JournalKind::Folder => "within a second".to_owned(),
            JournalKind::Bucket => format!("within {} s", self.kind.order_period().as_secs()),
        };
        let of_all = current.pauses(now).find(|(name, _)| name.is_none() && order.integration.is_some());
        let result = match &order.action {
            OrderAction::Pause { until, .. } => {
                let end =
                    until.map_or("until they are resumed".to_owned(), |until| format!("until {until:.0}"));
                format!("pause {heard}, {end}")
            }
            OrderAction::Resume => match of_all {
                Some((_, pause)) => format!("stay paused, because all integrations are {pause}"),
                None => format!("resume {heard}"),
            },
            OrderAction::Run => format!("run {heard}"),
        };
        Ok(format!("{loops} that use the journal `{place}` {result}{unknown}"))
    }

    /// Whether a loop of the integration, or of any, has ever reconciled data or acquired a lease with this journal.
    async fn has_loops(&self, integration: Option<&str>) -> anyhow::Result<bool> {
        let prefix = integration.map(|name| format!("{name}.")).unwrap_or_default();
        let has_reconciled = !self.journal.reconciled().loops(&prefix).await?.is_empty();
        let leases = journal::lease_table(self.journal)?;
        Ok(has_reconciled || leases.is_used(&journal::permits().read, integration).await?)
    }

    /// Creates a pause, which ends after `duration` if it is set.
    pub fn pause(reason: String, duration: Option<Duration>) -> Result<OrderAction, UsageError> {
        let end = |duration: Duration| {
            let duration = SignedDuration::try_from(duration).ok()?;
            Timestamp::now().checked_add(duration).ok()
        };
        let too_long = || UsageError("the time of `--for` is too long".to_owned());
        let until = duration.map(|duration| end(duration).ok_or_else(too_long)).transpose()?;
        Ok(OrderAction::Pause { reason, until })
    }

    /// Waits until every loop has read the pause and no run holds a lease.
    pub async fn drained(&self, integration: Option<&str>, timeout: Duration) -> anyhow::Result<String> {
        // Runs in progress would not be seen either.
        anyhow::ensure!(self.has_loops(integration).await?, "{NO_LOOP}");
        let permits = journal::permits();
        let leases = journal::lease_table(self.journal)?;
        let started = tokio::time::Instant::now();
        tokio::time::sleep(self.kind.order_period() * 2).await;
        loop {
            let in_use = leases.in_use(&permits.read, integration).await?;
            if in_use.is_empty() {
                return Ok("no run is in progress".to_owned());
            }
            if started.elapsed() >= timeout {
                let count = pluralize(in_use.len(), "shard");
                let runs: Vec<_> = in_use.iter().map(|holder| sanitize(holder)).collect();
                let runs = runs.join("; ");
                anyhow::bail!("runs are still in progress, on {count}, and the loops stay paused: {runs}");
            }
            tokio::time::sleep(DRAIN_POLL_INTERVAL).await;
        }
    }

    /// The pauses and the orders of the last days, as text or as JSON.
    pub async fn list(&self, days: u16, is_json: bool) -> anyhow::Result<String> {
        let now = Timestamp::now();
        let orders = self.journal.orders();
        let current = orders.current().await?.unwrap_or_default();
        let since = now.checked_sub(SignedDuration::from_hours(i64::from(days) * 24))?;
        let log = orders.log(since, now).await?;
        let pauses: Vec<(Option<&str>, &Pause)> = current.pauses(now).collect();
        if is_json {
            let pauses =
                pauses.iter().map(|&(integration, pause)| PauseEntry { integration, pause }).collect();
            return Ok(serde_json::to_string_pretty(&OrderList { pauses, orders: &log })? + "\n");
        }
        let mut text = String::new();
        for (integration, pause) in &pauses {
            let name = sanitize(integration.unwrap_or("all integrations"));
            writeln!(text, "{name}: {}", sanitize(&pause.to_string()))?;
        }
        if pauses.is_empty() {
            text += "no loop is paused\n";
        }
        if !log.is_empty() {
            text += "\norders:\n";
        }
        for LoggedOrder { origin: OrderOrigin { by, at, .. }, order } in &log {
            let name = sanitize(order.integration.as_deref().unwrap_or("all integrations"));
            let what = match &order.action {
                OrderAction::Pause { reason, until: None } => format!("pause: {}", sanitize(reason)),
                OrderAction::Pause { reason, until: Some(until) } => {
                    format!("pause until {until:.0}: {}", sanitize(reason))
                }
                OrderAction::Resume => "resume".to_owned(),
                OrderAction::Run => "run now".to_owned(),
            };
            writeln!(text, "  {at:.0}  {name}  {}  {what}", sanitize(by))?;
        }
        Ok(text)
    }
}

fn check_text(option: &str, text: &str) -> Result<(), UsageError> {
    if text.trim().is_empty() || text.len() > MAX_TEXT || text.chars().any(char::is_control) {
        let why = format!("{option} needs a text of one line, of at most {MAX_TEXT} bytes");
        return Err(UsageError(why));
    }
    Ok(())
}

/// The reason why a single run of an integration must not start: the pause of the integration. A dry run may start
/// during a pause. If the orders cannot be read, the run may also start, because the last orders are unknown to this
/// process.
pub async fn pause_of(journal: &Journal, integration: &str, mode: Mode) -> Option<String> {
    if mode == Mode::DryRun {
        return None;
    }
    let orders = journal.orders();
    let current = tokio::time::timeout(super::FIRST_READ_TIMEOUT, orders.current()).await.ok()?.ok()?;
    current?.pause(integration, Timestamp::now()).map(ToString::to_string)
}
