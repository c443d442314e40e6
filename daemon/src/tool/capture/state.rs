//! What is, or was, at a path: enough to compare two moments and to bring one of them back.

use std::fmt;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::objects::Hash;
use crate::tool::disk::DiskError;
use crate::tool::disk::exact::{self, Found, Version};

/// The state of a path at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub(in crate::tool) enum FileState {
    Absent,
    File {
        hash: Hash,
        size: u64,
        mode: u32,
    },
    Folder {
        mode: u32,
    },
    /// A link. What it leads to is nobody's business here.
    Link,
    /// Something whose content was not captured: too large, not readable, not a regular file.
    Unknown,
}

impl FileState {
    pub(super) fn is_folder(&self) -> bool {
        matches!(self, Self::Folder { .. })
    }
}

/// Why the content of a path was not captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NotCaptured {
    TooLarge,
    Link,
    /// A pipe, a socket or a device.
    Special,
    Unreadable,
    /// A rule keeps it from being read.
    Unread,
    /// The file was being written when it was read.
    Changing,
    /// The bound for all files together was reached.
    OutOfSpace,
    /// It came from elsewhere; what tools create is known by when it was made.
    Moved,
    /// A command may have changed it, and the copy of the workspace did not have it.
    NotCopied,
    /// A place that a command changed before it was copied: it is not known what was deleted there.
    DeletedUncopied,
    /// The daemon ended while a tool wrote the file.
    Interrupted,
    /// The stored content was dropped to make room, or is damaged.
    Dropped,
}

impl fmt::Display for NotCaptured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TooLarge => "it is too large",
            Self::Link => "it is a link, or behind one",
            Self::Special => "it is no regular file",
            Self::Unreadable => "it could not be read",
            Self::Unread => "a rule keeps it from being read",
            Self::Changing => "it was being written",
            Self::OutOfSpace => "there was no room for more content",
            Self::Moved => "it was not made here",
            Self::NotCopied => "it was not in the copy of the working directory",
            Self::DeletedUncopied => {
                "it was not copied yet when a command ran, and what the command deleted there cannot be brought back"
            }
            Self::Interrupted => "the daemon ended while it was written",
            Self::Dropped => "its earlier content was dropped to make room",
        })
    }
}

/// A path as it is now, with its content if it is a file that can be captured.
#[derive(Debug)]
pub(super) struct Now {
    pub(super) state: FileState,
    pub(super) version: Option<Version>,
    /// Set if the state is `Unknown` or `Link`.
    pub(super) why: Option<NotCaptured>,
}

impl Now {
    fn plain(state: FileState) -> Self {
        Self {
            state,
            version: None,
            why: None,
        }
    }

    fn not_captured(why: NotCaptured) -> Self {
        let state = match why {
            NotCaptured::Link => FileState::Link,
            _ => FileState::Unknown,
        };
        Self {
            state,
            version: None,
            why: Some(why),
        }
    }

    /// Looks at a path; files of more than `limit` bytes are not read.
    pub(super) fn at(real: &Path, limit: u64) -> Self {
        Self::looked_at(real, || match exact::read(real, limit) {
            Ok(version) => Self::file(version),
            Err(error) => Self::not_captured(why(&error)),
        })
    }

    /// Looks at a path whose content is not captured if it is a file.
    pub(super) fn without_content(real: &Path, why_not: NotCaptured) -> Self {
        Self::looked_at(real, || Self::not_captured(why_not))
    }

    fn looked_at(real: &Path, file: impl FnOnce() -> Self) -> Self {
        match exact::look(real) {
            Ok(Found::Absent) => Self::plain(FileState::Absent),
            Ok(Found::Folder { mode }) => Self::plain(FileState::Folder { mode }),
            Ok(Found::Link) => Self::not_captured(NotCaptured::Link),
            Ok(Found::Special) => Self::not_captured(NotCaptured::Special),
            Ok(Found::File) => file(),
            Err(error) => Self::not_captured(why(&error)),
        }
    }

    pub(super) fn file(version: Version) -> Self {
        let state = FileState::File {
            hash: Hash::of(&version.contents),
            size: version.contents.len() as u64,
            mode: version.trace.mode,
        };
        Self {
            state,
            version: Some(version),
            why: None,
        }
    }
}

pub(super) fn why(error: &DiskError) -> NotCaptured {
    match error {
        DiskError::TooLarge { .. } => NotCaptured::TooLarge,
        // A link is in the place of a folder above, or the file changed while it was read.
        DiskError::Changed => NotCaptured::Changing,
        DiskError::Folder | DiskError::Special => NotCaptured::Special,
        DiskError::Binary
        | DiskError::NotUtf8
        | DiskError::WriteProtected
        | DiskError::Exists
        | DiskError::Io(_) => NotCaptured::Unreadable,
    }
}
