//! Reads from response headers how long a provider wants us to wait.
//!
//! `error_body` calls it for every refused request. It never looks at a clock: a date is compared
//! with the `Date` of the same response, so a wrong clock here does no harm.

use std::time::Duration;

use reqwest::header::HeaderMap;

use super::error::ErrorKind;

/// A wait longer than this is a mistake of the sender.
const LONGEST_HINT: Duration = Duration::from_secs(31 * 24 * 3600);

/// Finds the wait that a refusal asks for, the most exact header first.
pub(super) fn from_headers(headers: &HeaderMap, kind: ErrorKind) -> Option<Duration> {
    let text = |name: &str| {
        headers
            .get(name)
            .and_then(|value| value.to_str().ok())
            .map(str::trim)
    };
    let hint = text("retry-after-ms")
        .and_then(milliseconds)
        .or_else(|| text("retry-after").and_then(|value| retry_after(value, text("date"))))
        // Limits are reported with every response; they matter where one of them refused.
        .or_else(|| (kind == ErrorKind::RateLimit).then(|| exhausted_limit(&text))?);
    hint.map(|wait| wait.min(LONGEST_HINT))
}

fn milliseconds(text: &str) -> Option<Duration> {
    text.parse::<f64>()
        .ok()
        .and_then(|number| Duration::try_from_secs_f64(number / 1000.0).ok())
}

fn retry_after(value: &str, sent: Option<&str>) -> Option<Duration> {
    if let Ok(seconds) = value.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let until = http_date(value)?;
    let now = http_date(sent?)?;
    Some(Duration::from_secs(until.saturating_sub(now)))
}

/// Takes the reset time of the limits that are used up; the others are sent along but did not refuse.
fn exhausted_limit<'a>(text: &dyn Fn(&str) -> Option<&'a str>) -> Option<Duration> {
    ["requests", "tokens"]
        .iter()
        .filter(|limit| {
            text(&format!("x-ratelimit-remaining-{limit}"))
                .and_then(|left| left.parse::<i64>().ok())
                .is_none_or(|left| left <= 0)
        })
        .filter_map(|limit| text(&format!("x-ratelimit-reset-{limit}")))
        .filter_map(span)
        .max()
}

/// Reads spans such as `1s`, `6m0s`, `1h2m3.5s`, `250ms` or a bare number of seconds.
fn span(text: &str) -> Option<Duration> {
    if let Ok(seconds) = text.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let mut total = Duration::ZERO;
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest.find(|letter: char| !letter.is_ascii_digit() && letter != '.')?;
        let number: f64 = rest.get(..digits)?.parse().ok()?;
        rest = rest.get(digits..)?;
        let unit_end = rest
            .find(|letter: char| letter.is_ascii_digit())
            .unwrap_or(rest.len());
        let seconds = match rest.get(..unit_end)? {
            "ms" => number / 1000.0,
            "s" => number,
            "m" => number * 60.0,
            "h" => number * 3600.0,
            "d" => number * 86400.0,
            _ => return None,
        };
        total = total.checked_add(Duration::try_from_secs_f64(seconds).ok()?)?;
        rest = rest.get(unit_end..)?;
    }
    Some(total)
}

/// Reads an HTTP date such as `Wed, 21 Oct 2015 07:28:00 GMT` as seconds since 1970.
fn http_date(text: &str) -> Option<u64> {
    let mut words = text.split_ascii_whitespace().skip(1);
    let day: u64 = words.next()?.parse().ok()?;
    let month_name = words.next()?;
    let month = 1 + [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ]
    .iter()
    .position(|name| *name == month_name)?;
    let month = u64::try_from(month).ok()?;
    let year: u64 = words.next()?.parse().ok()?;
    let mut clock = words.next()?.split(':').map(str::parse::<u64>);
    let (hour, minute, second) = (
        clock.next()?.ok()?,
        clock.next()?.ok()?,
        clock.next()?.ok()?,
    );
    let is_date =
        words.next()? == "GMT" && (1970..10_000).contains(&year) && (1..=31).contains(&day);
    if !is_date || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    Some(((days_since_1970(year, month, day) * 24 + hour) * 60 + minute) * 60 + second)
}

/// Counts days in years that begin in March, so that the leap day comes last.
fn days_since_1970(year: u64, month: u64, day: u64) -> u64 {
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let leap_days = year / 4 - year / 100 + year / 400;
    let before_month = (153 * month + 2) / 5;
    // 719_468 days lie between 1 March of year 0 and 1 January 1970.
    (year * 365 + leap_days + before_month + day - 1).saturating_sub(719_468)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests fail by panicking")]
mod tests;
