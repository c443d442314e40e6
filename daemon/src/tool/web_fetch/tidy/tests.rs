use super::*;

fn tidy(html: &str) -> String {
    tidied(html, &Url::parse("https://example.com/a/b").unwrap())
}

#[test]
fn what_remains_is_closed_and_harmless() {
    let table = [
        ("<p>a<b>b", "<p>a<b>b</b></p>"),
        ("<script><p>x</p></script>y", "y"),
        ("<style>a{}</style><!-- c -->y", "y"),
        ("<svg><svg></svg><p>x</svg>y", "y"),
        ("<font color=red>x</font>", "x"),
        ("<p onclick=x style=y>z</p>", "<p>z</p>"),
        (
            "<a href='c d'>x</a>",
            "<a href=\"https://example.com/a/c%20d\">x</a>",
        ),
        ("<a href='javascript:x'>y</a>", "<a>y</a>"),
        (
            "<img src='data:image/png;base64,AAAA' alt='a\"b'>",
            "<img alt=\"a&quot;b\">",
        ),
        ("</p></p>x</b>", "x"),
        ("<div><b>x</div>y", "<div><b>x</b></div>y"),
        ("&lt;script&gt;x", "&lt;script&gt;x"),
        ("<title>a</title><p><title>b</title>", "<h1>a</h1><p></p>"),
        (
            "<code class=\"language-rust\">x</code>",
            "<code class=\"language-rust\">x</code>",
        ),
    ];
    for (html, expected) in table {
        assert_eq!(tidy(html), expected, "{html}");
    }
}

#[test]
fn hostile_pages_are_converted_in_little_time_and_space() {
    let styles = (0..5000).map(|n| format!("<font a={n}><b a={n}><i a={n}>"));
    let styles = styles.collect::<Vec<_>>().concat();
    let pages = [
        "<div>".repeat(400_000),
        "<b>".repeat(500_000),
        "<ul><li>".repeat(200_000),
        "<table><tr><td>".repeat(100_000),
        "<blockquote>".repeat(100_000),
        format!("{styles}{}", "<p></p>".repeat(100_000)),
        format!("<div>{styles}</div>{}", "<p>x".repeat(100_000)),
        "<a href=x>".repeat(150_000),
        "<pre><code>".repeat(100_000),
        "<".repeat(1_000_000),
        "<!--".repeat(300_000),
        "&".repeat(1_000_000),
    ];
    for page in pages {
        let tidied = tidy(&page);
        assert!(tidied.len() < 8 * 1024 * 1024, "{}", tidied.len());
        let depth = tidied.split('<').fold((0_i32, 0_i32), |(now, most), part| {
            let now = if part.starts_with('/') {
                now - 1
            } else {
                now + 1
            };
            (now, most.max(now))
        });
        assert!(depth.1 <= 60 || !tidied.contains("</"), "{}", depth.1);
        assert!(htmd::convert(&tidied).is_ok());
    }
}
