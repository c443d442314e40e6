//! Formats times, token counts and other counts for people.

use std::time::Duration;

/// Formats a duration in its two largest units.
pub(crate) fn span(time: Duration) -> String {
    let seconds = time.as_secs();
    match (seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60) {
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, minutes) => format!("{minutes} min {} s", seconds % 60),
        (0, hours, minutes) => format!("{hours} h {minutes} min"),
        (days, hours, _) => format!("{days} d {hours} h"),
    }
}

/// Formats the duration of something that has ended; short ones to a tenth of a second.
pub(crate) fn took(time: Duration) -> String {
    if time < Duration::from_secs(10) {
        let tenths = time.as_millis() / 100;
        return format!("{}.{} s", tenths / 10, tenths % 10);
    }
    span(time)
}

/// Formats a number of tokens, in thousands or millions where it is large.
pub(crate) fn tokens(number: u64) -> String {
    match number {
        0..1_000 => number.to_string(),
        1_000..100_000 => format!("{}.{}k", number / 1_000, number / 100 % 10),
        100_000..1_000_000 => format!("{}k", number / 1_000),
        _ => format!("{}.{}M", number / 1_000_000, number / 100_000 % 10),
    }
}

/// Formats a number of bytes.
pub(crate) fn size(bytes: u64) -> String {
    const KIB: u64 = 1024;
    match bytes {
        0..KIB => format!("{bytes} bytes"),
        KIB..0x10_0000 => format!("{} KiB", bytes / KIB),
        _ => {
            let tenths = bytes / (KIB * KIB / 10);
            format!("{}.{} MiB", tenths / 10, tenths % 10)
        }
    }
}

pub(crate) fn counted(number: usize, one: &str, many: &str) -> String {
    if number == 1 {
        format!("1 {one}")
    } else {
        format!("{number} {many}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_formatted_in_suitable_units() {
        let told = [0, 999, 1_234, 99_999, 123_456, 3_210_000].map(tokens);
        assert_eq!(told, ["0", "999", "1.2k", "99.9k", "123k", "3.2M"]);
        let told = [12, 2_047, 1_048_576, 1_600_000].map(size);
        assert_eq!(told, ["12 bytes", "1 KiB", "1.0 MiB", "1.5 MiB"]);
        assert_eq!(took(Duration::from_millis(1_270)), "1.2 s");
        assert_eq!(took(Duration::from_secs(75)), "1 min 15 s");
        assert_eq!(span(Duration::from_secs(7_300)), "2 h 1 min");
    }
}
