//! What agents may do, for random rules and requests: never more than who started them, however deep.

use std::fmt;

use loopd_kernel::policy::restrict::{EffectivePermissions, Workspace, restrict_for_child};
use loopd_kernel::policy::{Verdict, judge, within};
use loopd_proto::event::agent::Stance;
use loopd_proto::permission::{
    ManagedPermissions, PermissionRequest, PermissionRule, Permissions, ShellCommand,
};
use proptest::prelude::*;
use proptest::sample::select;

/// Places that contain each other, look alike, and climb out of themselves.
const PLACES: [&str; 9] = [
    "/project",
    "/project/sub",
    "/project/sub/file",
    "/projectshop",
    "/copy",
    "/copy/sub/file",
    "/copy/../project/file",
    "/other",
    "/",
];
const COMMANDS: [&str; 5] = ["git", "git status", "git push", "echo", "rm"];
const ADDRESSES: [&str; 4] = [
    "https://example.com",
    "https://example.com/a/b",
    "https://sub.example.com",
    "example.com",
];
const NAMES: [&str; 3] = ["docs", "docs/search", "lookup"];
const KINDS: [&str; 9] = [
    "shell",
    "commands",
    "write",
    "read",
    "url",
    "mcp",
    "custom-tool",
    "agent",
    "memory",
];

fn place() -> impl Strategy<Value = String> {
    select(&PLACES[..]).prop_map(str::to_owned)
}

fn places() -> impl Strategy<Value = Vec<String>> {
    proptest::collection::vec(place(), 0..3)
}

/// A rule about anything, with an argument that may or may not fit its kind.
fn rule() -> impl Strategy<Value = PermissionRule> {
    let commands = COMMANDS.map(|command| format!("{command}:*"));
    let arguments = PLACES.iter().chain(&COMMANDS).chain(&ADDRESSES);
    let arguments = arguments.chain(&NAMES).map(|text| (*text).to_owned());
    let arguments: Vec<String> = arguments.chain(commands).collect();
    (select(&KINDS[..]), proptest::option::of(select(arguments))).prop_map(|(kind, argument)| {
        PermissionRule {
            kind: kind.to_owned(),
            argument,
        }
    })
}

fn rules() -> impl Strategy<Value = Vec<PermissionRule>> {
    proptest::collection::vec(rule(), 0..4)
}

fn permissions() -> impl Strategy<Value = Permissions> {
    let switches = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    let lists = (
        rules(),
        rules(),
        places(),
        proptest::option::of(place()),
        rules(),
    );
    let urls = proptest::collection::vec(select(&ADDRESSES[..]).prop_map(str::to_owned), 0..2);
    let managed = (
        rules(),
        rules(),
        proptest::option::of(rules()),
        any::<bool>(),
    );
    let managed = managed.prop_map(|(deny, ask, allow, no_approve_all)| {
        Box::new(ManagedPermissions {
            deny,
            ask,
            allow: allow.into_iter().collect(),
            no_approve_all,
        })
    });
    let managed = proptest::option::weighted(0.3, managed);
    (switches, lists, urls, managed).prop_map(|(switches, lists, allowed_urls, managed)| {
        Permissions {
            approve_all: switches.0,
            approve_all_reads: switches.1,
            unrestricted_paths: switches.2,
            unrestricted_urls: switches.3,
            approved: lists.0,
            denied: lists.1,
            ask: lists.4,
            confirmed: Vec::new(),
            directories: lists.2,
            primary_directory: lists.3,
            allowed_urls,
            managed,
        }
    })
}

fn shell() -> impl Strategy<Value = PermissionRequest> {
    let commands = proptest::collection::vec(select(&COMMANDS[..]), 0..3);
    let hides = any::<bool>();
    (commands, hides, any::<bool>(), any::<bool>()).prop_map(
        |(commands, hides, has_write_file_redirection, can_offer_session_approval)| {
            let text = commands.join(" && ");
            PermissionRequest::Shell {
                managed_approval_required: None,
                tool_call_id: None,
                full_command_text: if hides { format!("$x; {text}") } else { text },
                intention: String::new(),
                commands: commands
                    .into_iter()
                    .map(|command| ShellCommand {
                        identifier: command.to_owned(),
                        read_only: false,
                    })
                    .collect(),
                possible_paths: Vec::new(),
                possible_urls: Vec::new(),
                has_write_file_redirection,
                can_offer_session_approval,
                warning: None,
                resolved_paths: std::collections::BTreeMap::new(),
                resolved_working_directory: None,
                changed_shell: None,
                shell_directories: Vec::new(),
                shell_directory_unknown: None,
                repository_folders: Vec::new(),
                writes_protected: None,
                reached: None,
                typed_before: Vec::new(),
            }
        },
    )
}

fn request() -> impl Strategy<Value = PermissionRequest> {
    let write = (place(), places(), places()).prop_map(|(file_name, other_files, also_named)| {
        PermissionRequest::Write {
            managed_approval_required: None,
            tool_call_id: None,
            intention: String::new(),
            file_name,
            diff: String::new(),
            new_file_contents: None,
            can_offer_session_approval: true,
            other_files,
            also_named,
            repository_folders: Vec::new(),
        }
    });
    let read = (place(), places()).prop_map(|(path, also_named)| PermissionRequest::Read {
        managed_approval_required: None,
        tool_call_id: None,
        intention: String::new(),
        path,
        also_named,
    });
    let url = select(&ADDRESSES[..]).prop_map(|url| PermissionRequest::Url {
        managed_approval_required: None,
        tool_call_id: None,
        intention: String::new(),
        url: url.to_owned(),
    });
    let mcp = any::<bool>().prop_map(|read_only| PermissionRequest::Mcp {
        tool_call_id: None,
        server_name: "docs".to_owned(),
        tool_name: "search".to_owned(),
        tool_title: String::new(),
        args: None,
        read_only,
    });
    let custom = Just(PermissionRequest::CustomTool {
        tool_call_id: None,
        tool_name: "lookup".to_owned(),
        tool_description: String::new(),
        args: None,
    });
    prop_oneof![3 => shell(), 3 => write, 3 => read, 1 => url, 1 => mcp, 1 => custom]
}

/// One agent: how it stands, where it works, and whether that is a copy.
#[derive(Clone)]
struct Step {
    stance: Stance,
    cwd: String,
    copy: bool,
}

impl fmt::Debug for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} in {} (copy: {})", self.stance, self.cwd, self.copy)
    }
}

fn step() -> impl Strategy<Value = Step> {
    let stances = [Stance::Inherit, Stance::Plan, Stance::NeverAsk];
    (select(stances.to_vec()), place(), any::<bool>()).prop_map(|(stance, cwd, copy)| Step {
        stance,
        cwd,
        copy,
    })
}

/// How much a verdict lets happen.
fn freedom(leave: &EffectivePermissions, cwd: &str, request: &PermissionRequest) -> u8 {
    match judge(&leave.permissions, cwd, request) {
        Verdict::Allow => 2,
        Verdict::Ask => 1,
        Verdict::Deny(_) => 0,
    }
}

/// Whether any part of a request is about this folder.
fn is_about(request: &PermissionRequest, folder: &str) -> bool {
    let paths: Vec<&String> = match request {
        PermissionRequest::Write {
            file_name,
            other_files,
            ..
        } => std::iter::once(file_name).chain(other_files).collect(),
        PermissionRequest::Read { path, .. } => vec![path],
        PermissionRequest::Shell { .. }
        | PermissionRequest::Url { .. }
        | PermissionRequest::Mcp { .. }
        | PermissionRequest::CustomTool { .. }
        | PermissionRequest::Hook { .. } => Vec::new(),
    };
    paths.into_iter().any(|path| within(folder, path))
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        cases: 16 * ProptestConfig::default().cases,
        ..ProptestConfig::default()
    })]

    #[test]
    fn no_agent_may_more_than_who_started_it(
        permissions in permissions(),
        cwd in place(),
        may_ask in any::<bool>(),
        steps in proptest::collection::vec(step(), 3),
        request in request(),
    ) {
        let planning = loopd_kernel::policy::planning::Planning::No;
        let mut parent = EffectivePermissions { permissions, may_ask, planning, copies: Vec::new() };
        let mut parent_cwd = cwd;
        // What an agent does in its own copy stands for what its parent does in its own place.
        let mut in_a_copy = false;
        for step in steps {
            let ground = if step.copy {
                Workspace::Copy { root: &step.cwd }
            } else {
                Workspace::Shared { parent: &parent_cwd }
            };
            let child = restrict_for_child(&parent, step.stance, ground);
            prop_assert!(parent.may_ask || !child.may_ask, "it may ask and its parent may not");
            prop_assert!(step.stance != Stance::NeverAsk || !child.may_ask);
            in_a_copy |= step.copy && is_about(&request, &step.cwd);
            let below = freedom(&child, &step.cwd, &request);
            let mut above = freedom(&parent, &parent_cwd, &request);
            if matches!(request, PermissionRequest::Shell { .. }) {
                // The words of a command mean other files in another directory.
                above = above.max(freedom(&parent, &step.cwd, &request));
            }
            prop_assert!(in_a_copy || below <= above, "{below} > {above} for {step:?}");
            if step.stance == Stance::Plan && matches!(request, PermissionRequest::Write { .. }) {
                prop_assert_eq!(below, 0, "one that plans writes nothing");
            }
            (parent, parent_cwd) = (child, step.cwd);
        }
    }
}
