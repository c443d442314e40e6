use super::*;
use loopd_model::http::Url;

fn reply(content_type: &str, body: &[u8]) -> Reply {
    Reply {
        url: Url::parse("https://example.com/").unwrap(),
        content_type: content_type.to_owned(),
        body: body.to_vec(),
        cut: Cut::Whole,
    }
}

#[test]
fn the_encoding_is_found() {
    let table: &[(&str, &[u8])] = &[
        ("text/plain; charset=ISO-8859-1", b"Gr\xfc\xdfe"),
        ("text/plain; charset=\"utf-8\"", "Grüße".as_bytes()),
        ("text/plain", "Grüße".as_bytes()),
        ("text/plain; charset=nonsense", "Grüße".as_bytes()),
        ("text/plain", b"\xff\xfeG\0r\0\xfc\0\xdf\0e\0"),
        ("text/html", b"<meta charset=latin1><p>Gr\xfc\xdfe"),
        ("", b"<!doctype html><meta http-equiv=x content='text/html; charset=windows-1252'>Gr\xfc\xdfe"),
    ];
    for (content_type, body) in table {
        let page = read(reply(content_type, body), Form::Readable).unwrap();
        assert_eq!(page.text.trim(), "Grüße", "{content_type}");
    }
}

#[test]
fn text_is_told_from_other_things() {
    for content_type in [
        "application/json",
        "application/ld+json",
        "text/x-rust",
        "image/svg+xml",
    ] {
        let page = read(reply(content_type, b"{}"), Form::Readable).unwrap();
        assert_eq!(page.text, "{}", "{content_type}");
    }
    for content_type in ["application/pdf", "image/png", "application/octet-stream"] {
        assert!(read(reply(content_type, b"%PDF"), Form::Readable).is_err());
    }
}
