//! Lays out the blocks of a Markdown text.

use std::ops::Range;

use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};

use super::table::Table;
use super::{Piece, Pieces};
use crate::chat::highlight;
use crate::chat::styled::{Colour, Line, Look};
use crate::terminal::sanitize;

/// How wide a rule is at most.
const RULE: usize = 40;
const FENCE: &str = "```";

/// Splits a text into pieces.
pub(super) fn pieces(text: &str, columns: usize) -> Pieces {
    let options =
        Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let events: Vec<(Event<'_>, Range<usize>)> =
        Parser::new_ext(text, options).into_offset_iter().collect();
    let mut walk = Walk {
        events: &events,
        at: 0,
        text,
        columns,
    };
    let mut found = Pieces {
        all: Vec::new(),
        of_last: 0,
        last_start: 0,
    };
    while let Some((_, range)) = events.get(walk.at) {
        let start = range.start;
        let before = found.all.len();
        let block = walk.top_block();
        for (number, lines) in block.into_iter().enumerate() {
            found.all.push(Piece {
                lines,
                begins_block: number == 0,
            });
        }
        let added = found.all.len() - before;
        if added > 0 {
            found.of_last = added;
            found.last_start = start;
        }
    }
    found
}

/// Walks over the events of the parser.
struct Walk<'a> {
    events: &'a [(Event<'a>, Range<usize>)],
    at: usize,
    text: &'a str,
    columns: usize,
}

impl<'a> Walk<'a> {
    fn peek(&self) -> Option<&'a Event<'a>> {
        self.events.get(self.at).map(|(event, _)| event)
    }

    fn next(&mut self) -> Option<&'a Event<'a>> {
        let event = self.peek();
        self.at += 1;
        event
    }

    /// Lays out a block at the top; a list and code are several pieces.
    fn top_block(&mut self) -> Vec<Vec<Line>> {
        match self.peek() {
            Some(Event::Start(Tag::List(first))) => {
                let first = *first;
                self.next();
                self.items(first)
            }
            Some(Event::Start(Tag::CodeBlock(_))) => {
                self.code().into_iter().map(|line| vec![line]).collect()
            }
            Some(_) | None => vec![self.block()],
        }
    }

    /// Lays out one block.
    fn block(&mut self) -> Vec<Line> {
        match self.peek() {
            Some(Event::Start(Tag::Paragraph)) => {
                self.next();
                self.inline(Look::PLAIN)
            }
            Some(Event::Start(Tag::Heading { level, .. })) => {
                let level = *level;
                self.next();
                self.inline(heading(level))
            }
            Some(Event::Start(Tag::CodeBlock(_))) => self.code(),
            Some(Event::Start(Tag::List(first))) => {
                let first = *first;
                self.next();
                self.items(first).into_iter().flatten().collect()
            }
            Some(Event::Start(Tag::Table(alignments))) => {
                self.next();
                let table = self.table(alignments.len());
                table.lines(self.columns)
            }
            Some(Event::Start(Tag::BlockQuote(_))) => {
                self.next();
                let lines = self.blocks();
                let quoted = lines.into_iter().map(|line| line.indented("│ ", "│ "));
                quoted.collect()
            }
            Some(Event::Start(_)) => {
                self.next();
                self.blocks()
            }
            Some(Event::Rule) => {
                self.next();
                let wide = self.columns.min(RULE);
                vec![Line::of(Look::DIM, "─".repeat(wide))]
            }
            Some(Event::Html(html)) => {
                self.next();
                let text = sanitize(html.trim_end());
                text.lines().map(|line| Line::of(Look::DIM, line)).collect()
            }
            Some(Event::End(_)) | None => {
                self.next();
                Vec::new()
            }
            Some(_) => self.inline(Look::PLAIN),
        }
    }

    /// Lays out the blocks up to the end of the one that they are in.
    fn blocks(&mut self) -> Vec<Line> {
        let mut lines: Vec<Line> = Vec::new();
        while let Some(event) = self.peek() {
            if matches!(event, Event::End(_)) {
                self.next();
                break;
            }
            let is_list = matches!(event, Event::Start(Tag::List(_)));
            let block = self.block();
            if !lines.is_empty() && !block.is_empty() && !is_list {
                lines.push(Line::default());
            }
            lines.extend(block);
        }
        lines
    }

    /// Lays out the items of a list, up to its end.
    fn items(&mut self, first: Option<u64>) -> Vec<Vec<Line>> {
        let mut number = first;
        let mut items = Vec::new();
        while let Some(event) = self.next() {
            match event {
                Event::Start(Tag::Item) => {
                    let marker = match &mut number {
                        Some(number) => {
                            let marker = format!("{number}. ");
                            *number = number.saturating_add(1);
                            marker
                        }
                        None => "• ".to_owned(),
                    };
                    let indent = " ".repeat(marker.chars().count());
                    let mut lines = self.blocks();
                    if lines.is_empty() {
                        lines.push(Line::default());
                    }
                    let lines = lines.into_iter().enumerate().map(|(at, line)| {
                        let first = if at == 0 { &marker } else { &indent };
                        line.indented(first, &indent)
                    });
                    items.push(lines.collect());
                }
                Event::End(TagEnd::List(_)) => break,
                _ => {}
            }
        }
        items
    }

    /// Lays out a block of code between its fences.
    fn code(&mut self) -> Vec<Line> {
        let range = self.events.get(self.at).map(|(_, range)| range.clone());
        let source = range.and_then(|range| self.text.get(range));
        let Some(Event::Start(Tag::CodeBlock(kind))) = self.next() else {
            return Vec::new();
        };
        let mut text = String::new();
        while let Some(event) = self.next() {
            match event {
                Event::Text(part) => text.push_str(part),
                Event::End(_) => break,
                _ => {}
            }
        }
        let language = match kind {
            CodeBlockKind::Fenced(language) => Some(sanitize(language)),
            CodeBlockKind::Indented => None,
        };
        let text = sanitize(&text);
        let coloured = text.lines().map(|line| {
            let language = language.as_deref().unwrap_or_default();
            highlight::code(line, language)
        });
        let Some(named) = &language else {
            return coloured.collect();
        };
        let mut lines = vec![Line::of(Look::DIM, format!("{FENCE}{named}")).verbatim()];
        lines.extend(coloured);
        let source = source.unwrap_or_default().trim_end();
        let last = source.lines().next_back().unwrap_or_default().trim();
        let is_fence = last.len() >= 3 && last.chars().all(|c| c == '`' || c == '~');
        if is_fence && source.lines().count() > 1 {
            lines.push(Line::of(Look::DIM, FENCE).verbatim());
        }
        lines
    }

    fn table(&mut self, columns: usize) -> Table {
        let mut table = Table::new(columns);
        while let Some(event) = self.next() {
            match event {
                Event::Start(Tag::TableHead | Tag::TableRow) => table.begin_row(),
                Event::Start(Tag::TableCell) => {
                    let look = if table.is_head() {
                        Look::BOLD
                    } else {
                        Look::PLAIN
                    };
                    let mut cell = Line::default();
                    for line in self.inline(look) {
                        for span in line.spans {
                            cell.push(span.look, &span.text);
                        }
                    }
                    table.add(cell);
                }
                Event::End(TagEnd::Table) => break,
                _ => {}
            }
        }
        table
    }

    /// Lays out text, up to the end of its block or the beginning of another one.
    fn inline(&mut self, look: Look) -> Vec<Line> {
        let mut looks = vec![look];
        let mut addresses: Vec<String> = Vec::new();
        let mut lines = vec![Line::default()];
        while let Some(event) = self.peek() {
            let look = looks.last().copied().unwrap_or_default();
            let mut add = |look: Look, text: &str| {
                if let Some(line) = lines.last_mut() {
                    line.push(look, &sanitize(text));
                }
            };
            match event {
                Event::Text(text) | Event::InlineHtml(text) => add(look, text),
                Event::Code(code) => {
                    let look = Look {
                        colour: Some(Colour::Cyan),
                        ..look
                    };
                    add(look, code);
                }
                // Models break lines where they mean it.
                Event::SoftBreak | Event::HardBreak => lines.push(Line::default()),
                Event::TaskListMarker(done) => add(look, if *done { "[x] " } else { "[ ] " }),
                Event::Start(tag) => {
                    let inner = match tag {
                        Tag::Emphasis => Look {
                            italic: true,
                            ..look
                        },
                        Tag::Strong => look.bold(),
                        Tag::Strikethrough => Look {
                            struck: true,
                            ..look
                        },
                        Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => {
                            addresses.push(dest_url.to_string());
                            Look {
                                underlined: true,
                                ..look
                            }
                        }
                        // Another block begins, as after the text of an item.
                        _ => break,
                    };
                    looks.push(inner);
                }
                Event::End(end) => match end {
                    TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => {
                        looks.pop();
                    }
                    TagEnd::Link | TagEnd::Image => {
                        looks.pop();
                        let address = addresses.pop().unwrap_or_default();
                        let text = lines.last().map(Line::text).unwrap_or_default();
                        // The address is shown, so that nobody has to trust the text of a link.
                        if !address.is_empty()
                            && !text.ends_with(&address)
                            && let Some(line) = lines.last_mut()
                        {
                            line.push(Look::DIM, &sanitize(&format!(" ({address})")));
                        }
                    }
                    TagEnd::Item => break,
                    _ => {
                        self.next();
                        break;
                    }
                },
                _ => {}
            }
            self.next();
        }
        lines
    }
}

fn heading(level: HeadingLevel) -> Look {
    match level {
        HeadingLevel::H1 => Look {
            underlined: true,
            ..Look::BOLD
        },
        HeadingLevel::H2 => Look::of(Colour::Blue).bold(),
        HeadingLevel::H3 | HeadingLevel::H4 | HeadingLevel::H5 | HeadingLevel::H6 => Look::BOLD,
    }
}
