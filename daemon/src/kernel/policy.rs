//! Permission rules: the one place that says allow, deny or ask.
//!
//! Deny wins over everything, then the allowances, then a question. Order of rules never matters.

use std::path::{Component, Path, PathBuf};

use loopd_proto::permission::{PermissionRequest, PermissionRule, Permissions};

/// What the rules say about a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    Allow,
    /// Denied by this rule.
    Deny(PermissionRule),
    Ask,
}

/// Judges a request by the session's rules.
pub fn judge(permissions: &Permissions, request: &PermissionRequest) -> Verdict {
    if let Some(rule) = permissions.denied.iter().find(|rule| denies(rule, request)) {
        return Verdict::Deny(rule.clone());
    }
    if permissions.approve_all || is_allowed(permissions, request) {
        Verdict::Allow
    } else {
        Verdict::Ask
    }
}

/// A deny rule hits when any part of the request matches it.
fn denies(rule: &PermissionRule, request: &PermissionRequest) -> bool {
    if canonical(&rule.kind) != kind(request) {
        return false;
    }
    let Some(argument) = rule.argument.as_deref() else {
        return true;
    };
    match request {
        PermissionRequest::Shell {
            commands,
            full_command_text,
            ..
        } => {
            commands
                .iter()
                .any(|command| names(argument, &command.identifier))
                || names(argument, full_command_text)
        }
        PermissionRequest::Write { file_name, .. } => within(argument, file_name),
        PermissionRequest::Read { path, .. } => within(argument, path),
        PermissionRequest::Url { url, .. } => covers_url(argument, url),
        PermissionRequest::Mcp {
            server_name,
            tool_name,
            ..
        } => argument == server_name || argument == format!("{server_name}/{tool_name}"),
        PermissionRequest::CustomTool { tool_name, .. } => argument == tool_name,
    }
}

/// An allowance has to cover every part of the request.
fn is_allowed(permissions: &Permissions, request: &PermissionRequest) -> bool {
    let rules = || {
        permissions
            .approved
            .iter()
            .filter(|rule| canonical(&rule.kind) == kind(request))
    };
    if rules().any(|rule| rule.argument.is_none()) {
        return true;
    }
    let matches =
        |test: &dyn Fn(&str) -> bool| rules().filter_map(|r| r.argument.as_deref()).any(test);
    match request {
        PermissionRequest::Shell {
            commands,
            has_write_file_redirection,
            can_offer_session_approval,
            ..
        } => {
            // Only commands from the closed plain subset may match an allow rule.
            *can_offer_session_approval
                && !has_write_file_redirection
                && !commands.is_empty()
                && commands
                    .iter()
                    .all(|command| matches(&|argument| names(argument, &command.identifier)))
        }
        PermissionRequest::Write { file_name, .. } => {
            matches(&|argument| within(argument, file_name))
        }
        PermissionRequest::Read { path, .. } => {
            permissions.approve_all_reads || matches(&|argument| within(argument, path))
        }
        PermissionRequest::Url { url, .. } => {
            permissions.unrestricted_urls
                || permissions
                    .allowed_urls
                    .iter()
                    .any(|allowed| covers_url(allowed, url))
                || matches(&|argument| covers_url(argument, url))
        }
        PermissionRequest::Mcp {
            server_name,
            tool_name,
            ..
        } => matches(&|argument| {
            argument == server_name || argument == format!("{server_name}/{tool_name}")
        }),
        PermissionRequest::CustomTool { tool_name, .. } => {
            matches(&|argument| argument == tool_name)
        }
    }
}

/// The kind of rule that speaks about this request.
pub fn kind(request: &PermissionRequest) -> &'static str {
    match request {
        PermissionRequest::Shell { .. } => "shell",
        PermissionRequest::Write { .. } => "write",
        PermissionRequest::Read { .. } => "read",
        PermissionRequest::Url { .. } => "url",
        PermissionRequest::Mcp { .. } => "mcp",
        PermissionRequest::CustomTool { .. } => "custom-tool",
    }
}

fn canonical(kind: &str) -> &str {
    if kind == "commands" { "shell" } else { kind }
}

/// A command rule names a command or, with `:*`, every command that begins with those words.
fn names(argument: &str, identifier: &str) -> bool {
    match argument.strip_suffix(":*") {
        Some(prefix) => {
            identifier == prefix
                || identifier
                    .strip_prefix(prefix)
                    .is_some_and(|rest| rest.starts_with(' '))
        }
        None => argument == identifier,
    }
}

/// Whether a path is this one or lies below it, part by part; `..` climbs, as it does on disk.
pub fn within(directory: &str, path: &str) -> bool {
    plain(path).starts_with(plain(directory))
}

/// The path without `.` and `..`, links left alone.
fn plain(path: &str) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in Path::new(path).components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => plain.push(part),
        }
    }
    plain
}

/// Whether a URL has the same scheme and host and a path below the allowed one.
fn covers_url(allowed: &str, url: &str) -> bool {
    let Some(rest) = url.strip_prefix(allowed) else {
        return false;
    };
    allowed.ends_with('/') || rest.is_empty() || rest.starts_with(['/', '?', '#'])
}

#[cfg(test)]
#[path = "policy/tests.rs"]
mod tests;
