//! Generates strings that look like numbers, words and dates, or almost like them.

use qontract_testkit::SeededRng;

const WORDS: &[&str] = &[
    "yes",
    "Yes",
    "YES",
    "yEs",
    "no",
    "No",
    "NO",
    "true",
    "True",
    "TRUE",
    "false",
    "False",
    "FALSE",
    "on",
    "On",
    "ON",
    "off",
    "Off",
    "OFF",
    "oFF",
    "y",
    "Y",
    "n",
    "N",
    "null",
    "Null",
    "NULL",
    "nULL",
    "~",
    "",
    "~~",
    "<<",
    "=",
    "==",
    ".inf",
    ".Inf",
    ".INF",
    "-.inf",
    "+.inf",
    "-.Inf",
    ".nan",
    ".NaN",
    ".NAN",
    "-.nan",
    "+.nan",
    ".",
    "..",
    "-",
    "+",
    "0",
    "-0",
    "+0",
    "00",
    "0_",
    "0__1",
    "017",
    "018",
    "0o17",
    "0b",
    "0b_",
    "0b12",
    "0b101",
    "-0b1_1",
    "0x",
    "0x_",
    "0xFg",
    "0xDEAD_beef",
    "-0x1f",
    "+0x0",
    "1_000",
    "1__0",
    "_1",
    "1_",
    "1e3",
    "1E3",
    "1e+3",
    "1.e+3",
    "1.0e3",
    "1.0e+3",
    "1.0E-3",
    "12345e7",
    "12e03",
    "1.5e",
    "1.5e+",
    ".5",
    "-.5",
    "+.5",
    "._5",
    ".5_",
    ".5e+1",
    "5.",
    "5._",
    "-5.",
    "1:30",
    "1:60",
    "1:5",
    "1:05",
    "0:30",
    "01:30",
    "-1:30",
    "+1:30",
    "190:20:30",
    "190:20:30.15",
    "1:30.",
    "0:30.5",
    "1:30:",
    "1::30",
    "1_0:30",
    "1:3_0",
    "60:00",
    "1:2:3:4:5:6:7:8:9:10:11:12:13",
    "2024-01-02",
    "2024-1-2",
    "2024-01-02T03:04:05Z",
    "2024-01-02 03:04:05",
    "2024-1-2 3:04:05.678 -01:30",
    "2024-01-02t1:02:03",
    "2024-01-02 1:02:03 +5",
    "2024-01-02T03:04",
    "99999999999999999999",
    "-9223372036854775808",
    "9223372036854775808",
    "0x7fffffffffffffff",
    "0x8000000000000000",
    "07777777777777777777777",
    "0b1111111111111111111111111111111111111111111111111111111111111111111111",
    "123456789012345678901234567890:00",
    "1.7976931348623157e+308",
    "1.8e+308",
    "4.9e-324",
    "1.0e-400",
    "0.1",
    "0.30000000000000004",
    "-0.0",
    "1.10",
];

const ALPHABETS: &[&str] = &[
    "0123456789",
    "01_",
    "0123456789_.:",
    "0123456789eE+-.",
    "0xabcdefABCDEF_19",
    "-0123456789:.TZt ",
    "yYeEsSnNoOfFuUlLtTrRaA~",
];

/// Generates `count` texts: every hand-picked one, then random ones, mostly of the characters of numbers.
pub fn generate(count: usize) -> Vec<String> {
    let mut rng = SeededRng::new(0x005c_a1a5);
    let mut texts: Vec<String> = WORDS.iter().map(|word| (*word).to_owned()).collect();
    texts.push("9".repeat(4_300));
    texts.push("9".repeat(4_301));
    texts.push(format!("0x{}", "f".repeat(3_700)));
    while texts.len() < count {
        let text = match rng.below(4) {
            0 => mutate(&mut rng),
            _ => random(&mut rng),
        };
        // Texts that are not one plain scalar belong to the test of documents.
        if is_plain(&text) {
            texts.push(text);
        }
    }
    texts
}

fn random(rng: &mut SeededRng) -> String {
    let alphabet: Vec<char> = rng.pick(ALPHABETS).chars().collect();
    let sign = rng.pick(&["", "", "", "-", "+"]);
    let length = 1 + rng.below(12);
    let body: String = (0..length).map(|_| *rng.pick(&alphabet)).collect();
    format!("{sign}{body}")
}

fn mutate(rng: &mut SeededRng) -> String {
    let mut letters: Vec<char> = rng.pick(WORDS).chars().collect();
    let alphabet: Vec<char> = "0123456789_.:+-eExXbBoTZnaNIfy~ ".chars().collect();
    for _ in 0..=rng.below(2) {
        let at = rng.below(letters.len() + 1);
        match rng.below(3) {
            0 if at < letters.len() => drop(letters.remove(at)),
            1 if at < letters.len() => letters[at] = *rng.pick(&alphabet),
            _ => letters.insert(at, *rng.pick(&alphabet)),
        }
    }
    letters.into_iter().collect()
}

fn is_plain(text: &str) -> bool {
    let lone_mark = ["-", "?", ":"].iter().any(|mark| text == *mark || text.starts_with(&format!("{mark} ")));
    !text.is_empty() && text.trim() == text && !lone_mark && !text.contains(": ") && !text.ends_with(':')
}
