//! Turns the output of a command into text for the model and for people. The shell tools use it,
//! and so do the methods by which clients run commands.

use std::io;

use loopd_exec::terminal::{CommandOutput, HEAD_CHARS, OutputBody, SavedOutput, TAIL_CHARS};

use super::{bash, large_output, texts};

/// The name of the tool that runs a command line.
pub const TOOL: &str = bash::names::RUN;

/// The most bytes of partial output that are passed on at once. Of a longer piece, only the end is.
const MAX_PIECE: usize = 16 * 1024;

/// Returns the whole output, or its start and end and the path of the file that holds all of it.
pub fn whole(shown: CommandOutput) -> String {
    let mut text = match shown.body {
        OutputBody::Whole(text) => text.trim_end_matches(['\r', '\n']).to_owned(),
        OutputBody::Preview {
            head,
            tail,
            bytes,
            saved,
        } => {
            let (saved, kept) = match saved {
                SavedOutput::File { path, bytes: kept } => (Ok(path), kept),
                SavedOutput::Pending => (Err(io::Error::other("it is still being written")), bytes),
                SavedOutput::Failed(why) => (Err(io::Error::other(why)), bytes),
            };
            let mut text = large_output::notice(bytes, &saved, &head, HEAD_CHARS);
            text.push_str("\n\n");
            let tail = tail.trim_end_matches(['\r', '\n']);
            text.push_str(&texts::last_preview(TAIL_CHARS, bytes, tail));
            if kept < bytes {
                text.push_str("\n[Only the first ");
                text.push_str(&texts::size(kept));
                text.push_str(" were saved.]");
            }
            text
        }
    };
    if let Some(screen) = shown.screen {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str("[The program fills the screen, which shows now:]\n");
        text.push_str(&screen.text);
    }
    text
}

/// Returns a piece of output for clients that watch the command; of a long piece, its end.
pub fn piece(shown: CommandOutput) -> String {
    let text = match shown.body {
        OutputBody::Whole(text) => text,
        OutputBody::Preview { tail, .. } => format!("[... some output is not shown ...]\n{tail}"),
    };
    if text.len() <= MAX_PIECE {
        return text;
    }
    let start = text.len() - MAX_PIECE;
    let start = (start..text.len()).find(|at| text.is_char_boundary(*at));
    let end = start.and_then(|start| text.get(start..)).unwrap_or(&text);
    format!(
        "[... {} bytes are not shown ...]\n{end}",
        text.len() - end.len()
    )
}

/// Returns an output followed by the exit code.
pub fn with_exit(output: &str, code: i32) -> String {
    let exited = texts::exited(code);
    if output.is_empty() {
        exited
    } else {
        format!("{output}\n{exited}")
    }
}
