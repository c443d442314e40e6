//! The kinds of hooks, and the names that the formats give them.

use std::fmt;

/// What happens when a hook runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum HookKind {
    SessionStart,
    SessionEnd,
    UserPromptSubmitted,
    UserPromptTransformed,
    PreToolUse,
    PermissionRequest,
    PostToolUse,
    PostToolUseFailure,
    PreMcpToolCall,
    PreCompact,
    SubagentStart,
    SubagentStop,
    AgentStop,
    ErrorOccurred,
    Notification,
}

/// The form of a payload. The way a file spells the name of a kind selects it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PayloadForm {
    /// Members in camelCase, times in milliseconds, our names of tools.
    Native,
    /// Members in snake_case, times in ISO 8601, Claude's names of tools.
    Claude,
}

/// Kind, native name, Claude's name.
const NAMES: [(HookKind, &str, &str); 15] = [
    (HookKind::SessionStart, "sessionStart", "SessionStart"),
    (HookKind::SessionEnd, "sessionEnd", "SessionEnd"),
    (
        HookKind::UserPromptSubmitted,
        "userPromptSubmitted",
        "UserPromptSubmit",
    ),
    (
        HookKind::UserPromptTransformed,
        "userPromptTransformed",
        "UserPromptTransformed",
    ),
    (HookKind::PreToolUse, "preToolUse", "PreToolUse"),
    (
        HookKind::PermissionRequest,
        "permissionRequest",
        "PermissionRequest",
    ),
    (HookKind::PostToolUse, "postToolUse", "PostToolUse"),
    (
        HookKind::PostToolUseFailure,
        "postToolUseFailure",
        "PostToolUseFailure",
    ),
    (HookKind::PreMcpToolCall, "preMcpToolCall", "PreMcpToolCall"),
    (HookKind::PreCompact, "preCompact", "PreCompact"),
    (HookKind::SubagentStart, "subagentStart", "SubagentStart"),
    (HookKind::SubagentStop, "subagentStop", "SubagentStop"),
    (HookKind::AgentStop, "agentStop", "Stop"),
    (HookKind::ErrorOccurred, "errorOccurred", "ErrorOccurred"),
    (HookKind::Notification, "notification", "Notification"),
];

/// Other spellings that files have: name, kind, form.
const ALIASES: [(&str, HookKind, PayloadForm); 2] = [
    ("AgentStop", HookKind::AgentStop, PayloadForm::Claude),
    (
        "UserPromptSubmitted",
        HookKind::UserPromptSubmitted,
        PayloadForm::Claude,
    ),
];

/// Events of Claude and of Copilot that nothing in loopd corresponds to.
const WITHOUT_COUNTERPART: [&str; 23] = [
    "ConfigChange",
    "CwdChanged",
    "DirectoryAdded",
    "Elicitation",
    "ElicitationResult",
    "FileChanged",
    "InstructionsLoaded",
    "MessageDisplay",
    "PermissionDenied",
    "PostCompact",
    "PostModelSwitch",
    "PostToolBatch",
    "PreModelSwitch",
    "Setup",
    "StopFailure",
    "TaskCompleted",
    "TaskCreated",
    "TeammateIdle",
    "UserPromptExpansion",
    "WorktreeCreate",
    "WorktreeRemove",
    "postResult",
    "prePRDescription",
];

/// A name that is no kind of hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum UnknownKind {
    /// Others have this event and loopd does not.
    WithoutCounterpart,
    /// The name is unknown; this one is the nearest.
    Nearest(&'static str),
}

impl UnknownKind {
    /// Returns the kind that was meant, if the name is a mistake.
    pub(super) fn meant(&self) -> Option<(HookKind, PayloadForm)> {
        match self {
            Self::WithoutCounterpart => None,
            Self::Nearest(nearest) => HookKind::named(nearest).ok(),
        }
    }

    /// Says what is wrong with a name.
    pub(super) fn describe(&self, name: &str) -> String {
        match self {
            Self::WithoutCounterpart => {
                format!("nothing in loopd corresponds to the event `{name}`: its hooks never run")
            }
            Self::Nearest(nearest) => {
                format!("`{name}` is no kind of hook; did you mean `{nearest}`?")
            }
        }
    }
}

impl HookKind {
    pub const ALL: [HookKind; 15] = [
        Self::SessionStart,
        Self::SessionEnd,
        Self::UserPromptSubmitted,
        Self::UserPromptTransformed,
        Self::PreToolUse,
        Self::PermissionRequest,
        Self::PostToolUse,
        Self::PostToolUseFailure,
        Self::PreMcpToolCall,
        Self::PreCompact,
        Self::SubagentStart,
        Self::SubagentStop,
        Self::AgentStop,
        Self::ErrorOccurred,
        Self::Notification,
    ];

    /// Returns the name that `hooks.invoke` and native files use.
    pub fn native_name(self) -> &'static str {
        NAMES
            .iter()
            .find(|(kind, ..)| *kind == self)
            .map_or("", |(_, native, _)| native)
    }

    /// Returns the name in files and payloads of Claude's form.
    pub fn claude_name(self) -> &'static str {
        NAMES
            .iter()
            .find(|(kind, ..)| *kind == self)
            .map_or("", |(.., claude)| claude)
    }

    /// Returns the name in files of a form.
    pub fn name_in(self, form: PayloadForm) -> &'static str {
        match form {
            PayloadForm::Native => self.native_name(),
            PayloadForm::Claude => self.claude_name(),
        }
    }

    /// Returns whether hooks of this kind decide about a tool call. If one fails, the call is denied.
    pub fn is_guard(self) -> bool {
        matches!(
            self,
            Self::PreToolUse | Self::PermissionRequest | Self::PreMcpToolCall
        )
    }

    /// Returns what a matcher of this kind is compared with; `None` if the kind has no matcher.
    pub fn subject(self) -> Option<MatchSubject> {
        match self {
            Self::PreToolUse
            | Self::PermissionRequest
            | Self::PostToolUse
            | Self::PostToolUseFailure
            | Self::PreMcpToolCall => Some(MatchSubject::Tool),
            Self::SubagentStart | Self::SubagentStop => Some(MatchSubject::Agent),
            Self::Notification => Some(MatchSubject::NotificationType),
            Self::PreCompact => Some(MatchSubject::Trigger),
            Self::SessionStart => Some(MatchSubject::Source),
            Self::SessionEnd => Some(MatchSubject::Reason),
            Self::UserPromptSubmitted
            | Self::UserPromptTransformed
            | Self::AgentStop
            | Self::ErrorOccurred => None,
        }
    }

    /// Finds the kind and the payload form that a name stands for; the error names the nearest one.
    pub fn read(name: &str) -> Result<(Self, PayloadForm), String> {
        Self::named(name).map_err(|unknown| unknown.describe(name))
    }

    /// Finds the kind and the payload form that a name in a file stands for.
    pub(super) fn named(name: &str) -> Result<(Self, PayloadForm), UnknownKind> {
        for (kind, native, claude) in NAMES {
            if name == native {
                return Ok((kind, PayloadForm::Native));
            }
            if name == claude {
                return Ok((kind, PayloadForm::Claude));
            }
        }
        if let Some((_, kind, form)) = ALIASES.iter().find(|(alias, ..)| *alias == name) {
            return Ok((*kind, *form));
        }
        if WITHOUT_COUNTERPART.contains(&name) {
            return Err(UnknownKind::WithoutCounterpart);
        }
        let names = NAMES
            .iter()
            .flat_map(|(_, native, claude)| [*native, *claude]);
        let nearest =
            names.max_by(|left, right| similarity(name, left).total_cmp(&similarity(name, right)));
        Err(UnknownKind::Nearest(nearest.unwrap_or_default()))
    }
}

impl fmt::Display for HookKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.native_name())
    }
}

/// What a matcher is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MatchSubject {
    /// The name of a tool.
    Tool,
    /// The name of a sub-agent.
    Agent,
    /// The type of a notification.
    NotificationType,
    /// Why a compaction begins.
    Trigger,
    /// How a session begins.
    Source,
    /// Why a session ends.
    Reason,
}

pub(super) fn similarity(wrong: &str, known: &str) -> f32 {
    let ratio = |left: &str, right: &str| similar::TextDiff::from_chars(left, right).ratio();
    // Upper and lower case select the form, so that they count last.
    ratio(&wrong.to_lowercase(), &known.to_lowercase()) + ratio(wrong, known) / 100.0
}
