//! Words for names, descriptions and comments.

use super::random::CorpusRng;

/// First halves of names.
const FIRST: [&str; 24] = [
    "amber", "birch", "cedar", "coral", "delta", "ember", "fjord", "grove", "hazel", "indigo", "juniper",
    "kelp", "linden", "maple", "north", "ochre", "pine", "quartz", "river", "slate", "tidal", "umber",
    "velvet", "willow",
];

/// Second halves of names.
const SECOND: [&str; 20] = [
    "api", "archive", "billing", "cache", "catalog", "console", "export", "feed", "gateway", "index",
    "ledger", "mail", "orders", "portal", "quota", "report", "search", "store", "sync", "worker",
];

const SUBJECT: [&str; 12] = [
    "the service",
    "this part",
    "a small team",
    "the nightly job",
    "every tenant",
    "the gateway",
    "die Ausgabe für Größen",
    "the café catalogue",
    "the old cluster",
    "a queue of its own",
    "the second region",
    "the public endpoint",
];

const VERB: [&str; 10] = [
    "keeps",
    "answers for",
    "copies",
    "watches over",
    "is allowed to read",
    "waits for",
    "collects",
    "pays for",
    "serves",
    "owns",
];

const OBJECT: [&str; 12] = [
    "what customers ordered",
    "the index of yesterday",
    "requests from the inside",
    "reports for finance",
    "all that has no other home",
    "the exports of a month",
    "images that were built",
    "the tokens of tenants",
    "events (more than once, if need be)",
    "a copy in another zone",
    "the numbers behind the dashboard",
    "uploads of up to 5 MB",
];

const PLACE: [&str; 8] = [
    "during the day",
    "in every region",
    "until it moves",
    "for the other teams",
    "at no extra cost",
    "behind the gateway",
    "since the last migration",
    "while the traffic is low",
];

const REMARK: [&str; 12] = [
    "agreed with the owners",
    "raised after the last incident",
    "keep in step with stage",
    "see the runbook before you change this",
    "temporary, until the migration is over",
    "ask in the channel first",
    "the order matters to the reader, not to the machine",
    "smaller than it looks",
    "asked for by the tenant",
    "TODO: ask whether somebody still needs it",
    "do not sort",
    "measured, not guessed",
];

/// A name that is unique for its index.
pub(super) fn name(index: usize) -> String {
    let first = FIRST[index % FIRST.len()];
    let second = SECOND[(index / FIRST.len() + index) % SECOND.len()];
    format!("{first}-{second}-{index}")
}

/// A sentence without a full stop that is a plain YAML scalar.
pub(super) fn sentence(random: &mut CorpusRng) -> String {
    let (subject, verb) = (random.pick(&SUBJECT), random.pick(&VERB));
    let (object, place) = (random.pick(&OBJECT), random.pick(&PLACE));
    format!("{subject} {verb} {object} {place}")
}

/// The text of a comment.
pub(super) fn remark(random: &mut CorpusRng) -> &'static str {
    random.pick(&REMARK)
}
