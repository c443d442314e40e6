//! `loopd.sessions.search`: finds sessions by what was said in them, and by their names and directories.

use std::sync::Arc;
use std::time::Duration;

use loopd_proto::event::{Durable, read_durable};
use loopd_proto::params::bundle::{MessageMatch, SearchParams, SearchResult, SessionMatch};
use loopd_store::{LogSearch, SessionRecord, StoredEvent};

use super::family::opened;
use super::session_stored::describe;
use crate::front::rpc::context::Context;
use crate::front::rpc::error::RpcError;

/// How many sessions are found if the caller does not say, and at most.
const USUAL: usize = 20;
const MOST: usize = 100;
/// The longest text that is looked for, in bytes.
const LONGEST_TEXT: usize = 1024;
/// How long the logs are looked at.
const WITHIN: Duration = Duration::from_secs(10);
/// How many characters stand around the text in an excerpt.
const AROUND: usize = 60;

pub(super) async fn search(
    context: Context,
    params: SearchParams,
) -> Result<SearchResult, RpcError> {
    let text = params.text.trim().to_lowercase();
    if text.is_empty() || text.len() > LONGEST_TEXT {
        return Err(RpcError::InvalidParams(format!(
            "text: give 1 to {LONGEST_TEXT} bytes to look for"
        )));
    }
    let limit = params.limit.unwrap_or(USUAL).clamp(1, MOST);
    let services = &context.app.services;
    let wanted = text.clone();
    let found = services.store.find_newest(LogSearch {
        kinds: &["user.message", "assistant.message"],
        fits: Arc::new(move |json| said_in(json, &wanted).is_some()),
        limit,
        within: WITHIN,
    });
    let found = found.await?;
    let mut sessions: Vec<SessionMatch> = found
        .found
        .into_iter()
        .map(|(record, event)| SessionMatch {
            session: describe(record),
            message: message(&event, &text),
        })
        .collect();
    let named = opened(services).await?;
    let named = named.into_iter().filter(|record| is_named(record, &text));
    for record in named {
        let is_known = sessions.iter().any(|it| it.session.session_id == record.id);
        if !is_known {
            sessions.push(SessionMatch {
                session: describe(record),
                message: None,
            });
        }
    }
    sessions.sort_by_key(|it| std::cmp::Reverse(it.session.modified_time));
    let complete = found.complete && sessions.len() <= limit;
    sessions.truncate(limit);
    Ok(SearchResult { sessions, complete })
}

fn is_named(record: &SessionRecord, text: &str) -> bool {
    let places = [
        &record.name,
        &record.cwd,
        &record.branch,
        &record.repository,
    ];
    let mut places = places.into_iter().flatten();
    places.any(|place| place.to_lowercase().contains(text)) || record.id.as_str().starts_with(text)
}

/// What a message says that has the text.
struct Said {
    content: String,
    by_user: bool,
}

/// Returns what an event says, if it has the text. The text and what is said are compared in lower case.
fn said_in(json: &str, text: &str) -> Option<Said> {
    // Most messages do not even have its first word, and reading them whole takes longer.
    let first: String = text
        .chars()
        .take_while(char::is_ascii_alphanumeric)
        .collect();
    if !contains_ignoring_case(json, &first) {
        return None;
    }
    let (content, by_user) = match read_durable(json).ok()?.1 {
        Durable::UserMessage(message) => (message.content, true),
        Durable::AssistantMessage(message) => (message.content, false),
        _ => return None,
    };
    let has = content.to_lowercase().contains(text);
    has.then_some(Said { content, by_user })
}

/// Compares ASCII letters in both cases; `word` is in lower case.
fn contains_ignoring_case(text: &str, word: &str) -> bool {
    let (text, word) = (text.as_bytes(), word.as_bytes());
    word.is_empty()
        || text
            .windows(word.len())
            .any(|part| part.eq_ignore_ascii_case(word))
}

fn message(event: &StoredEvent, text: &str) -> Option<MessageMatch> {
    let said = said_in(&event.json, text)?;
    let (head, _) = read_durable(&event.json).ok()?;
    Some(MessageMatch {
        event_id: head.id,
        timestamp: head.timestamp,
        by_user: said.by_user,
        excerpt: excerpt(&said.content, text),
    })
}

/// Returns the text with what stands around it, in one line.
fn excerpt(content: &str, text: &str) -> String {
    let line: Vec<&str> = content.split_whitespace().collect();
    let line: Vec<char> = line.join(" ").chars().collect();
    let wanted: Vec<char> = text.chars().collect();
    let fits = |at: &usize| {
        let part = line.iter().skip(*at).flat_map(|c| c.to_lowercase());
        part.take(wanted.len()).eq(wanted.iter().copied())
    };
    let at = (0..line.len()).find(fits).unwrap_or(0);
    let (from, to) = (
        at.saturating_sub(AROUND),
        at.saturating_add(wanted.len() + AROUND).min(line.len()),
    );
    let part: String = line.get(from..to).unwrap_or_default().iter().collect();
    let before = if from > 0 { "…" } else { "" };
    let after = if to < line.len() { "…" } else { "" };
    format!("{before}{part}{after}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excerpt_shows_the_text_where_it_stands() {
        let long = format!("{} the  Milk\nis here {}", "a".repeat(100), "b".repeat(100));
        let shown = excerpt(&long, "milk is");
        assert!(
            shown.starts_with("…aaa") && shown.ends_with("bbb…"),
            "{shown}"
        );
        assert!(shown.contains("the Milk is here"), "{shown}");
        assert_eq!(excerpt("Milk", "milk"), "Milk");
        assert_eq!(excerpt("ÄRGER mit Öl", "ärger"), "ÄRGER mit Öl");
    }

    #[test]
    fn letters_match_in_both_cases() {
        assert!(contains_ignoring_case("xMiLk", "milk"));
        assert!(contains_ignoring_case("anything", ""));
        assert!(!contains_ignoring_case("mil", "milk"));
    }
}
