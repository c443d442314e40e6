//! Recorded conversations: their file format, reading them, and finding the answer to a request.

use loopd_proto::parse_error::plain;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::call_ids::{make_unique, parse_arguments};
use loopd_kernel::model::{AssistantTurn, ModelRequest, ToolCall};

use super::normal::{self, WORKDIR};

/// How many files of a folder are read.
const MOST_FILES: usize = 2_000;
/// How large a file of recordings may be, in bytes.
pub(super) const LARGEST_FILE: u64 = 64 * 1024 * 1024;
/// How much of a message an error quotes, in characters.
const LONGEST_QUOTE: usize = 300;

/// One file.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct RecordingFile {
    #[serde(default)]
    pub(super) conversations: Vec<RecordedConversation>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct RecordedConversation {
    pub(super) messages: Vec<RecordedMessage>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct RecordedMessage {
    pub(super) role: Role,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) content: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) tool_calls: Vec<RecordedCall>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) tool_call_id: Option<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Role {
    System,
    #[default]
    User,
    Assistant,
    Tool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct RecordedCall {
    pub(super) id: String,
    #[serde(rename = "type", default = "function")]
    pub(super) kind: String,
    pub(super) function: RecordedFunction,
}

fn function() -> String {
    "function".to_owned()
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct RecordedFunction {
    pub(super) name: String,
    #[serde(default)]
    pub(super) arguments: String,
}

/// Why recordings cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum RecordingError {
    #[error("the recordings at {path} cannot be read: {source}; correct LOOPD_REPLAY")]
    Unreadable {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("the recording {path} is larger than {LARGEST_FILE} bytes")]
    TooLarge { path: PathBuf },
    #[error("the recording {path} is not valid: {detail}")]
    Invalid { path: PathBuf, detail: String },
    #[error("the folder {path} has more than {MOST_FILES} recordings")]
    TooMany { path: PathBuf },
}

/// Why a request has no answer.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum NoAnswer {
    #[error("no recorded conversation begins like this one: there are none")]
    Empty,
    #[error(
        "no recorded conversation begins like this one; the closest differs at message {}: recorded {recorded}, \
         asked {asked}",
        .position + 1
    )]
    Differs {
        position: usize,
        recorded: String,
        asked: String,
    },
    #[error("the recorded conversation ends after message {length}, without an answer")]
    Ends { length: usize },
}

/// All recordings of a file or folder.
#[derive(Debug, Default)]
pub(super) struct Recordings {
    conversations: Vec<RecordedConversation>,
}

impl Recordings {
    pub(super) fn read(path: &Path) -> Result<Self, RecordingError> {
        let mut conversations = Vec::new();
        for file in files(path)? {
            conversations.extend(read_file(&file)?.conversations);
        }
        Ok(Self { conversations })
    }

    /// Finds what was answered to the same conversation.
    pub(super) fn answer(
        &self,
        request: &ModelRequest,
        cwd: &str,
    ) -> Result<AssistantTurn, NoAnswer> {
        let asked = normal::of_request(&request.messages, cwd);
        let mut closest = NoAnswer::Empty;
        let mut agreed = None;
        for conversation in &self.conversations {
            let recorded = normal::normal(conversation.messages.clone(), cwd);
            let same = recorded
                .iter()
                .zip(&asked)
                .take_while(|(recorded, asked)| recorded == asked)
                .count();
            if same == asked.len()
                && let Some(answer) = recorded.get(same)
                && answer.role == Role::Assistant
            {
                return Ok(turn(answer, request, cwd));
            }
            if agreed.is_none_or(|agreed| same > agreed) {
                agreed = Some(same);
                closest = if same == asked.len() {
                    NoAnswer::Ends { length: same }
                } else {
                    NoAnswer::Differs {
                        position: same,
                        recorded: quote(recorded.get(same)),
                        asked: quote(asked.get(same)),
                    }
                };
            }
        }
        Err(closest)
    }
}

fn files(path: &Path) -> Result<Vec<PathBuf>, RecordingError> {
    let unreadable = |source| RecordingError::Unreadable {
        path: path.to_path_buf(),
        source,
    };
    if !std::fs::metadata(path).map_err(unreadable)?.is_dir() {
        return Ok(vec![path.to_path_buf()]);
    }
    let mut files = Vec::new();
    for entry in std::fs::read_dir(path).map_err(unreadable)? {
        let file = entry.map_err(unreadable)?.path();
        let is_recording = file
            .extension()
            .is_some_and(|extension| extension == "yaml" || extension == "yml");
        if is_recording {
            files.push(file);
        }
        if files.len() > MOST_FILES {
            return Err(RecordingError::TooMany {
                path: path.to_path_buf(),
            });
        }
    }
    files.sort();
    Ok(files)
}

pub(super) fn read_file(path: &Path) -> Result<RecordingFile, RecordingError> {
    let unreadable = |source| RecordingError::Unreadable {
        path: path.to_path_buf(),
        source,
    };
    if std::fs::metadata(path).map_err(unreadable)?.len() > LARGEST_FILE {
        return Err(RecordingError::TooLarge {
            path: path.to_path_buf(),
        });
    }
    let text = std::fs::read_to_string(path).map_err(unreadable)?;
    if text.trim().is_empty() {
        return Ok(RecordingFile::default());
    }
    serde_norway::from_str(&text).map_err(|failure| RecordingError::Invalid {
        path: path.to_path_buf(),
        detail: plain(&failure),
    })
}

fn turn(answer: &RecordedMessage, request: &ModelRequest, cwd: &str) -> AssistantTurn {
    let placed = |text: &str| text.replace(WORKDIR, cwd);
    let mut calls: Vec<ToolCall> = answer
        .tool_calls
        .iter()
        .map(|call| ToolCall {
            id: call.id.clone().into(),
            name: call.function.name.clone(),
            arguments: parse_arguments(placed(&call.function.arguments)),
        })
        .collect();
    make_unique(&mut calls, request);
    AssistantTurn {
        text: placed(answer.content.as_deref().unwrap_or_default()),
        reasoning: None,
        calls,
    }
}

fn quote(message: Option<&RecordedMessage>) -> String {
    let Some(message) = message else {
        return "nothing more".to_owned();
    };
    let mut said = message.content.clone().unwrap_or_default();
    for call in &message.tool_calls {
        let call = format!(" [{} {}]", call.function.name, call.function.arguments);
        said.push_str(&call);
    }
    let short: String = said.chars().take(LONGEST_QUOTE).collect();
    let role = format!("{:?}", message.role).to_lowercase();
    format!("{role} {short:?}")
}
