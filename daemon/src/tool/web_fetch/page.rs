//! Converts a response to text: detects the encoding, converts HTML to Markdown, rejects data that
//! is not text. Called by `web_fetch` on a blocking thread; opens nothing.

use encoding_rs::{Encoding, UTF_8};

use super::tidy;
use super::visit::{Cut, Reply};
use super::{disk, texts};

/// The maximum amount of HTML that is converted to Markdown.
const MAX_HTML: usize = 2 * 1024 * 1024;

/// How many bytes of a page are searched for a declaration of its encoding.
const SNIFFED: usize = 1024;

/// How HTML is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Readable,
    Raw,
}

/// A page as text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Page {
    pub(super) text: String,
    /// What is missing.
    pub(super) note: Option<String>,
}

/// Why there is no text.
#[derive(Debug, thiserror::Error)]
pub(super) enum PageError {
    #[error("{url} is {kind} ({size}), not text. Download it with a shell command if you need it.")]
    NotText {
        url: String,
        kind: String,
        size: String,
    },
    #[error("The page could not be turned into text: {0}")]
    Unconverted(std::io::Error),
}

/// Converts a response to text.
pub(super) fn read(reply: Reply, form: Form) -> Result<Page, PageError> {
    let kind = Kind::of(&reply);
    if kind == Kind::Other {
        return Err(PageError::NotText {
            kind: match media_type(&reply.content_type) {
                "" => "binary data".to_owned(),
                media_type => texts::clipped(media_type, media_type.len() as u64, 100),
            },
            size: match reply.cut {
                Cut::Whole => texts::size(reply.body.len() as u64),
                Cut::AtLimit(limit) => format!("more than {}", texts::size(limit as u64)),
            },
            url: reply.url.into(),
        });
    }
    let mut text = decoded(&reply, kind);
    let mut cut = match reply.cut {
        Cut::Whole => None,
        Cut::AtLimit(limit) => Some(limit),
    };
    if kind == Kind::Html && form == Form::Readable {
        if text.len() > MAX_HTML {
            let end = (0..=MAX_HTML).rev().find(|end| text.is_char_boundary(*end));
            text.truncate(end.unwrap_or(0));
            cut = Some(MAX_HTML);
        }
        text = markdown(&tidy::tidied(&text, &reply.url))?;
    }
    let note = cut.map(|limit| {
        format!(
            "[The page is longer than {}; the rest was not read.]",
            texts::size(limit as u64)
        )
    });
    Ok(Page { text, note })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Html,
    Text,
    Other,
}

impl Kind {
    fn of(reply: &Reply) -> Self {
        let media_type = media_type(&reply.content_type).to_ascii_lowercase();
        let start = reply.body.get(..SNIFFED).unwrap_or(&reply.body);
        // UTF-16 contains zero bytes, but begins with a byte order mark.
        let is_text = Encoding::for_bom(start).is_some() || !disk::is_binary(start);
        match media_type.as_str() {
            _ if !is_text => Self::Other,
            "text/html" | "application/xhtml+xml" => Self::Html,
            "" if looks_like_html(start) => Self::Html,
            "" => Self::Text,
            other if is_textual(other) => Self::Text,
            _ => Self::Other,
        }
    }
}

fn media_type(content_type: &str) -> &str {
    content_type.split(';').next().unwrap_or_default().trim()
}

fn is_textual(media_type: &str) -> bool {
    let known = [
        "application/json",
        "application/javascript",
        "application/ecmascript",
        "application/xml",
        "application/yaml",
        "application/x-yaml",
        "application/toml",
        "application/sql",
        "application/graphql",
        "application/x-sh",
        "application/x-ndjson",
        "application/jsonl",
        "application/x-javascript",
        "image/svg+xml",
    ];
    media_type.starts_with("text/")
        || known.contains(&media_type)
        || media_type.ends_with("+json")
        || media_type.ends_with("+xml")
        || media_type.ends_with("+yaml")
}

fn looks_like_html(start: &[u8]) -> bool {
    let start = String::from_utf8_lossy(start).to_ascii_lowercase();
    let start = start.trim_start();
    start.starts_with("<!doctype html") || start.starts_with("<html")
}

/// Decodes the body by its byte order mark, its header or its own declaration, otherwise as UTF-8.
fn decoded(reply: &Reply, kind: Kind) -> String {
    let named = charset(&reply.content_type);
    let own = || {
        let start = reply.body.get(..SNIFFED).unwrap_or(&reply.body);
        let start = String::from_utf8_lossy(start).to_ascii_lowercase();
        (kind == Kind::Html).then(|| charset(&start)).flatten()
    };
    let encoding = named.or_else(own).unwrap_or(UTF_8);
    // A byte order mark wins over the encoding given here.
    let (text, _, _) = encoding.decode(&reply.body);
    text.into_owned()
}

fn charset(text: &str) -> Option<&'static Encoding> {
    let place = text.to_ascii_lowercase().find("charset=")?;
    let label = text.get(place + "charset=".len()..)?;
    let label = label.trim_start_matches(['"', '\'', ' ']);
    let end = label
        .find(|c: char| !c.is_ascii_alphanumeric() && !"-_:.".contains(c))
        .unwrap_or(label.len());
    Encoding::for_label(label.get(..end)?.as_bytes())
}

fn markdown(html: &str) -> Result<String, PageError> {
    let options = htmd::options::Options {
        ul_bullet_spacing: 1,
        ol_number_spacing: 1,
        ..htmd::options::Options::default()
    };
    htmd::HtmlToMarkdown::builder()
        .options(options)
        .build()
        .convert(html)
        .map_err(PageError::Unconverted)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed step fails the test")]
mod tests;
