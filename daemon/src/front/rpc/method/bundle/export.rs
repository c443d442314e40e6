//! Writes a session as a bundle, a page at a time. The cursor says all that the next page depends on.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use loopd_proto::id::{Seq, SessionId};
use loopd_proto::params::bundle::{BUNDLE_VERSION, ExportPage, ExportParams};
use loopd_proto::time::Timestamp;
use loopd_store::SessionRecord;
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::super::discover::{look, shown};
use super::super::family::Families;
use super::super::workspace::files::OwnFolder;
use super::files::{self, Listed};
use super::format::{End, FilePart, Header, Line};
use super::{MOST_BYTES, RpcError};
use crate::front::rpc::context::Context;
use crate::redaction::Redaction;
use crate::session::SessionError;
use loopd_kernel::state::fingerprint;

/// How large a page is, but for its last line.
const PAGE: usize = 2 * 1024 * 1024;
/// How many bytes of a file one line has; divisible by the four letters of base64.
const PART: usize = 1024 * 1024;
/// How many events are read from the store at once.
const EVENTS: usize = 200;

/// Where the next page begins.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Cursor {
    /// After this event, up to the one that was the last when the export began.
    Events {
        through: Seq,
        after: Seq,
    },
    Files(FileCursor),
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct FileCursor {
    through: Seq,
    /// How many files are done.
    done: u64,
    /// How much of the next one is done, and what tells its content from another.
    offset: usize,
    content: u64,
    /// The last file that is done; empty before the first.
    after: String,
}

impl Cursor {
    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.splitn(6, '.');
        let kind = parts.next()?;
        let mut number = || parts.next()?.parse::<u64>().ok();
        match kind {
            "e" => Some(Self::Events {
                through: Seq(number()?),
                after: Seq(number()?),
            }),
            "f" => Some(Self::Files(FileCursor {
                through: Seq(number()?),
                done: number()?,
                offset: usize::try_from(number()?).ok()?,
                content: number()?,
                after: parts.next()?.to_owned(),
            })),
            _ => None,
        }
    }
}

impl std::fmt::Display for Cursor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Events { through, after } => write!(f, "e.{}.{}", through.0, after.0),
            Self::Files(at) => write!(
                f,
                "f.{}.{}.{}.{}.{}",
                at.through.0, at.done, at.offset, at.content, at.after
            ),
        }
    }
}

pub(super) async fn page(context: &Context, params: ExportParams) -> Result<ExportPage, RpcError> {
    let services = &context.app.services;
    let id = params.session_id;
    let record = services.store.record(&id).await?;
    let record = record.ok_or_else(|| RpcError::from(SessionError::NotFound(id.clone())))?;
    let masks = masks(context, &id).await?;
    let mut text = String::new();
    let cursor = match params.cursor.as_deref() {
        None => {
            check(context, &record).await?;
            let header = serde_json::to_string(&header(context, &record));
            let header = header.map_err(|error| RpcError::Failed(error.to_string()))?;
            line(&mut text, &masked(header, &masks)?)?;
            Cursor::Events {
                through: Seq(record.event_count),
                after: Seq::START,
            }
        }
        Some(cursor) => Cursor::parse(cursor).ok_or_else(|| {
            RpcError::InvalidParams(
                "cursor: it is none of this method; leave it out to begin".to_owned(),
            )
        })?,
    };
    let at = match cursor {
        Cursor::Events { through, after } => {
            match events(context, &id, &masks, &mut text, (through, after)).await? {
                Some(next) => return Ok(unfinished(text, &next)),
                None => FileCursor {
                    through,
                    done: 0,
                    offset: 0,
                    content: 0,
                    after: String::new(),
                },
            }
        }
        Cursor::Files(at) => at,
    };
    let listed = if params.without_files {
        Listed {
            paths: Vec::new(),
            left_out: vec!["the session's own files, as the caller wished".to_owned()],
        }
    } else {
        list(context, &id).await?
    };
    let own = own_folder(context, &id);
    let paths = listed.paths;
    let written = look(move || write_files(&own, &paths, &masks, at, text)).await??;
    let (mut text, done) = match written {
        Written::Page(text, next) => return Ok(unfinished(text, &Cursor::Files(next))),
        Written::All(text, done) => (text, done),
    };
    let mut left_out = listed.left_out;
    left_out.extend(never_there(context, &id).await?);
    line(&mut text, &Line::LeftOut(left_out.clone()))?;
    let end = End {
        events: done.through.0,
        files: done.done,
    };
    line(&mut text, &Line::End(end))?;
    Ok(ExportPage {
        text,
        next: None,
        left_out,
    })
}

fn unfinished(text: String, next: &Cursor) -> ExportPage {
    ExportPage {
        text,
        next: Some(next.to_string()),
        left_out: Vec::new(),
    }
}

fn line(text: &mut String, line: &impl Serialize) -> Result<(), RpcError> {
    let written = serde_json::to_string(line);
    let written = written.map_err(|error| RpcError::Failed(error.to_string()))?;
    text.push_str(&written);
    text.push('\n');
    Ok(())
}

/// Refuses what cannot go on elsewhere.
async fn check(context: &Context, record: &SessionRecord) -> Result<(), RpcError> {
    if let (Some(_), Some(parent)) = (&record.agent, &record.parent) {
        return Err(RpcError::Failed(format!(
            "{} is the session of a sub-agent, which goes on only below the session that started it; export \
             {parent}",
            record.id
        )));
    }
    let bytes = context.app.services.store.size_of(&record.id).await?;
    if bytes > MOST_BYTES {
        return Err(RpcError::Failed(format!(
            "the log of {} has {bytes} bytes, more than the {MOST_BYTES} bytes of a bundle; fork the session from \
             a later message and export the fork",
            record.id
        )));
    }
    Ok(())
}

fn header(context: &Context, record: &SessionRecord) -> Header {
    let services = &context.app.services;
    Header {
        version: BUNDLE_VERSION,
        by: services.version.to_owned(),
        exported_at: services.clock.now(),
        session_id: record.id.clone(),
        folder: shown(&services.session_folder(&record.id)),
        directory: record.cwd.clone(),
        name: record.name.clone(),
        summary: record.summary.clone(),
        client_name: record.client_name.clone(),
        created_at: Timestamp(record.created_ms),
    }
}

/// Everything that must not be in the text: what the caller, the session and the daemon know as secrets.
/// The log was written without the secrets of its time; others may have come since.
async fn masks(context: &Context, id: &SessionId) -> Result<Vec<Redaction>, RpcError> {
    let services = &context.app.services;
    let launch = context.connection.launch();
    let variables = services.config.key_variables();
    let variables = variables.filter_map(|name| launch.variable(name).map(str::to_owned));
    let known = launch.secret_values().into_iter().chain(variables);
    let mut masks = vec![Redaction::of(known.chain(services.logins.secrets()))];
    if let Some(session) = context.app.sessions.get(id) {
        match session.view(|view| (view.redaction)()).await {
            Ok(own) => masks.push(own),
            // It ended at this moment, and its secrets with it.
            Err(SessionError::Ended(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    masks.retain(|mask| !mask.is_empty());
    Ok(masks)
}

/// Adds events to the page; returns where the next one begins, if these were not all.
async fn events(
    context: &Context,
    id: &SessionId,
    masks: &[Redaction],
    text: &mut String,
    (through, mut after): (Seq, Seq),
) -> Result<Option<Cursor>, RpcError> {
    let store = &context.app.services.store;
    while after < through {
        let page = store.read(id, after, EVENTS).await?;
        if page.is_empty() {
            return Err(RpcError::Failed(format!(
                "the log of {id} became shorter while it was exported; export it again"
            )));
        }
        for event in page.into_iter().filter(|event| event.seq <= through) {
            after = event.seq;
            line(text, &Line::Event(masked(event.json.to_string(), masks)?))?;
            if text.len() >= PAGE {
                return Ok(Some(Cursor::Events { through, after }));
            }
        }
    }
    Ok(None)
}

/// Masks every secret in a JSON text.
fn masked(json: String, masks: &[Redaction]) -> Result<Box<RawValue>, RpcError> {
    let unreadable = |error: serde_json::Error| {
        RpcError::Storage(format!("an event of the session cannot be read: {error}"))
    };
    let mut text = json;
    if !masks.is_empty() {
        let mut value: Value = serde_json::from_str(&text).map_err(unreadable)?;
        let mut changed = false;
        for mask in masks {
            changed |= mask.clean_value(&mut value);
        }
        if changed {
            text = value.to_string();
        }
    }
    RawValue::from_string(text).map_err(unreadable)
}

fn own_folder(context: &Context, id: &SessionId) -> OwnFolder {
    super::super::workspace::own_folder(context, id, "")
}

async fn list(context: &Context, id: &SessionId) -> Result<Listed, RpcError> {
    let log = context.app.services.store.size_of(id).await?;
    let own = own_folder(context, id);
    Ok(look(move || files::list(&own, log)).await??)
}

/// What no bundle has.
async fn never_there(context: &Context, id: &SessionId) -> Result<Vec<String>, RpcError> {
    let mut named = vec![
        "keys, tokens, request headers and MCP servers of clients: no log has them".to_owned(),
    ];
    let families = Families::load(&context.app.services).await?;
    match families.below(id).len() {
        0 => {}
        agents => named.push(format!(
            "the sessions of {agents} sub-agents: what they answered is in the log, but they take no more messages"
        )),
    }
    Ok(named)
}

enum Written {
    /// The page is full.
    Page(String, FileCursor),
    All(String, FileCursor),
}

/// Adds files to the page. Blocks.
fn write_files(
    own: &OwnFolder,
    paths: &[String],
    masks: &[Redaction],
    mut at: FileCursor,
    mut text: String,
) -> Result<Written, RpcError> {
    let begin = paths.partition_point(|path| *path <= at.after);
    for path in paths.get(begin..).unwrap_or_default() {
        let content = Content::of(files::read(own, path)?, masks);
        let known = fingerprint(&content.text);
        if at.offset > 0 && at.content != known {
            return Err(RpcError::Failed(format!(
                "{path} was changed while it was exported; export the session again"
            )));
        }
        at.content = known;
        loop {
            let part = content.part(at.offset);
            at.offset += part.len();
            let more = at.offset < content.text.len();
            let part = FilePart {
                path: path.clone(),
                text: content.is_plain.then(|| part.to_owned()),
                base64: (!content.is_plain).then(|| part.to_owned()),
                more,
            };
            line(&mut text, &Line::File(part))?;
            if !more {
                break;
            }
            if text.len() >= PAGE {
                return Ok(Written::Page(text, at));
            }
        }
        (at.offset, at.content) = (0, 0);
        at.done += 1;
        at.after.clone_from(path);
        if text.len() >= PAGE {
            return Ok(Written::Page(text, at));
        }
    }
    Ok(Written::All(text, at))
}

/// The content of a file as it stands in the bundle.
struct Content {
    text: String,
    is_plain: bool,
}

impl Content {
    fn of(bytes: Vec<u8>, masks: &[Redaction]) -> Self {
        let is_plain = |text: &str| {
            let control = |c: char| c.is_control() && !matches!(c, '\n' | '\r' | '\t');
            !text.contains(control)
        };
        let clean = |text: &mut String| {
            for mask in masks {
                mask.clean_in_place(text);
            }
        };
        match String::from_utf8(bytes) {
            Ok(mut text) => {
                clean(&mut text);
                if is_plain(&text) {
                    return Self {
                        text,
                        is_plain: true,
                    };
                }
                Self {
                    text: STANDARD.encode(text),
                    is_plain: false,
                }
            }
            Err(other) => Self {
                text: STANDARD.encode(other.into_bytes()),
                is_plain: false,
            },
        }
    }

    /// Returns the part of the text that begins here.
    fn part(&self, from: usize) -> &str {
        let rest = self.text.get(from..).unwrap_or_default();
        let mut end = PART.min(rest.len());
        while !rest.is_char_boundary(end) {
            end -= 1;
        }
        rest.get(..end).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_read_as_it_was_written() {
        let cursors = [
            Cursor::Events {
                through: Seq(7),
                after: Seq(3),
            },
            Cursor::Files(FileCursor {
                through: Seq(7),
                done: 2,
                offset: 4096,
                content: u64::MAX,
                after: "files/a.b.c/d.txt".to_owned(),
            }),
        ];
        for cursor in cursors {
            assert_eq!(Cursor::parse(&cursor.to_string()), Some(cursor));
        }
        for text in ["", "e.1", "x.1.2", "f.1.2.3.4", "e.a.1"] {
            assert_eq!(Cursor::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_secret_is_in_neither_form_of_a_file() {
        let masks = [Redaction::of(["hunter2-hunter2".to_owned()])];
        let plain = Content::of(b"key hunter2-hunter2 end".to_vec(), &masks);
        assert_eq!(
            (plain.text.as_str(), plain.is_plain),
            ("key [redacted] end", true)
        );
        let coloured = Content::of(b"\x1b[1mhunter2-hunter2".to_vec(), &masks);
        assert!(!coloured.is_plain);
        assert_eq!(
            STANDARD.decode(coloured.text).ok(),
            Some(b"\x1b[1m[redacted]".to_vec())
        );
    }
}
