//! Limits the size of the displayed strings of a response. The limit refers to the printed size, because unsafe
//! characters are escaped when the strings are printed and stored in records.

use super::{
    ApplyResponse, DeclareResponse, DeclareShardsResponse, DescribeResponse, PlanResponse, PrintResponse,
    WireDimensions, WireFault, WireObject,
};

/// Maximum total size of the displayed strings of a response, in printed bytes.
pub const MAX_SHOWN_BYTES: usize = 1 << 20;

/// The length of the longest escape of a character, `\u{202e}`.
const ESCAPE_BYTES: usize = 8;

/// A response with displayed strings.
pub trait ShownTexts {
    /// Calls `see` with each displayed string of the response.
    fn for_each_text<'a>(&'a self, see: &mut dyn FnMut(&'a str));
}

/// Refuses a response whose displayed strings are too long.
pub fn check_texts(response: &impl ShownTexts) -> Result<(), String> {
    let mut bytes = 0;
    response.for_each_text(&mut |text| bytes += printed_bytes(text));
    if bytes > MAX_SHOWN_BYTES {
        return Err(format!("the displayed strings exceed {MAX_SHOWN_BYTES} bytes when escaped"));
    }
    Ok(())
}

/// Maximum number of bytes of a string when it is printed.
fn printed_bytes(text: &str) -> usize {
    let is_plain = |byte: &u8| *byte == b' ' || byte.is_ascii_graphic();
    let plain = text.as_bytes().iter().filter(|byte| is_plain(byte)).count();
    let others = text.chars().filter(|one| !one.is_ascii() || one.is_ascii_control()).count();
    plain + others * ESCAPE_BYTES
}

impl ShownTexts for WireDimensions {
    fn for_each_text<'a>(&'a self, see: &mut dyn FnMut(&'a str)) {
        for (name, value) in self.pairs() {
            see(name);
            see(value);
        }
    }
}

impl ShownTexts for WireObject {
    fn for_each_text<'a>(&'a self, see: &mut dyn FnMut(&'a str)) {
        self.scope.for_each_text(see);
        see(&self.kind);
        see(&self.name);
    }
}

impl ShownTexts for WireFault {
    fn for_each_text<'a>(&'a self, see: &mut dyn FnMut(&'a str)) {
        self.key.for_each_text(see);
        see(&self.text);
        self.hint.iter().for_each(|hint| see(hint));
    }
}

impl ShownTexts for DescribeResponse {
    fn for_each_text<'a>(&'a self, see: &mut dyn FnMut(&'a str)) {
        see(&self.name);
        see(&self.about);
        for flag in &self.flags {
            see(&flag.name);
            see(&flag.help);
        }
    }
}

impl ShownTexts for DeclareResponse {
    fn for_each_text<'a>(&'a self, see: &mut dyn FnMut(&'a str)) {
        for shard in &self.shards {
            shard.key.for_each_text(see);
            shard.disabled.iter().for_each(|why| see(why));
        }
        self.faults.iter().for_each(|fault| fault.for_each_text(see));
    }
}

impl ShownTexts for PlanResponse {
    fn for_each_text<'a>(&'a self, see: &mut dyn FnMut(&'a str)) {
        for scope in &self.scopes {
            scope.scope.for_each_text(see);
            scope.unknown.iter().for_each(|why| see(why));
        }
        for want in &self.wants {
            want.thing.for_each_text(see);
            want.unresolved.iter().for_each(|why| see(why));
        }
        self.approved.iter().for_each(|thing| thing.for_each_text(see));
        for group in &self.groups {
            see(&group.name);
            for change in group.steps.iter().flat_map(|step| &step.changes) {
                change.thing.for_each_text(see);
                see(&change.what);
                change.diff.iter().for_each(|line| see(line));
            }
        }
        self.waits.iter().chain(&self.degraded).chain(&self.approval).for_each(|text| see(text));
        self.faults.iter().for_each(|fault| fault.for_each_text(see));
    }
}

impl<S: ShownTexts> ShownTexts for DeclareShardsResponse<S> {
    fn for_each_text<'a>(&'a self, see: &mut dyn FnMut(&'a str)) {
        self.shards.iter().for_each(|shard| shard.for_each_text(see));
        self.faults.iter().for_each(|fault| fault.for_each_text(see));
    }
}

impl ShownTexts for PrintResponse {
    /// The text of `print` is output and not part of a report, so it is not limited here.
    fn for_each_text<'a>(&'a self, see: &mut dyn FnMut(&'a str)) {
        for want in &self.wants {
            want.thing.for_each_text(see);
            want.unresolved.iter().for_each(|why| see(why));
        }
        self.faults.iter().for_each(|fault| fault.for_each_text(see));
    }
}

impl ShownTexts for ApplyResponse {
    fn for_each_text<'a>(&'a self, _: &mut dyn FnMut(&'a str)) {}
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::{ProgramShard, ResultPointer};
    use super::{
        DeclareResponse, DeclareShardsResponse, DescribeResponse, MAX_SHOWN_BYTES, PlanResponse, ShownTexts,
        check_texts, printed_bytes,
    };

    #[derive(serde::Deserialize)]
    struct TestShard {
        name: String,
    }

    impl ShownTexts for TestShard {
        fn for_each_text<'a>(&'a self, see: &mut dyn FnMut(&'a str)) {
            see(&self.name);
        }
    }

    impl ProgramShard for TestShard {
        fn pointer(&self) -> Option<&ResultPointer> {
            None
        }
    }

    #[test]
    fn a_character_counts_as_its_escape() {
        for (text, expect) in [
            ("", 0),
            ("a b", 3),
            ("\u{1b}", 8),
            ("a\n", 9),
            ("\u{202e}", 8),
            ("é", 8),
            ("😀", 8),
            ("\u{7f}", 8),
        ] {
            assert_eq!(printed_bytes(text), expect, "{text:?}");
        }
    }

    /// Checks that every displayed string counts: if any of them is one byte longer than the limit, the response is
    /// refused.
    fn check<T: ShownTexts + serde::de::DeserializeOwned>(response: impl Fn(&str) -> Value) {
        let parse = |text: &str| serde_json::from_value::<T>(response(text)).expect("a response");
        let mut others = 0;
        parse("").for_each_text(&mut |text| others += text.len());
        assert_eq!(check_texts(&parse(&"x".repeat(MAX_SHOWN_BYTES - others))), Ok(()));
        assert!(check_texts(&parse(&"x".repeat(MAX_SHOWN_BYTES - others + 1))).is_err());
    }

    #[test]
    fn every_text_that_is_shown_counts() {
        check::<DescribeResponse>(|text| json!({"name": text, "description": ""}));
        check::<DescribeResponse>(|text| json!({"name": "", "description": text}));
        check::<DescribeResponse>(
            |text| json!({"name": "", "description": "", "flags": [{"name": "", "help": text}]}),
        );
        check::<DeclareResponse>(|text| json!({"shards": [{"key": [["a", text]], "state": 1}]}));
        check::<DeclareResponse>(|text| json!({"shards": [{"state": 1, "disabled": text}]}));
        check::<DeclareResponse>(|text| json!({"faults": [{"text": text}]}));
        check::<DeclareResponse>(|text| json!({"faults": [{"text": "", "hint": text}]}));
        check::<DeclareResponse>(|text| json!({"faults": [{"text": "", "key": [[text, ""]]}]}));
        check::<DeclareShardsResponse<TestShard>>(|text| json!({"shards": [{"name": text}]}));
        check::<DeclareShardsResponse<TestShard>>(|text| json!({"faults": [{"text": text}]}));
        check::<PlanResponse>(|text| json!({"approval": text}));
        check::<PlanResponse>(|text| json!({"scopes": [{"scope": [["a", text]]}]}));
        check::<PlanResponse>(|text| json!({"scopes": [{"scope": [], "unknown": text}]}));
        let thing = |text: &str| json!({"scope": [], "kind": "", "name": text});
        check::<PlanResponse>(|text| json!({"wants": [{"thing": thing(text)}]}));
        check::<PlanResponse>(|text| json!({"wants": [{"thing": {"scope": [], "kind": text, "name": ""}}]}));
        check::<PlanResponse>(|text| json!({"wants": [{"thing": thing(""), "unresolved": text}]}));
        check::<PlanResponse>(|text| json!({"approved": [thing(text)]}));
        check::<PlanResponse>(|text| json!({"groups": [{"name": text, "steps": []}]}));
        let change = |what: &str, line: &str| {
            let change = json!({"kind": "add", "thing": thing(""), "what": what, "diff": [line]});
            json!({"groups": [{"steps": [{"changes": [change]}]}]})
        };
        check::<PlanResponse>(|text| change(text, ""));
        check::<PlanResponse>(|text| change("", text));
        check::<PlanResponse>(|text| json!({"waits": [text]}));
        check::<PlanResponse>(|text| json!({"degraded": [text]}));
        check::<PlanResponse>(|text| json!({"faults": [{"text": text}]}));
    }
}
