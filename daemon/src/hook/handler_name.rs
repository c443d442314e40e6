//! Which hook said something.

use std::path::PathBuf;
use std::sync::Arc;

use super::handlers::FileHook;
use crate::client::ClientId;
use crate::discovery::hooks::{HookKind, OnFailure};
use crate::trust::{self, shell_word};

/// One client's hooks, or one hook of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HandlerId {
    Client(ClientId),
    /// The place of the hook in memory.
    File(usize),
}

impl HandlerId {
    pub(super) fn of(hook: &Arc<FileHook>) -> Self {
        Self::File(Arc::as_ptr(hook).addr())
    }
}

/// Which hook said something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum HandlerName {
    Client,
    File {
        name: String,
        on_failure: Option<OnFailure>,
    },
    /// A hook of the user's own files that nobody has accepted yet.
    OwnNew {
        name: String,
        on_failure: Option<OnFailure>,
    },
    /// A hook of a file that is not what its folder was trusted with.
    Changed {
        name: String,
        folder: PathBuf,
    },
    /// A hook of a folder that an app named, which is not what it was then.
    AppChanged {
        name: String,
    },
    /// A hook of the user's own files that is not what it was.
    OwnChanged {
        name: String,
    },
}

impl HandlerName {
    /// Names the hook for people.
    pub(super) fn shown(&self) -> &str {
        match self {
            Self::Client => "a client's hook",
            Self::File { name, .. }
            | Self::OwnNew { name, .. }
            | Self::Changed { name, .. }
            | Self::AppChanged { name }
            | Self::OwnChanged { name } => name,
        }
    }

    /// Names the hook and its kind.
    pub(super) fn with_kind(&self, kind: HookKind) -> String {
        match self {
            Self::Client => format!("{kind} hook of a client"),
            Self::File { name, .. }
            | Self::OwnNew { name, .. }
            | Self::Changed { name, .. }
            | Self::AppChanged { name }
            | Self::OwnChanged { name } => format!("{kind} hook {name}"),
        }
    }

    /// Returns how people can let the session go on when the hook fails.
    pub(super) fn way_out(&self) -> String {
        let way_out = match self {
            Self::Client => {
                "Mend the app that answers it, or raise `client_timeout` in the section [hooks] of \
                 config.toml if it is too slow"
            }
            Self::File { .. } | Self::OwnNew { .. } => {
                "Mend the hook, or set `\"onFailure\": \"continue\"` in it to let calls go on when it \
                 fails"
            }
            Self::Changed { folder, .. } => {
                return format!(
                    "To look and to trust the folder as it is now: loop trust {}",
                    shell_word(folder)
                );
            }
            Self::AppChanged { .. } => {
                return format!("To have it count as it is now, {}", trust::NAME_AGAIN);
            }
            Self::OwnChanged { .. } => {
                return format!("If this is how you want it: {}", trust::ACCEPT);
            }
        };
        way_out.to_owned()
    }

    pub(super) fn goes_on(&self) -> bool {
        match self {
            Self::Client
            | Self::Changed { .. }
            | Self::AppChanged { .. }
            | Self::OwnChanged { .. } => false,
            Self::File { on_failure, .. } | Self::OwnNew { on_failure, .. } => {
                *on_failure == Some(OnFailure::Continue)
            }
        }
    }
}
