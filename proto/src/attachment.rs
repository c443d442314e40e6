//! The attachments of user messages.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_with::skip_serializing_none;

/// One attachment of a user message.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(
    tag = "type",
    rename_all = "snake_case",
    rename_all_fields = "camelCase"
)]
pub enum Attachment {
    /// A file on the daemon's disk, or some of its lines.
    File {
        path: String,
        display_name: Option<String>,
        line_range: Option<LineRange>,
    },
    /// A folder on the daemon's disk.
    Directory {
        path: String,
        display_name: Option<String>,
    },
    /// Text selected in an editor.
    Selection {
        file_path: String,
        display_name: Option<String>,
        text: String,
        selection: Option<Selection>,
    },
    /// Bytes given inline, such as a pasted image.
    Blob {
        data: String,
        mime_type: String,
        display_name: Option<String>,
    },
    /// An issue, pull request or discussion.
    GithubReference {
        number: u64,
        reference_type: String,
        state: String,
        title: String,
        url: String,
    },
    /// A kind this build does not know; kept, shown to clients, not shown to the model.
    #[serde(untagged)]
    Other(Value),
}

impl Attachment {
    /// Returns about how many bytes the attachment has in itself; a file on the disk has hardly any.
    pub fn size(&self) -> usize {
        match self {
            Self::File { path, .. } | Self::Directory { path, .. } => path.len(),
            Self::Selection {
                file_path, text, ..
            } => file_path.len() + text.len(),
            Self::Blob { data, .. } => data.len(),
            Self::GithubReference { title, url, .. } => title.len() + url.len(),
            Self::Other(value) => value.to_string().len(),
        }
    }

    /// Returns the path on the daemon's disk.
    pub fn path(&self) -> Option<&str> {
        match self {
            Self::File { path, .. } | Self::Directory { path, .. } => Some(path),
            Self::Selection { file_path, .. } => Some(file_path),
            Self::Blob { .. } | Self::GithubReference { .. } | Self::Other(_) => None,
        }
    }
}

/// Lines of a file, both included, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LineRange {
    pub start: u64,
    pub end: u64,
}

/// A range in an editor, counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Selection {
    pub start: Position,
    pub end: Position,
}

/// A place in an editor, counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    pub line: u64,
    pub character: u64,
}
