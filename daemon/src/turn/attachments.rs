//! Writes a user message with its attachments as the text that the model reads.
//!
//! Recorded conversations depend on the exact form of this text.

mod references;

use std::io;
use std::path::PathBuf;

use base64::Engine as _;
use loopd_proto::attachment::{Attachment, LineRange};
use tokio::io::AsyncReadExt;

use crate::regular_file;
use references::Reference;

/// Line counting stops after this many bytes; a more exact count of a longer file has no use.
const COUNT_LIMIT: usize = 8 * 1024 * 1024;

/// The longest text of a blob, in bytes of base64.
const LONGEST_BLOB: usize = 256 * 1024;
/// What the model is told about agents that a message names.
const AGENTS_WANTED: &str = "The user wants these agents to do the work; start them with the tool `task`, and give them all \
                             that they need to know:";

/// Returns whether the bytes of a blob are given to the model beside the text.
fn goes_beside(mime_type: &str) -> bool {
    mime_type.starts_with("image/") || mime_type == "application/pdf"
}

/// Returns the text of a blob that is one.
fn blob_text(data: &str, mime_type: &str) -> Option<String> {
    let known = [
        "application/json",
        "application/xml",
        "application/yaml",
        "application/toml",
    ];
    if !mime_type.starts_with("text/") && !known.contains(&mime_type) || data.len() > LONGEST_BLOB {
        return None;
    }
    let bytes = base64::engine::general_purpose::STANDARD
        .decode(data)
        .ok()?;
    String::from_utf8(bytes).ok()
}

/// A message as the model reads it.
pub(super) struct Rendered {
    pub(super) text: String,
    /// What people should know: attachments that the model does not get.
    pub(super) notices: Vec<String>,
}

/// Puts the attachments before and after the prompt.
pub(super) async fn render(prompt: &str, attachments: &[Attachment]) -> Rendered {
    let mut before = String::new();
    let mut files = Vec::new();
    let mut references = Vec::new();
    let (mut resources, mut agents) = (Vec::new(), Vec::new());
    let (mut blocks, mut not_shown) = (Vec::new(), Vec::new());
    let mut notices = Vec::new();
    for attachment in attachments {
        match attachment {
            Attachment::File {
                path, line_range, ..
            } => {
                let line = file_line(path, *line_range).await;
                files.push(line.unwrap_or_else(|why| unreadable(path, &why, &mut notices)));
            }
            Attachment::Directory { path, .. } => {
                let line = directory_line(path).await;
                files.push(line.unwrap_or_else(|why| unreadable(path, &why, &mut notices)));
            }
            Attachment::Selection {
                file_path,
                display_name,
                text,
                selection,
            } => {
                let name = display_name.as_deref().unwrap_or(file_path);
                let place = selection
                    .map(|range| lines_of(range.start.line + 1, range.end.line + 1))
                    .unwrap_or_default();
                before.push_str(
                    "<ide_selection>\nThe user has the following text selected in their IDE. \
                     This may or may not be related to their request.\n",
                );
                let file = format!("File: {name}{place}\n```\n{text}\n```\n");
                before.push_str(&file);
                before.push_str("</ide_selection>\n\n\n\n");
            }
            Attachment::GithubReference {
                number,
                reference_type,
                state,
                title,
                url,
            } => references.push(format!(
                "#{number} - {title} [{reference_type}] [{state}] ({url})"
            )),
            // The bytes of images and documents go beside the text.
            Attachment::Blob { mime_type, .. } if goes_beside(mime_type) => {}
            Attachment::Blob {
                data,
                mime_type,
                display_name,
            } => {
                let name = display_name.as_deref().unwrap_or("without a name");
                match blob_text(data, mime_type) {
                    Some(text) => blocks.push(format!(
                        "<attached_text name={name:?} type={mime_type:?}>\n{text}\n</attached_text>"
                    )),
                    None => not_shown.push(format!(
                        "{name}: bytes of the type {mime_type} cannot be shown"
                    )),
                }
            }
            Attachment::Other(value) => match references::read(value) {
                Reference::Github(line) => references.push(line),
                Reference::Resource(line) => resources.push(format!("* {line}")),
                Reference::Agent(name) => agents.push(format!("* {name}")),
                Reference::Block(text) => blocks.push(text),
                Reference::NotShown(why) => not_shown.push(why),
            },
        }
    }
    notices.extend(not_shown.iter().cloned());
    let not_shown: Vec<String> = not_shown.iter().map(|why| format!("* {why}")).collect();
    let mut text = before;
    text.push_str(prompt);
    if !agents.is_empty() {
        agents.insert(0, AGENTS_WANTED.to_owned());
    }
    for block in blocks {
        text.push_str("\n\n\n\n");
        text.push_str(&block);
    }
    for (tag, lines) in [
        ("tagged_files", &files),
        ("github_references", &references),
        ("resources", &resources),
        ("mentioned_agents", &agents),
        ("attachments_not_shown", &not_shown),
    ] {
        if !lines.is_empty() {
            let block = format!("\n\n\n\n<{tag}>\n{}\n</{tag}>", lines.join("\n"));
            text.push_str(&block);
        }
    }
    Rendered { text, notices }
}

/// Returns the line of a file or folder that cannot be read, and notes it for people.
fn unreadable(path: &str, why: &io::Error, notices: &mut Vec<String>) -> String {
    notices.push(format!("{path} cannot be read: {why}"));
    format!("* {path} (cannot be read)")
}

/// Says what was done to attached images, so that they fit what the model takes.
pub(super) fn changed(notes: &[String]) -> String {
    let lines: Vec<String> = notes.iter().map(|note| format!("* {note}")).collect();
    format!(
        "\n\n\n\n<attachments_changed>\n{}\n</attachments_changed>",
        lines.join("\n")
    )
}

fn lines_of(start: u64, end: u64) -> String {
    if start == end {
        format!(" (line {start})")
    } else {
        format!(" (lines {start}-{end})")
    }
}

async fn file_line(path: &str, range: Option<LineRange>) -> io::Result<String> {
    let lines = count_lines(path).await?;
    let about = match range {
        None => format!("({lines} lines)"),
        Some(LineRange { start, end }) if start == end => {
            format!("(line {start} of {lines} lines)")
        }
        Some(LineRange { start, end }) => format!("(lines {start}-{end} of {lines} lines)"),
    };
    Ok(format!("* {path} {about}"))
}

async fn directory_line(path: &str) -> io::Result<String> {
    let mut items = 0;
    let mut entries = tokio::fs::read_dir(path).await?;
    while let Ok(Some(_)) = entries.next_entry().await {
        items += 1;
    }
    Ok(format!("* {path} ({items} items)"))
}

async fn count_lines(path: &str) -> io::Result<usize> {
    let path = PathBuf::from(path);
    let opened = tokio::task::spawn_blocking(move || regular_file::open(&path)).await;
    let mut file = tokio::fs::File::from_std(opened.map_err(io::Error::other)??);
    let mut buffer = vec![0_u8; 64 * 1024];
    let (mut lines, mut seen, mut last) = (0, 0, b'\n');
    loop {
        let read = file.read(&mut buffer).await?;
        let chunk = buffer.get(..read).unwrap_or_default();
        let Some(end) = chunk.last() else { break };
        last = *end;
        lines += chunk.split(|byte| *byte == b'\n').count() - 1;
        seen += read;
        if seen > COUNT_LIMIT {
            break;
        }
    }
    Ok(lines + usize::from(last != b'\n'))
}
