//! Rewrites HTML so that converting it is safe: no scripts, few attributes, every element closed,
//! a bounded depth and number of elements. Hostile pages nest deep enough to overflow the stack of a
//! program that walks their tree; the rewritten HTML cannot. Called by `page`. Linear in its input.

use std::cell::RefCell;

use html5ever::tendril::StrTendril;
use html5ever::tokenizer::states::RawKind;
use html5ever::tokenizer::{
    BufferQueue, Tag, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts,
};

use loopd_model::http::Url;

/// How deep elements may be in one another; what is deeper keeps its text only.
const MAX_DEPTH: usize = 40;

/// How many elements that style text may be open, because they are opened again in every block.
const MAX_STYLED: usize = 6;

/// How many elements a page may have; after that only text is kept.
const MAX_ELEMENTS: usize = 50_000;

/// The longest address of a link or picture that is kept.
const MAX_ADDRESS: usize = 2000;

/// Elements that are left out with everything in them.
const DROPPED: &[&str] = &[
    "script", "style", "noscript", "template", "iframe", "object", "svg", "math", "canvas",
    "audio", "video", "select", "noembed", "noframes", "xmp",
];

/// Elements that are kept; of all others only what is in them.
const KEPT: &[&str] = &[
    "a",
    "article",
    "b",
    "blockquote",
    "br",
    "code",
    "dd",
    "del",
    "div",
    "dl",
    "dt",
    "em",
    "footer",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "header",
    "hr",
    "i",
    "img",
    "li",
    "main",
    "nav",
    "ol",
    "p",
    "pre",
    "s",
    "section",
    "strong",
    "table",
    "tbody",
    "td",
    "tfoot",
    "th",
    "thead",
    "tr",
    "ul",
];

/// Elements without an end.
const VOID: &[&str] = &["br", "hr", "img"];

/// Elements that are opened again in every block until they are closed.
const STYLED: &[&str] = &["a", "b", "code", "del", "em", "i", "s", "strong"];

/// Rewrites a page; relative addresses become absolute.
pub(super) fn tidied(html: &str, base: &Url) -> String {
    let writer = Writer {
        base,
        state: RefCell::default(),
    };
    let input = BufferQueue::default();
    input.push_back(StrTendril::from(html));
    let tokenizer = Tokenizer::new(writer, TokenizerOpts::default());
    // No script is run, so the parser reads the whole input at once.
    drop(tokenizer.feed(&input));
    tokenizer.end();
    let mut state = tokenizer.sink.state.take();
    state.close_to(0);
    state.out
}

struct Writer<'a> {
    base: &'a Url,
    state: RefCell<State>,
}

#[derive(Default)]
struct State {
    out: String,
    open: Vec<&'static str>,
    elements: usize,
    /// The element that is being left out, and how often it is open in itself.
    dropping: Option<(&'static str, usize)>,
    title: Title,
}

/// What is known of the page's title.
#[derive(Default, PartialEq, Eq)]
enum Title {
    #[default]
    Unseen,
    Open,
    Seen,
}

impl TokenSink for Writer<'_> {
    type Handle = ();

    fn process_token(&self, token: Token, _line: u64) -> TokenSinkResult<()> {
        let mut state = self.state.borrow_mut();
        match token {
            Token::CharacterTokens(text) => state.text(&text),
            Token::TagToken(tag) => {
                let name: &str = &tag.name;
                match tag.kind {
                    TagKind::StartTag => state.start(name, &tag, self.base),
                    TagKind::EndTag => state.end(name),
                }
                if tag.kind == TagKind::StartTag {
                    return raw_state(name);
                }
            }
            Token::DoctypeToken(_)
            | Token::CommentToken(_)
            | Token::NullCharacterToken
            | Token::EOFToken
            | Token::ParseError(_) => {}
        }
        TokenSinkResult::Continue
    }
}

/// Some elements contain text that only looks like markup.
fn raw_state(name: &str) -> TokenSinkResult<()> {
    match name {
        "script" => TokenSinkResult::RawData(RawKind::ScriptData),
        "style" | "xmp" | "iframe" | "noembed" | "noframes" => {
            TokenSinkResult::RawData(RawKind::Rawtext)
        }
        "title" | "textarea" => TokenSinkResult::RawData(RawKind::Rcdata),
        _ => TokenSinkResult::Continue,
    }
}

impl State {
    fn text(&mut self, text: &str) {
        if self.dropping.is_some() {
            return;
        }
        for character in text.chars() {
            match character {
                '<' => self.out.push_str("&lt;"),
                '>' => self.out.push_str("&gt;"),
                '&' => self.out.push_str("&amp;"),
                other => self.out.push(other),
            }
        }
    }

    fn start(&mut self, name: &str, tag: &Tag, base: &Url) {
        if let Some((dropped, depth)) = &mut self.dropping {
            if *dropped == name && !tag.self_closing {
                *depth += 1;
            }
            return;
        }
        if let Some(dropped) = find(DROPPED, name) {
            if !tag.self_closing {
                self.dropping = Some((dropped, 1));
            }
            return;
        }
        if name == "title" {
            if self.title == Title::Unseen && self.open.is_empty() {
                self.title = Title::Open;
                self.out.push_str("<h1>");
            } else {
                self.dropping = Some(("title", 1));
            }
            return;
        }
        let Some(name) = find(KEPT, name) else {
            return;
        };
        let styled = |open: &&&str| STYLED.contains(*open);
        let is_styled = STYLED.contains(&name);
        let too_deep = self.open.len() >= MAX_DEPTH
            || (is_styled && self.open.iter().filter(styled).count() >= MAX_STYLED)
            || (is_styled && self.open.contains(&name));
        if too_deep || self.elements >= MAX_ELEMENTS {
            self.out.push(' ');
            return;
        }
        self.elements += 1;
        self.out.push('<');
        self.out.push_str(name);
        self.attributes(tag, base);
        self.out.push('>');
        if !VOID.contains(&name) {
            self.open.push(name);
        }
    }

    fn attributes(&mut self, tag: &Tag, base: &Url) {
        for attribute in &tag.attrs {
            let (name, value): (&str, &str) = (&attribute.name.local, &attribute.value);
            let value = match name {
                "href" | "src" => match base.join(value) {
                    Ok(url) if is_worth_it(&url) => url.to_string(),
                    _ => continue,
                },
                "alt" | "title" => value.chars().take(MAX_ADDRESS).collect(),
                // The language of a block of code.
                "class" if &*tag.name == "code" => value.chars().take(50).collect(),
                _ => continue,
            };
            let value = value.replace('&', "&amp;").replace('"', "&quot;");
            for part in [" ", name, "=\"", &value, "\""] {
                self.out.push_str(part);
            }
        }
    }

    fn end(&mut self, name: &str) {
        if let Some((dropped, depth)) = &mut self.dropping {
            if *dropped == name {
                *depth -= 1;
                if *depth == 0 {
                    self.dropping = None;
                }
            }
            return;
        }
        if name == "title" && self.title == Title::Open {
            self.title = Title::Seen;
            self.out.push_str("</h1>");
            return;
        }
        if let Some(place) = self.open.iter().rposition(|open| *open == name) {
            self.close_to(place);
        }
    }

    /// Closes everything above a depth, innermost first.
    fn close_to(&mut self, depth: usize) {
        while self.open.len() > depth
            && let Some(name) = self.open.pop()
        {
            self.out.push_str("</");
            self.out.push_str(name);
            self.out.push('>');
        }
    }
}

/// Inline pictures are long and of no use as text.
fn is_worth_it(url: &Url) -> bool {
    matches!(url.scheme(), "http" | "https" | "mailto") && url.as_str().len() <= MAX_ADDRESS
}

fn find(names: &[&'static str], name: &str) -> Option<&'static str> {
    names.iter().find(|known| **known == name).copied()
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed step fails the test")]
mod tests;
