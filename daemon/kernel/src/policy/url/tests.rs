use super::*;

#[test]
fn a_rule_covers_its_origin_and_everything_below_its_path() {
    let table = [
        ("https://example.com", "https://example.com/a", true),
        ("https://example.com", "https://EXAMPLE.com./a", true),
        ("https://example.com", "https://example.com:443/", true),
        ("https://example.com", "https://example.com:8443/", false),
        ("https://example.com", "http://example.com/", false),
        (
            "https://example.com",
            "https://example.com.evil.net/",
            false,
        ),
        (
            "https://example.com",
            "https://example.com@evil.net/",
            false,
        ),
        ("https://example.com", "https://a.example.com/", false),
        (
            "https://example.com",
            "https://evil.net/?https://example.com",
            false,
        ),
        (
            "https://example.com",
            "https://example.com\\@evil.net/",
            false,
        ),
        ("https://*.example.com", "https://a.example.com/x", true),
        ("https://*.example.com", "https://example.com/x", false),
        ("https://*.example.com", "https://badexample.com/x", false),
        (
            "https://example.com/docs",
            "https://example.com/docs/a",
            true,
        ),
        (
            "https://example.com/docs",
            "https://example.com/docs?x",
            true,
        ),
        (
            "https://example.com/docs",
            "https://example.com/docsx",
            false,
        ),
        (
            "https://example.com/docs/",
            "https://example.com/docs/a",
            true,
        ),
        (
            "https://example.com/docs/",
            "https://example.com/docs/../a",
            false,
        ),
        (
            "https://example.com/docs/",
            "https://example.com/docs/%2E%2e/a",
            false,
        ),
        ("http://127.0.0.1:8080", "http://127.0.0.1:8080/x", true),
        ("http://[::1]:8080", "http://[::1]:8080/x", true),
        ("http://127.0.0.1", "http://127.0.0.1:8080/x", false),
        ("example.com", "https://example.com/a", true),
        ("example.com", "http://example.com/a", true),
        ("example.com", "https://example.com:8443/a", false),
        ("example.com", "ftp://example.com/a", false),
        ("*.example.com", "https://x.y.example.com/", true),
        ("127.0.0.1", "http://127.1/", true),
        ("localhost", "http://127.0.0.1/", false),
        ("example.com", "https://ex%61mple.com/", true),
        ("", "https://example.com/", false),
        ("https://", "https://example.com/", false),
    ];
    for (rule, url, expected) in table {
        assert_eq!(covers(rule, url), expected, "{rule} {url}");
    }
}

#[test]
fn a_deny_rule_for_a_host_matches_every_scheme_and_port() {
    let table = [
        ("https://evil.net", "http://evil.net:8080/x", true),
        ("evil.net", "https://EVIL.net./x", true),
        ("*.evil.net", "https://a.evil.net/", true),
        ("https://evil.net/a", "https://evil.net/a/b", true),
        ("https://evil.net/a", "https://evil.net/b", false),
        ("evil.net", "https://x@evil.net/", true),
        ("evil.net", "https://good.com/?evil.net", false),
        ("evil.net", "https://%65vil.net/", true),
        ("evil.net", "https://evil\u{3002}net/", true),
        ("127.0.0.1", "http://127.1:8080/", true),
        ("127.0.0.1", "http://2130706433/", true),
        ("127.0.0.1", "http://0x7f.1/", true),
        ("127.0.0.1", "http://[::ffff:127.0.0.1]/", true),
        ("127.0.0.1", "http://localhost:3000/", true),
        ("http://localhost:3000", "http://[::1]:3000/", true),
        ("localhost", "http://0.0.0.0:1/", true),
        ("169.254.169.254", "http://[::ffff:a9fe:a9fe]/latest", true),
        ("169.254.169.254", "http://2852039166/latest", true),
        ("localhost", "http://128.0.0.1/", false),
        ("10.0.0.1", "http://127.0.0.1/", false),
    ];
    for (rule, url, expected) in table {
        assert_eq!(hits(rule, url), expected, "{rule} {url}");
    }
}
