//! Permission rules: the only place that decides allow, deny or ask.
//!
//! Deny rules win over everything, then come the allow rules; what is left is asked about. The
//! order of rules never matters. `policy/shell.rs` matches rules with commands and `policy/url.rs`
//! with URLs. `policy/managed.rs` holds the settings above a session's own rules.
//! `policy/protected.rs` names the files that are asked about whatever the rules allow, and
//! `policy/planning.rs` is plan mode.
//! `policy/verdict.rs` combines the verdicts of several judges, and `policy/grant.rs` is the
//! resulting right to run.

pub mod asked;
pub mod copies;
mod denied_files;
mod denied_kinds;
mod denied_urls;
pub mod grant;
pub mod managed;
pub mod odd_rule;
pub mod path_pattern;
pub mod planning;
mod process_path;
pub mod protected;
pub mod restrict;
pub mod settings;
pub mod shell;
pub mod skill;
pub mod tool_list;
pub mod typed;
pub mod unread;
mod url;
mod verdict;

use std::path::{Component, Path, PathBuf};

use loopd_proto::permission::{ConfirmedRequest, PermissionRequest, PermissionRule, Permissions};

use self::path_pattern::covers;
use self::shell::Denial;
pub use self::verdict::Verdict;

/// Where a session works.
#[derive(Debug, Clone, Copy)]
pub struct Whereabouts<'a> {
    /// The working directory of the session.
    pub cwd: &'a str,
    /// The home of the daemon, which is protected.
    pub home: Option<&'a str>,
}

impl<'a> From<&'a str> for Whereabouts<'a> {
    fn from(cwd: &'a str) -> Self {
        Self { cwd, home: None }
    }
}

/// Judges a request.
pub fn judge<'a>(
    permissions: &Permissions,
    at: impl Into<Whereabouts<'a>>,
    request: &PermissionRequest,
) -> Verdict {
    let at = at.into();
    let verdict = match &permissions.managed {
        Some(managed) => managed::judge(managed, permissions, at, request),
        None => judge_by_rules(permissions, at, request),
    };
    asked::weigh(verdict, permissions, at, request)
}

/// Judges a request by the session's own rules.
fn judge_by_rules(
    permissions: &Permissions,
    at: Whereabouts<'_>,
    request: &PermissionRequest,
) -> Verdict {
    let mut rules = typed::rules_in_force(permissions);
    let Some(rule) = rules.next().filter(|_| typed::is_typed(request)) else {
        return judge_as_it_is(permissions, at, request);
    };
    // What is typed counts as the line that it becomes.
    let Some(lines) = typed::as_lines(request) else {
        return Verdict::denied_by(rule);
    };
    let verdicts = lines
        .iter()
        .map(|line| judge_as_it_is(permissions, at, line));
    verdicts.fold(judge_as_it_is(permissions, at, request), Verdict::meet)
}

fn judge_as_it_is(
    permissions: &Permissions,
    at: Whereabouts<'_>,
    request: &PermissionRequest,
) -> Verdict {
    let cwd = at.cwd;
    if let Some(rule) = permissions.denied.iter().find(|rule| denies(rule, request)) {
        return Verdict::denied_by(rule);
    }
    if let PermissionRequest::Shell {
        full_command_text, ..
    } = request
    {
        let read = denied_files::read(permissions, cwd, request);
        let mut asks = read == Denial::Possible;
        if let Denial::By(rule) = read {
            return Verdict::denied_by(rule);
        }
        let written = denied_files::written(permissions, cwd, request);
        asks |= written == Denial::Possible;
        if let Denial::By(rule) = written {
            return Verdict::denied_by(rule);
        }
        for denial in [denied_kinds::denial, denied_urls::denial] {
            match denial(permissions, request) {
                Denial::By(rule) => return Verdict::denied_by(rule),
                Denial::Possible => asks = true,
                Denial::No => {}
            }
        }
        let about_shell: Vec<&PermissionRule> = permissions
            .denied
            .iter()
            .filter(|rule| canonical(&rule.kind) == "shell")
            .collect();
        match shell::denial(&about_shell, full_command_text) {
            Denial::By(rule) => return Verdict::denied_by(rule),
            Denial::Possible => asks = true,
            Denial::No => {}
        }
        if asks
            || !about_shell.is_empty()
                && typed::is_typed(request)
                && typed::is_part(full_command_text)
        {
            return Verdict::Ask;
        }
    }
    if permissions.approve_all {
        return Verdict::Allow;
    }
    if is_allowed(permissions, cwd, request) && !protected::is_written(permissions, at, request) {
        Verdict::Allow
    } else {
        Verdict::Ask
    }
}

/// Judges a call by the rules that name its tool, whatever permission it needs.
pub fn judge_tool(permissions: &Permissions, tool: &str) -> Verdict {
    let managed = permissions.managed.as_deref();
    let names =
        |rule: &&PermissionRule| rule.kind == "tool" && rule.argument.as_deref() == Some(tool);
    let deny = managed.map_or(&[][..], |managed| &managed.deny);
    if let Some(rule) = permissions.denied.iter().chain(deny).find(names) {
        return Verdict::denied_by(rule);
    }
    let is_confirmed = permissions
        .confirmed
        .contains(&ConfirmedRequest::of_tool(tool));
    if permissions.ask.iter().any(|rule| names(&rule)) && !is_confirmed {
        return Verdict::Ask;
    }
    Verdict::Allow
}

/// Returns an error for a deny rule that cannot be understood.
pub fn check_denied(rule: &PermissionRule) -> Result<(), shell::rule::RuleError> {
    match rule.argument.as_deref() {
        Some(argument) if canonical(&rule.kind) == "shell" => {
            shell::rule::Rule::parse(argument).map(|_| ())
        }
        _ => Ok(()),
    }
}

/// Whether a deny rule matches any part of the request, under any of its names.
fn denies(rule: &PermissionRule, request: &PermissionRequest) -> bool {
    let rule_kind = canonical(&rule.kind);
    // Who may not read a file may not change it: the change would show it, or move it elsewhere.
    let changes_unreadable = rule_kind == "read"
        && rule.argument.is_some()
        && matches!(request, PermissionRequest::Write { .. });
    if rule_kind != kind(request) && !changes_unreadable {
        return false;
    }
    let Some(argument) = rule.argument.as_deref() else {
        return true;
    };
    match request {
        // `shell::denial` compares all shell rules at once with what the text runs.
        PermissionRequest::Shell { .. } => false,
        PermissionRequest::Write {
            file_name,
            other_files,
            also_named,
            ..
        } => std::iter::once(file_name)
            .chain(other_files)
            .chain(also_named)
            .any(|path| covers(argument, path)),
        PermissionRequest::Read {
            path, also_named, ..
        } => std::iter::once(path)
            .chain(also_named)
            .any(|path| covers(argument, path)),
        PermissionRequest::Url { url, .. } => url::hits(argument, url),
        PermissionRequest::Mcp {
            server_name,
            tool_name,
            ..
        } => argument == server_name || argument == format!("{server_name}/{tool_name}"),
        PermissionRequest::CustomTool { tool_name, .. }
        | PermissionRequest::Hook { tool_name, .. } => argument == tool_name,
    }
}

/// Whether allow rules cover every part of the request.
fn is_allowed(permissions: &Permissions, cwd: &str, request: &PermissionRequest) -> bool {
    let rules = || {
        permissions
            .approved
            .iter()
            .filter(|rule| canonical(&rule.kind) == kind(request))
    };
    let blanket = rules().any(|rule| rule.argument.is_none());
    let matches =
        |test: &dyn Fn(&str) -> bool| rules().filter_map(|r| r.argument.as_deref()).any(test);
    let inside = |path: &str| is_inside(permissions, cwd, path);
    match request {
        PermissionRequest::Shell {
            commands,
            full_command_text,
            has_write_file_redirection,
            can_offer_session_approval,
            changed_shell,
            resolved_paths,
            resolved_working_directory,
            reached,
            ..
        } => {
            let arguments: Vec<&str> = rules().filter_map(|r| r.argument.as_deref()).collect();
            // In a shell that was changed, a name may mean something else.
            blanket
                || (*changed_shell != Some(true)
                    && ((!has_write_file_redirection
                        && shell::is_covered(
                            &arguments,
                            full_command_text,
                            commands,
                            *can_offer_session_approval,
                        ))
                        || resolved_working_directory.as_deref().is_some_and(|real| {
                            let paths = resolved_paths.values().map(String::as_str);
                            let line = LookedUp {
                                text: full_command_text,
                                is_looked_up: reached.is_some(),
                            };
                            may_look(permissions, cwd, real, line, paths)
                        })))
        }
        // A path outside the session's directories needs a rule that names it.
        PermissionRequest::Write {
            file_name,
            other_files,
            ..
        } => std::iter::once(file_name)
            .chain(other_files)
            .all(|path| (blanket && inside(path)) || matches(&|argument| covers(argument, path))),
        PermissionRequest::Read { path, .. } => {
            ((blanket || permissions.approve_all_reads) && inside(path))
                || matches(&|argument| covers(argument, path))
        }
        PermissionRequest::Url { url, .. } => {
            blanket
                || permissions.unrestricted_urls
                || permissions
                    .allowed_urls
                    .iter()
                    .any(|allowed| url::covers(allowed, url))
                || matches(&|argument| url::covers(argument, url))
        }
        PermissionRequest::Mcp {
            server_name,
            tool_name,
            ..
        } => {
            blanket
                || matches(&|argument| {
                    argument == server_name || argument == format!("{server_name}/{tool_name}")
                })
        }
        PermissionRequest::CustomTool { tool_name, .. } => {
            blanket || matches(&|argument| argument == tool_name)
        }
        // A hook asks because it wants a person to look at this call.
        PermissionRequest::Hook { .. } => false,
    }
}

/// A line, and whether it was compared with the places of rules on disk.
#[derive(Clone, Copy)]
struct LookedUp<'t> {
    text: &'t str,
    is_looked_up: bool,
}

/// Whether the rule `look` covers a line: it only looks, and all that it looks at lies in the
/// directories of the session. `real` is the working directory without links.
fn may_look<'p>(
    permissions: &Permissions,
    cwd: &str,
    real: &str,
    LookedUp { text, is_looked_up }: LookedUp<'_>,
    mut resolved: impl Iterator<Item = &'p str>,
) -> bool {
    let is_ruled = permissions.approved.iter().any(|rule| rule.kind == "look");
    if !is_ruled {
        return false;
    }
    // A search through a folder would also read what may not be read, if nobody has looked.
    let is_restricted = permissions.denied.iter().any(|rule| rule.kind == "read");
    let places = if is_restricted && !is_looked_up {
        shell::looks::named::read_alone(text)
    } else {
        shell::looks::places(text)
    };
    let inside = |path: &str| is_inside(permissions, cwd, path);
    places.is_some_and(|places| {
        let here = |path: &str| Path::new(cwd).join(path).to_string_lossy().into_owned();
        places.iter().all(|place| inside(&here(&place.path)))
            && resolved.all(|path| inside(path) || within(real, path))
    })
}

/// The paths that deny rules and managed ask rules name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GuardedPaths {
    /// Reading these is denied.
    pub denied_reads: Vec<String>,
    /// Reading these is asked about each time.
    pub asked_reads: Vec<String>,
    /// Writing these is denied or asked about.
    pub writes: Vec<String>,
}

/// Returns the paths that deny rules and managed ask rules name.
pub fn guarded(permissions: &Permissions) -> GuardedPaths {
    let managed = permissions.managed.as_deref();
    let deny = managed.map_or(&[][..], |managed| &managed.deny);
    let ask = managed.map_or(&[][..], |managed| &managed.ask);
    let ask: Vec<&PermissionRule> = ask.iter().chain(&permissions.ask).collect();
    let denied = || permissions.denied.iter().chain(deny);
    let of_kind = |rule: &PermissionRule, kind: &str| {
        rule.argument.clone().filter(|argument| {
            canonical(&rule.kind) == kind && path_pattern::pattern(argument).is_none()
        })
    };
    GuardedPaths {
        denied_reads: denied().filter_map(|rule| of_kind(rule, "read")).collect(),
        asked_reads: ask
            .iter()
            .filter_map(|rule| of_kind(rule, "read"))
            .collect(),
        writes: denied()
            .chain(ask.iter().copied())
            .filter_map(|rule| of_kind(rule, "write"))
            .collect(),
    }
}

/// Whether a path lies in one of the directories that the session may use.
fn is_inside(permissions: &Permissions, cwd: &str, path: &str) -> bool {
    let primary = permissions.primary_directory.as_deref();
    permissions.unrestricted_paths
        || within(primary.unwrap_or(cwd), path)
        || permissions
            .directories
            .iter()
            .any(|directory| within(directory, path))
}

/// Returns the kind of rule that applies to this request.
pub fn kind(request: &PermissionRequest) -> &'static str {
    match request {
        PermissionRequest::Shell { .. } => "shell",
        PermissionRequest::Write { .. } => "write",
        PermissionRequest::Read { .. } => "read",
        PermissionRequest::Url { .. } => "url",
        PermissionRequest::Mcp { .. } => "mcp",
        PermissionRequest::CustomTool { .. } => "custom-tool",
        PermissionRequest::Hook { .. } => "hook",
    }
}

fn canonical(kind: &str) -> &str {
    if kind == "commands" { "shell" } else { kind }
}

/// The kinds of rules.
const KINDS: [&str; 10] = [
    "shell",
    "commands",
    "look",
    "read",
    "write",
    "url",
    "mcp",
    "custom-tool",
    "agent",
    "memory",
];

/// Returns an error for a kind that no request has. Such a rule would do nothing.
pub fn check_kind(rule: &PermissionRule) -> Result<(), String> {
    if KINDS.contains(&rule.kind.as_str()) {
        return Ok(());
    }
    let kind = &rule.kind;
    Err(format!(
        "`{kind}` is no kind of rule; use one of {}",
        KINDS.join(", ")
    ))
}

/// Whether a path is this directory or lies below it, compared part by part. `..` goes up, as on
/// disk.
pub fn within(directory: &str, path: &str) -> bool {
    plain(path).starts_with(plain(directory))
}

/// Returns the path without `.` and `..`. Links are not resolved.
pub fn plain(path: &str) -> PathBuf {
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

#[cfg(test)]
mod tests;
