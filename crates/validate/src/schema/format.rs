//! The formats of JSON Schema draft 6, as defined by the RFCs. Other formats are not checked.

use std::net::{Ipv4Addr, Ipv6Addr};

use email_address::EmailAddress;

/// A format that is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StringFormat {
    /// RFC 3339 `full-date`.
    Date,
    /// RFC 3339 `date-time`.
    DateTime,
    /// RFC 5321 mailbox.
    Email,
    /// RFC 1034 host name.
    Hostname,
    /// A dotted IPv4 address.
    Ipv4,
    /// RFC 4291 address.
    Ipv6,
    /// RFC 6901 pointer.
    JsonPointer,
    /// ECMA 262 regular expression.
    Regex,
    /// RFC 3339 `full-time`.
    Time,
    /// RFC 3986 URI.
    Uri,
    /// RFC 3986 URI or relative reference.
    UriReference,
    /// RFC 6570 template.
    UriTemplate,
}

impl StringFormat {
    /// The format with this name; `None` if the format is not checked.
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "date" => Self::Date,
            "date-time" => Self::DateTime,
            "email" => Self::Email,
            "hostname" => Self::Hostname,
            "ipv4" => Self::Ipv4,
            "ipv6" => Self::Ipv6,
            "json-pointer" => Self::JsonPointer,
            "regex" => Self::Regex,
            "time" => Self::Time,
            "uri" => Self::Uri,
            "uri-reference" => Self::UriReference,
            "uri-template" => Self::UriTemplate,
            _ => return None,
        })
    }

    /// Whether a string has this format.
    pub fn is_match(self, text: &str) -> bool {
        match self {
            Self::Date => date(text).is_some(),
            Self::DateTime => date_time(text).is_some(),
            Self::Email => email(text),
            Self::Hostname => hostname(text),
            Self::Ipv4 => text.parse::<Ipv4Addr>().is_ok(),
            Self::Ipv6 => text.parse::<Ipv6Addr>().is_ok(),
            Self::JsonPointer => json_pointer(text),
            Self::Regex => jsonschema_regex::is_valid_ecma_regex(text),
            Self::Time => time(text).is_some(),
            Self::Uri => uri_reference(text).is_some_and(|has_scheme| has_scheme),
            Self::UriReference => uri_reference(text).is_some(),
            Self::UriTemplate => uri_template(text).is_some(),
        }
    }
}

/// Parses `count` digits at the start of a text; returns the number and the rest of the text.
fn digits(text: &str, count: usize) -> Option<(u32, &str)> {
    let (number, rest) = text.split_at_checked(count)?;
    let is_number = number.bytes().all(|byte| byte.is_ascii_digit());
    Some((number.parse().ok().filter(|_| is_number)?, rest))
}

fn date(text: &str) -> Option<()> {
    let (year, rest) = digits(text, 4)?;
    let (month, rest) = digits(rest.strip_prefix('-')?, 2)?;
    let (day, rest) = digits(rest.strip_prefix('-')?, 2)?;
    let is_leap = year % 4 == 0 && year % 100 != 0 || year % 400 == 0;
    let days = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if is_leap => 29,
        2 => 28,
        _ => return None,
    };
    ((1..=days).contains(&day) && rest.is_empty()).then_some(())
}

fn time(text: &str) -> Option<()> {
    let (hour, rest) = digits(text, 2)?;
    let (minute, rest) = digits(rest.strip_prefix(':')?, 2)?;
    let (second, mut rest) = digits(rest.strip_prefix(':')?, 2)?;
    if let Some(fraction) = rest.strip_prefix('.') {
        rest = fraction.trim_start_matches(|one: char| one.is_ascii_digit());
        (rest.len() < fraction.len()).then_some(())?;
    }
    let minutes = 60 * hour + minute;
    let (sign, offset) = match rest.as_bytes() {
        [b'Z' | b'z'] => (b'+', 0),
        [sign @ (b'+' | b'-'), ..] => (*sign, clock(&rest[1..])?),
        _ => return None,
    };
    // A leap second is the last one of a day in UTC.
    let day = 24 * 60;
    let in_utc = if sign == b'+' { minutes + day - offset } else { minutes + offset } % day;
    let is_second = second < 60 || second == 60 && in_utc == day - 1;
    (hour < 24 && minute < 60 && is_second).then_some(())
}

/// The minutes of `HH:MM`.
fn clock(text: &str) -> Option<u32> {
    let (hour, rest) = digits(text, 2)?;
    let (minute, rest) = digits(rest.strip_prefix(':')?, 2)?;
    (hour < 24 && minute < 60 && rest.is_empty()).then_some(60 * hour + minute)
}

fn date_time(text: &str) -> Option<()> {
    let (day, rest) = text.split_once(['T', 't'])?;
    date(day).and_then(|()| time(rest))
}

fn email(text: &str) -> bool {
    // The parser refuses an empty quoted local part, which the RFC allows, so another one is substituted.
    let quoted = text.strip_prefix("\"\"@").map(|domain| format!("\"a\"@{domain}"));
    let Ok(address) = quoted.as_deref().unwrap_or(text).parse::<EmailAddress>() else { return false };
    let is_domain = |domain: &str| match domain.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        Some(literal) => match literal.split_at_checked(5) {
            Some((tag, address)) if tag.eq_ignore_ascii_case("IPv6:") => address.parse::<Ipv6Addr>().is_ok(),
            _ => literal.parse::<Ipv4Addr>().is_ok(),
        },
        None => hostname(domain) && domain.split('.').all(has_no_reserved_hyphens),
    };
    address.local_part().is_ascii() && is_domain(address.domain())
}

/// According to RFC 5891, only encoded labels have hyphens as their third and fourth characters.
fn has_no_reserved_hyphens(label: &str) -> bool {
    label.get(2..4) != Some("--") || label.starts_with("xn")
}

fn hostname(text: &str) -> bool {
    let is_label = |label: &str| {
        let has_letters = label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        let is_enclosed = !label.starts_with('-') && !label.ends_with('-');
        (1..=63).contains(&label.len()) && has_letters && is_enclosed
    };
    text.len() <= 253 && text.split('.').all(is_label)
}

fn json_pointer(text: &str) -> bool {
    let is_token = |token: &str| token.split('~').skip(1).all(|rest| rest.starts_with(['0', '1']));
    text.is_empty() || text.starts_with('/') && text.split('/').all(is_token)
}

/// Whether a URI reference has a scheme; `None` if the text is not a URI reference.
fn uri_reference(text: &str) -> Option<bool> {
    let (text, fragment) = split_off(text, '#');
    let (text, query) = split_off(text, '?');
    let scheme = text.split_once(':').filter(|(scheme, _)| is_scheme(scheme));
    let rest = scheme.map_or(text, |(_, rest)| rest);
    let path = match rest.strip_prefix("//") {
        Some(rest) => {
            let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            is_authority(authority).then_some(path)?
        }
        None => rest,
    };
    // In a relative reference, the first segment must not contain a colon, because the colon would end a
    // scheme.
    let is_clear = scheme.is_some() || !path.split('/').next().is_some_and(|segment| segment.contains(':'));
    let parts = [(path, ":@/"), (query.unwrap_or_default(), ":@/?"), (fragment.unwrap_or_default(), ":@/?")];
    (is_clear && parts.iter().all(|(part, more)| is_encoded(part, more))).then_some(scheme.is_some())
}

fn split_off(text: &str, separator: char) -> (&str, Option<&str>) {
    text.split_once(separator).map_or((text, None), |(text, rest)| (text, Some(rest)))
}

fn is_scheme(text: &str) -> bool {
    let is_letter = |one: char| one.is_ascii_alphanumeric() || "+-.".contains(one);
    text.starts_with(|one: char| one.is_ascii_alphabetic()) && text.chars().all(is_letter)
}

fn is_authority(text: &str) -> bool {
    let (user, host) = text.split_once('@').unwrap_or(("", text));
    let (is_host, port) =
        if let Some((literal, port)) = host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            (is_ip_literal(literal), port)
        } else {
            let (name, port) = host.split_at(host.find(':').unwrap_or(host.len()));
            (is_encoded(name, ""), port)
        };
    let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
    is_encoded(user, ":") && is_host && (port.is_empty() || port.strip_prefix(':').is_some_and(is_port))
}

fn is_ip_literal(text: &str) -> bool {
    let Some(future) = text.strip_prefix(['v', 'V']) else { return text.parse::<Ipv6Addr>().is_ok() };
    future.split_once('.').is_some_and(|(version, rest)| {
        let is_version = !version.is_empty() && version.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_version && !rest.is_empty() && !rest.contains('%') && is_encoded(rest, ":")
    })
}

/// Whether a text has only unreserved characters, sub-delimiters, percent-encoded bytes, and characters in
/// `more`.
fn is_encoded(text: &str, more: &str) -> bool {
    let is_plain =
        |one: char| one.is_ascii_alphanumeric() || "-._~!$&'()*+,;=".contains(one) || more.contains(one);
    let mut parts = text.split('%');
    let is_first_plain = parts.next().is_none_or(|part| part.chars().all(is_plain));
    is_first_plain && parts.all(|part| after_percent(part).is_some_and(|rest| rest.chars().all(is_plain)))
}

/// The text after the two digits of a percent-encoded byte.
fn after_percent(text: &str) -> Option<&str> {
    let (byte, rest) = text.split_at_checked(2)?;
    byte.bytes().all(|digit| digit.is_ascii_hexdigit()).then_some(rest)
}

fn uri_template(text: &str) -> Option<()> {
    let mut rest = text;
    while let Some(one) = rest.chars().next() {
        rest = &rest[one.len_utf8()..];
        match one {
            '{' => {
                let (expression, behind) = rest.split_once('}')?;
                let variables = expression.strip_prefix(|one| "+#./;?&=,!@|".contains(one));
                variables.unwrap_or(expression).split(',').try_for_each(template_variable)?;
                rest = behind;
            }
            '%' => rest = after_percent(rest)?,
            '\0'..=' ' | '"' | '<' | '>' | '\\' | '^' | '`' | '|' | '}' | '\x7f' => return None,
            _ => {}
        }
    }
    Some(())
}

fn template_variable(text: &str) -> Option<()> {
    let name = match text.split_once(':') {
        Some((name, length)) => {
            let is_length = (1..=4).contains(&length.len()) && !length.starts_with('0');
            (is_length && length.bytes().all(|byte| byte.is_ascii_digit())).then_some(name)?
        }
        None => text.strip_suffix('*').unwrap_or(text),
    };
    let is_plain = |one: char| one.is_ascii_alphanumeric() || one == '_';
    let is_part = |part: &str| {
        let mut parts = part.split('%');
        let is_first_plain = parts.next().is_none_or(|part| part.chars().all(is_plain));
        let is_rest = parts.all(|part| after_percent(part).is_some_and(|rest| rest.chars().all(is_plain)));
        !part.is_empty() && is_first_plain && is_rest
    };
    name.split('.').all(is_part).then_some(())
}

#[cfg(test)]
mod tests;
