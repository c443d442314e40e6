//! Headers that ask for a wait.

use super::*;

type Headers = &'static [(&'static str, &'static str)];

fn hint(headers: &[(&'static str, &str)]) -> Option<Duration> {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        map.insert(*name, value.parse().unwrap());
    }
    from_headers(&map, ErrorKind::RateLimit)
}

#[test]
fn seconds_milliseconds_and_spans_are_read() {
    let cases: [(Headers, Option<u64>); 15] = [
        (&[], None),
        (&[("retry-after", "3")], Some(3000)),
        (&[("retry-after", "0.5")], Some(500)),
        (&[("retry-after", "-1")], None),
        (&[("retry-after", "soon")], None),
        (
            &[("retry-after-ms", "250"), ("retry-after", "9")],
            Some(250),
        ),
        (&[("x-ratelimit-reset-requests", "1s")], Some(1000)),
        (&[("x-ratelimit-reset-requests", "6m0s")], Some(360_000)),
        (
            &[("x-ratelimit-reset-requests", "1h2m3.5s")],
            Some(3_723_500),
        ),
        (&[("x-ratelimit-reset-requests", "20ms")], Some(20)),
        (&[("x-ratelimit-reset-requests", "7")], Some(7000)),
        (&[("x-ratelimit-reset-requests", "5 parsecs")], None),
        (
            &[
                ("x-ratelimit-reset-requests", "1s"),
                ("x-ratelimit-reset-tokens", "4s"),
            ],
            Some(4000),
        ),
        (
            &[
                ("x-ratelimit-reset-requests", "6m0s"),
                ("x-ratelimit-remaining-requests", "99"),
                ("x-ratelimit-reset-tokens", "4s"),
                ("x-ratelimit-remaining-tokens", "0"),
            ],
            Some(4000),
        ),
        (
            &[("retry-after", "2"), ("x-ratelimit-reset-requests", "6m0s")],
            Some(2000),
        ),
    ];
    for (headers, expected) in cases {
        assert_eq!(
            hint(headers),
            expected.map(Duration::from_millis),
            "{headers:?}"
        );
    }
}

#[test]
fn a_date_is_measured_against_the_date_of_the_response() {
    let until = "Fri, 01 Mar 2024 00:00:30 GMT";
    let sent = ("date", "Thu, 29 Feb 2024 23:59:50 GMT");
    assert_eq!(
        hint(&[("retry-after", until), sent]),
        Some(Duration::from_secs(40))
    );
    assert_eq!(hint(&[("retry-after", until)]), None);
    let past = "Thu, 29 Feb 2024 23:00:00 GMT";
    assert_eq!(hint(&[("retry-after", past), sent]), Some(Duration::ZERO));
}

#[test]
fn dates_count_from_1970() {
    let cases = [
        ("Thu, 01 Jan 1970 00:00:00 GMT", Some(0)),
        ("Wed, 21 Oct 2015 07:28:00 GMT", Some(1_445_412_480)),
        ("Tue, 29 Feb 2000 12:00:00 GMT", Some(951_825_600)),
        ("Wed, 21 Oct 2015 07:28:00 CET", None),
        ("Wed, 21 Oct 2015 99:28:00 GMT", None),
        ("Wed, 21 Okt 2015 07:28:00 GMT", None),
        ("Wed, 18446744073709551615 Oct 2015 07:28:00 GMT", None),
        ("", None),
    ];
    for (text, expected) in cases {
        assert_eq!(http_date(text), expected, "{text}");
    }
}

#[test]
fn limits_of_other_errors_are_not_waits() {
    let mut map = HeaderMap::new();
    map.insert("x-ratelimit-reset-requests", "6m0s".parse().unwrap());
    assert_eq!(from_headers(&map, ErrorKind::Server), None);
    map.insert("retry-after", "2".parse().unwrap());
    assert_eq!(
        from_headers(&map, ErrorKind::Server),
        Some(Duration::from_secs(2))
    );
}

#[test]
fn absurd_waits_are_bounded() {
    assert_eq!(hint(&[("retry-after", "1e18")]), Some(LONGEST_HINT));
    assert_eq!(hint(&[("retry-after", "1e300")]), None);
}
