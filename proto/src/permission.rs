//! Permission requests of tools, the answers of clients, and the rules that result from them.

mod asked;
mod prompt;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_with::skip_serializing_none;

pub use self::asked::{AskReason, AskedBecause, ConfirmedRequest, DecisionSource};
pub use self::prompt::PermissionPrompt;

use crate::id::ToolCallId;

/// The exact thing a tool wants to do, shown to the clients and matched against the rules.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(
    tag = "kind",
    rename_all = "kebab-case",
    rename_all_fields = "camelCase"
)]
pub enum PermissionRequest {
    Shell {
        /// Whether the managed settings want a person to decide.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        managed_approval_required: Option<bool>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tool_call_id: Option<ToolCallId>,
        full_command_text: String,
        intention: String,
        commands: Vec<ShellCommand>,
        possible_paths: Vec<String>,
        possible_urls: Vec<PossibleUrl>,
        has_write_file_redirection: bool,
        can_offer_session_approval: bool,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        warning: Option<String>,
        /// The canonical paths of words that name existing files, by the words.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        resolved_paths: BTreeMap<String, String>,
        /// The directory that the command was asked for. It runs there or not at all.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        resolved_working_directory: Option<String>,
        /// Whether an earlier command may have changed what names mean in the shell of this one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        changed_shell: Option<bool>,
        /// The directories that earlier commands may have led the shell of this one to.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        shell_directories: Vec<String>,
        /// Whether earlier commands may have led the shell to a directory that is not known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        shell_directory_unknown: Option<bool>,
        /// Folders in which git keeps a repository and that a word names or leads into, unless
        /// their name is `.git`.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        repository_folders: Vec<String>,
        /// Whether the command writes to protected files, which no rule covers.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        writes_protected: Option<bool>,
        /// Places of rules about reading that exist and that the command may reach without naming
        /// them; absent if nobody looked.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reached: Option<Vec<String>>,
        /// What was typed into the program before and waits for the end of its line. There are
        /// several if it is not known whether an interrupt dropped a part.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        typed_before: Vec<String>,
    },
    Write {
        /// Whether the managed settings want a person to decide.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        managed_approval_required: Option<bool>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tool_call_id: Option<ToolCallId>,
        intention: String,
        /// The file, or the first of several.
        file_name: String,
        diff: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        new_file_contents: Option<String>,
        can_offer_session_approval: bool,
        /// The further files of one change; it may be made only if all of them may be written.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        other_files: Vec<String>,
        /// Other names of the same files, such as the link that was named; a deny rule may use any.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        also_named: Vec<String>,
        /// Folders in which git keeps a repository and in which one of the files lies, unless their
        /// name is `.git`.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        repository_folders: Vec<String>,
    },
    Read {
        /// Whether the managed settings want a person to decide.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        managed_approval_required: Option<bool>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tool_call_id: Option<ToolCallId>,
        intention: String,
        path: String,
        /// Other names of the same place, such as the link that was named; a deny rule may use any.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        also_named: Vec<String>,
    },
    Url {
        /// Whether the managed settings want a person to decide.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        managed_approval_required: Option<bool>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tool_call_id: Option<ToolCallId>,
        intention: String,
        url: String,
    },
    Mcp {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tool_call_id: Option<ToolCallId>,
        server_name: String,
        tool_name: String,
        tool_title: String,
        #[serde(
            default,
            skip_serializing_if = "Option::is_none",
            deserialize_with = "crate::json::present"
        )]
        args: Option<Value>,
        read_only: bool,
    },
    CustomTool {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tool_call_id: Option<ToolCallId>,
        tool_name: String,
        tool_description: String,
        #[serde(
            default,
            skip_serializing_if = "Option::is_none",
            deserialize_with = "crate::json::present"
        )]
        args: Option<Value>,
    },
    /// A hook wants a person to confirm a call that needs no permission otherwise.
    Hook {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tool_call_id: Option<ToolCallId>,
        tool_name: String,
        #[serde(
            default,
            skip_serializing_if = "Option::is_none",
            deserialize_with = "crate::json::present"
        )]
        tool_args: Option<Value>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hook_message: Option<String>,
    },
}

/// One simple command inside a shell request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ShellCommand {
    /// What a rule for this command is keyed by, such as `git status`.
    pub identifier: String,
    pub read_only: bool,
}

/// A URL that appears in a shell command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PossibleUrl {
    pub url: String,
}

impl PermissionRequest {
    /// Marks the request as one that a person must decide, in the kinds that have such a mark.
    #[must_use]
    pub fn for_a_person(mut self) -> Self {
        match &mut self {
            Self::Shell {
                managed_approval_required,
                ..
            }
            | Self::Write {
                managed_approval_required,
                ..
            }
            | Self::Read {
                managed_approval_required,
                ..
            }
            | Self::Url {
                managed_approval_required,
                ..
            } => *managed_approval_required = Some(true),
            Self::Mcp { .. } | Self::CustomTool { .. } | Self::Hook { .. } => {}
        }
        self
    }

    /// Marks the request as one that no lasting approval covers, because it writes protected files.
    #[must_use]
    pub fn for_once(mut self) -> Self {
        match &mut self {
            Self::Shell {
                can_offer_session_approval,
                writes_protected,
                ..
            } => {
                *can_offer_session_approval = false;
                *writes_protected = Some(true);
            }
            Self::Write {
                can_offer_session_approval,
                ..
            } => *can_offer_session_approval = false,
            Self::Read { .. }
            | Self::Url { .. }
            | Self::Mcp { .. }
            | Self::CustomTool { .. }
            | Self::Hook { .. } => {}
        }
        self
    }

    /// Marks a shell request as one for a shell that an earlier command may have changed.
    #[must_use]
    pub fn for_changed_shell(mut self, why: &str) -> Self {
        if let Self::Shell {
            changed_shell,
            can_offer_session_approval,
            ..
        } = &mut self
        {
            *changed_shell = Some(true);
            *can_offer_session_approval = false;
        }
        self.with_warning(why)
    }

    /// Adds what people should know before they permit a shell command. Other requests have no place
    /// for it.
    #[must_use]
    pub fn with_warning(mut self, why: &str) -> Self {
        if let Self::Shell { warning, .. } = &mut self {
            *warning = Some(match warning.take() {
                Some(other) => format!("{other} {why}"),
                None => why.to_owned(),
            });
        }
        self
    }

    /// Says which directories earlier commands may have led the shell to; `None` if that is not
    /// known.
    #[must_use]
    pub fn in_directories(mut self, directories: Option<Vec<String>>) -> Self {
        if let Self::Shell {
            shell_directories,
            shell_directory_unknown,
            ..
        } = &mut self
        {
            *shell_directory_unknown = directories.is_none().then_some(true);
            *shell_directories = directories.unwrap_or_default();
        }
        self
    }

    /// Says what was typed before on the line that this request goes on with.
    #[must_use]
    pub fn after_typing(mut self, lines: Vec<String>) -> Self {
        if let Self::Shell { typed_before, .. } = &mut self {
            *typed_before = lines;
        }
        self
    }

    /// Sets the tool call that the request belongs to.
    #[must_use]
    pub fn for_call(mut self, call: &ToolCallId) -> Self {
        match &mut self {
            Self::Shell { tool_call_id, .. }
            | Self::Write { tool_call_id, .. }
            | Self::Read { tool_call_id, .. }
            | Self::Url { tool_call_id, .. }
            | Self::Mcp { tool_call_id, .. }
            | Self::CustomTool { tool_call_id, .. }
            | Self::Hook { tool_call_id, .. } => *tool_call_id = Some(call.clone()),
        }
        self
    }
}

/// The answer of a client to a permission request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(
    tag = "kind",
    rename_all = "kebab-case",
    rename_all_fields = "camelCase"
)]
pub enum PermissionDecision {
    #[serde(alias = "approved")]
    ApproveOnce {},
    #[serde(alias = "approved-for-session")]
    ApproveForSession {
        #[serde(default)]
        approval: Option<Approval>,
        #[serde(default)]
        domain: Option<String>,
    },
    #[serde(alias = "approved-for-location")]
    ApproveForLocation {
        approval: Approval,
        location_key: String,
    },
    ApprovePermanently {
        #[serde(default)]
        domain: Option<String>,
        #[serde(default)]
        approval: Option<Approval>,
    },
    #[serde(alias = "denied-interactively-by-user")]
    Reject {
        #[serde(default)]
        feedback: Option<String>,
    },
    #[serde(alias = "denied-no-approval-rule-and-could-not-request-from-user")]
    UserNotAvailable {},
    Cancelled {
        #[serde(default)]
        reason: Option<String>,
    },
}

/// The outcome of a permission request, as sent to all clients.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(
    tag = "kind",
    rename_all = "kebab-case",
    rename_all_fields = "camelCase"
)]
pub enum PermissionOutcome {
    Approved {},
    ApprovedForSession {
        approval: Approval,
    },
    ApprovedForLocation {
        approval: Approval,
        location_key: String,
    },
    Cancelled {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    DeniedByRules {
        rules: Vec<PermissionRule>,
    },
    DeniedNoApprovalRuleAndCouldNotRequestFromUser {},
    DeniedInteractivelyByUser {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        feedback: Option<String>,
    },
    DeniedByPermissionRequestHook {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        interrupt: Option<bool>,
    },
}

/// A standing approval, narrower than a rule: exactly these commands, this tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    tag = "kind",
    rename_all = "kebab-case",
    rename_all_fields = "camelCase"
)]
pub enum Approval {
    Commands {
        command_identifiers: Vec<String>,
    },
    Read {},
    Write {},
    Mcp {
        server_name: String,
        tool_name: Option<String>,
    },
    CustomTool {
        tool_name: String,
    },
    Memory {},
}

/// One line of policy: a kind and, to narrow it, an argument.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PermissionRule {
    /// `shell`, `read`, `write`, `url`, `mcp`, `custom-tool`; `commands` means `shell`; `look` is for
    /// commands that only look.
    pub kind: String,
    pub argument: Option<String>,
}

/// What a session may do without asking, and what it may never do.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Permissions {
    pub approve_all: bool,
    pub approve_all_reads: bool,
    pub approved: Vec<PermissionRule>,
    pub denied: Vec<PermissionRule>,
    /// Requests that rules of settings want a person to approve, also where everything is approved.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ask: Vec<PermissionRule>,
    /// What such rules are about and a person approved for the session.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub confirmed: Vec<ConfirmedRequest>,
    /// Directories besides the working directory that file tools may reach without asking twice.
    pub directories: Vec<String>,
    /// Set when it differs from the session's working directory.
    pub primary_directory: Option<String>,
    pub unrestricted_paths: bool,
    pub allowed_urls: Vec<String>,
    pub unrestricted_urls: bool,
    /// The rules that an app set for its users. No other rule overrides them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub managed: Option<Box<ManagedPermissions>>,
}

impl Permissions {
    /// Returns whether everything is approved, and the managed rules allow that.
    pub fn approves_all(&self) -> bool {
        self.approve_all && !self.forbids_approve_all()
    }

    /// Returns what narrows these permissions, without anything that was approved.
    #[must_use]
    pub fn without_approvals(self) -> Self {
        Self {
            denied: self.denied,
            ask: self.ask,
            managed: self.managed.map(|managed| {
                Box::new(ManagedPermissions {
                    allow: Vec::new(),
                    ..*managed
                })
            }),
            ..Self::default()
        }
    }

    /// Returns whether the managed rules forbid approving everything.
    pub fn forbids_approve_all(&self) -> bool {
        let managed = self.managed.as_ref();
        managed.is_some_and(|managed| managed.no_approve_all)
    }
}

/// The rules that take precedence over all others of a session. They are only added to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ManagedPermissions {
    pub deny: Vec<PermissionRule>,
    /// Requests that a person must approve each time.
    pub ask: Vec<PermissionRule>,
    /// Requests that need no approval: those that every one of these lists allows.
    pub allow: Vec<Vec<PermissionRule>>,
    /// Whether nobody may approve everything at once.
    pub no_approve_all: bool,
}

impl ManagedPermissions {
    /// Combines two sets of rules.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        let add = |rules: &mut Vec<PermissionRule>, more: Vec<PermissionRule>| {
            for rule in more {
                if !rules.contains(&rule) {
                    rules.push(rule);
                }
            }
        };
        add(&mut self.deny, other.deny);
        add(&mut self.ask, other.ask);
        for list in other.allow {
            if !self.allow.contains(&list) {
                self.allow.push(list);
            }
        }
        self.no_approve_all |= other.no_approve_all;
        self
    }
}

/// Managed settings as an app sends them.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct ManagedSettings {
    #[serde(deserialize_with = "crate::session::object")]
    pub permissions: Option<ManagedSettingsPermissions>,
}

#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct ManagedSettingsPermissions {
    /// Any value means that nobody may approve everything at once.
    pub disable_bypass_permissions_mode: Option<String>,
    pub disable_assisted_permissions_mode: Option<bool>,
    pub deny: Option<Vec<String>>,
    pub ask: Option<Vec<String>>,
    pub allow: Option<Vec<String>>,
    pub limit_to: Option<Vec<String>>,
}

impl Approval {
    /// Returns the rules that are equivalent to this approval.
    pub fn rules(&self) -> Vec<PermissionRule> {
        let one = |kind: &str, argument: Option<String>| {
            vec![PermissionRule {
                kind: kind.to_owned(),
                argument,
            }]
        };
        match self {
            Self::Commands {
                command_identifiers,
            } => command_identifiers
                .iter()
                .map(|identifier| PermissionRule {
                    kind: "shell".to_owned(),
                    argument: Some(identifier.clone()),
                })
                .collect(),
            Self::Read {} => one("read", None),
            Self::Write {} => one("write", None),
            Self::Memory {} => one("memory", None),
            Self::Mcp {
                server_name,
                tool_name,
            } => one(
                "mcp",
                Some(match tool_name {
                    Some(tool) => format!("{server_name}/{tool}"),
                    None => server_name.clone(),
                }),
            ),
            Self::CustomTool { tool_name } => one("custom-tool", Some(tool_name.clone())),
        }
    }
}
