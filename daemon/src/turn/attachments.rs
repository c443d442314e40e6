//! Writes a user message with its attachments as the text that the model reads.
//!
//! Recorded conversations depend on the exact form of this text.

use std::path::PathBuf;

use loopd_proto::attachment::{Attachment, LineRange};
use tokio::io::AsyncReadExt;

use crate::regular_file;

/// Line counting stops after this many bytes; a more exact count of a longer file has no use.
const COUNT_LIMIT: usize = 8 * 1024 * 1024;

/// Puts the attachments before and after the prompt.
pub(super) async fn render(prompt: &str, attachments: &[Attachment]) -> String {
    let mut before = String::new();
    let mut files = Vec::new();
    let mut references = Vec::new();
    for attachment in attachments {
        match attachment {
            Attachment::File {
                path, line_range, ..
            } => files.push(file_line(path, *line_range).await),
            Attachment::Directory { path, .. } => files.push(directory_line(path).await),
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
            // The bytes of a blob go beside the text. Unknown kinds are for other clients.
            Attachment::Blob { .. } | Attachment::Other(_) => {}
        }
    }
    let mut text = before;
    text.push_str(prompt);
    for (tag, lines) in [("tagged_files", &files), ("github_references", &references)] {
        if !lines.is_empty() {
            let block = format!("\n\n\n\n<{tag}>\n{}\n</{tag}>", lines.join("\n"));
            text.push_str(&block);
        }
    }
    text
}

fn lines_of(start: u64, end: u64) -> String {
    if start == end {
        format!(" (line {start})")
    } else {
        format!(" (lines {start}-{end})")
    }
}

async fn file_line(path: &str, range: Option<LineRange>) -> String {
    let about = match (count_lines(path).await, range) {
        (Some(lines), None) => format!("({lines} lines)"),
        (Some(lines), Some(LineRange { start, end })) if start == end => {
            format!("(line {start} of {lines} lines)")
        }
        (Some(lines), Some(LineRange { start, end })) => {
            format!("(lines {start}-{end} of {lines} lines)")
        }
        (None, _) => "(cannot be read)".to_owned(),
    };
    format!("* {path} {about}")
}

async fn directory_line(path: &str) -> String {
    let mut items = 0;
    let Ok(mut entries) = tokio::fs::read_dir(path).await else {
        return format!("* {path} (cannot be read)");
    };
    while let Ok(Some(_)) = entries.next_entry().await {
        items += 1;
    }
    format!("* {path} ({items} items)")
}

async fn count_lines(path: &str) -> Option<usize> {
    let path = PathBuf::from(path);
    let opened = tokio::task::spawn_blocking(move || regular_file::open(&path)).await;
    let mut file = tokio::fs::File::from_std(opened.ok()?.ok()?);
    let mut buffer = vec![0_u8; 64 * 1024];
    let (mut lines, mut seen, mut last) = (0, 0, b'\n');
    loop {
        let read = file.read(&mut buffer).await.ok()?;
        let chunk = buffer.get(..read)?;
        let Some(end) = chunk.last() else { break };
        last = *end;
        lines += chunk.split(|byte| *byte == b'\n').count() - 1;
        seen += read;
        if seen > COUNT_LIMIT {
            break;
        }
    }
    Some(lines + usize::from(last != b'\n'))
}
