//! Where hooks come from, and who may turn them off.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::super::*;
use crate::discovery::agents::{self, AgentOrigin};

struct Disk {
    root: TempDir,
}

impl Disk {
    fn new() -> Self {
        Self {
            root: TempDir::new().expect("a folder"),
        }
    }

    fn path(&self, file: &str) -> PathBuf {
        self.root.path().join(file)
    }

    fn write(&self, file: &str, text: &str) -> PathBuf {
        let path = self.path(file);
        fs::create_dir_all(path.parent().expect("a folder")).expect("the folder is made");
        fs::write(&path, text).expect("the file is written");
        path
    }

    /// Writes a file with one hook, whose command is the name of the file.
    fn hook(&self, file: &str) {
        let text = format!("{{\"hooks\":{{\"agentStop\":[{{\"bash\":\"{file}\"}}]}}}}");
        self.write(file, &text);
    }

    fn places(&self) -> HookPlaces {
        let owner = fs::metadata(self.root.path()).expect("the folder is there");
        let user = self.path("user");
        HookPlaces {
            policy: PolicyFolders::below(self.root.path(), owner.uid()),
            user: UserHookPlaces {
                folder: None,
                homes: vec![user.join(".copilot"), self.path("home")],
                settings: vec![user.join(".claude/settings.json")],
            },
            projects: vec![self.path("app"), self.path("app/sub")],
            root: Some(self.path("app")),
            plugins: vec![self.path("plugin"), self.path("app/tools/plugin")],
            held: Vec::new(),
            vouched: Vec::new(),
            local_http: LocalHttp::Refused,
        }
    }

    /// Loads everything and shows a line per hook and notice, with paths below the root.
    fn show(&self) -> Vec<String> {
        let below = |path: &Path| {
            let path = path.strip_prefix(self.root.path()).unwrap_or(path);
            path.display().to_string()
        };
        let loaded = load(&self.places());
        let hooks = loaded.hooks.iter().map(|hook| {
            let folder = hook.source.folder.as_deref().map(below);
            let folder = folder
                .map(|it| format!(" if {it} is trusted"))
                .unwrap_or_default();
            let off = hook.off.as_deref().map(below);
            let off = off.map(|it| format!(" off by {it}")).unwrap_or_default();
            let origin = hook.source.origin.name();
            format!("{origin} {}{folder}{off}", below(&hook.file))
        });
        let notices = loaded.notices.iter();
        let notices = notices.map(|it| format!("! {}: {}", below(&it.file), it.what));
        let switches = loaded.switches.iter();
        let switches = switches.map(|it| format!("switch {}", below(&it.file)));
        hooks.chain(notices).chain(switches).collect()
    }
}

#[test]
fn all_places_in_their_order() {
    let disk = Disk::new();
    for file in [
        "app/.claude/settings.local.json",
        "app/.claude/settings.json",
        "app/.github/copilot/settings.json",
        "app/.github/copilot/settings.local.json",
        "app/.github/hooks/b.json",
        "app/.github/hooks/a.json",
        "app/.loopd/hooks/c.json",
        "app/sub/.claude/settings.json",
        "app/tools/plugin/hooks.json",
        "plugin/hooks/hooks.json",
        "user/.claude/settings.json",
        "user/.copilot/hooks/u.json",
        "user/.copilot/settings.json",
        "home/hooks/h.json",
        "home/settings.json",
        "etc/github-copilot/policy.d/p.json",
        "etc/loopd/policy.d/q.json",
        // Not read.
        "app/.github/hooks/README.md",
        "app/.github/hooks/deep/d.json",
    ] {
        disk.hook(file);
    }
    assert_eq!(
        disk.show(),
        [
            "policy etc/github-copilot/policy.d/p.json",
            "policy etc/loopd/policy.d/q.json",
            "user user/.copilot/hooks/u.json",
            "user home/hooks/h.json",
            "user user/.copilot/settings.json",
            "user home/settings.json",
            "user user/.claude/settings.json",
            "project app/.github/hooks/a.json if app is trusted",
            "project app/.github/hooks/b.json if app is trusted",
            "project app/.loopd/hooks/c.json if app is trusted",
            "project app/.github/copilot/settings.json if app is trusted",
            "project app/.github/copilot/settings.local.json if app is trusted",
            "project app/.claude/settings.json if app is trusted",
            "project app/.claude/settings.local.json if app is trusted",
            "project app/sub/.claude/settings.json if app/sub is trusted",
            "plugin plugin/hooks/hooks.json",
            "plugin app/tools/plugin/hooks.json if app/tools/plugin is trusted",
        ]
    );
}

#[test]
fn a_policy_that_others_may_write_is_refused() {
    let disk = Disk::new();
    for (file, mode) in [("a", 0o664), ("b", 0o646), ("c", 0o644), ("d", 0o400)] {
        let file = format!("etc/loopd/policy.d/{file}.json");
        disk.hook(&file);
        let mode = fs::Permissions::from_mode(mode);
        fs::set_permissions(disk.path(&file), mode).expect("the mode is set");
    }
    assert_eq!(
        disk.show(),
        [
            "policy etc/loopd/policy.d/c.json",
            "policy etc/loopd/policy.d/d.json",
            "! etc/loopd/policy.d/a.json: is not used: its group or everybody may write it (mode 664); chmod go-w it",
            "! etc/loopd/policy.d/b.json: is not used: its group or everybody may write it (mode 646); chmod go-w it",
        ]
    );
    let mut places = disk.places();
    let own = places.policy.owner;
    places.policy.owner = own + 1;
    let loaded = load(&places);
    assert!(loaded.hooks.is_empty());
    let notice = loaded.notices.first().expect("a notice");
    assert!(
        notice.what.contains("a policy file has to belong to user"),
        "{notice}"
    );
    assert!(
        notice.what.ends_with(&format!("belongs to user {own}")),
        "{notice}"
    );
}

#[test]
fn the_user_turns_off_everything_but_policy() {
    let disk = Disk::new();
    disk.write("user/.copilot/settings.json", "{\"disableAllHooks\":true}");
    disk.write(
        "etc/loopd/policy.d/p.json",
        "{\"disableAllHooks\":true,\"hooks\":{\"agentStop\":[{\"bash\":\"x\"}]}}",
    );
    for file in [
        "user/.copilot/hooks/u.json",
        "app/.github/hooks/a.json",
        "plugin/hooks.json",
    ] {
        disk.hook(file);
    }
    assert_eq!(
        disk.show(),
        [
            "policy etc/loopd/policy.d/p.json",
            "user user/.copilot/hooks/u.json off by user/.copilot/settings.json",
            "project app/.github/hooks/a.json if app is trusted off by user/.copilot/settings.json",
            "plugin plugin/hooks.json off by user/.copilot/settings.json",
        ]
    );
}

#[test]
fn a_project_turns_off_nothing_before_it_is_trusted_with_that() {
    let disk = Disk::new();
    disk.write("app/.claude/settings.json", "{\"disableAllHooks\":true}");
    for file in [
        "user/.copilot/hooks/u.json",
        "app/.github/hooks/a.json",
        "plugin/hooks.json",
    ] {
        disk.hook(file);
    }
    assert_eq!(
        disk.show(),
        [
            "user user/.copilot/hooks/u.json",
            "project app/.github/hooks/a.json if app is trusted",
            "plugin plugin/hooks.json",
            "switch app/.claude/settings.json",
        ]
    );
}

#[test]
fn a_plugin_inside_of_the_project_needs_trust_although_the_project_is_not_searched() {
    let disk = Disk::new();
    disk.hook("plugin/hooks.json");
    disk.hook("app/tools/plugin/hooks.json");
    let mut places = disk.places();
    places.projects.clear();
    let loaded = load(&places);
    let folders: Vec<_> = loaded
        .hooks
        .iter()
        .map(|hook| &hook.source.folder)
        .collect();
    assert_eq!(folders, [&None, &Some(disk.path("app/tools/plugin"))]);
}

#[test]
fn a_file_that_two_places_name_is_the_users() {
    let disk = Disk::new();
    disk.hook("user/.claude/settings.json");
    let mut places = disk.places();
    places.projects = vec![disk.path("user")];
    let loaded = load(&places);
    let origins: Vec<_> = loaded.hooks.iter().map(|hook| hook.source.origin).collect();
    assert_eq!(origins, [HookOrigin::User]);
}

#[test]
fn only_regular_files_of_a_project_are_read() {
    let disk = Disk::new();
    disk.hook("app/.github/hooks/a.json");
    disk.hook("outside.json");
    let hooks = disk.path("app/.github/hooks");
    let link = |to: &str, name: &str| {
        std::os::unix::fs::symlink(to, hooks.join(name)).expect("the link is made");
    };
    link("a.json", "inside.json");
    link("../../../outside.json", "link.json");
    link("nowhere.json", "missing.json");
    fs::create_dir(hooks.join("folder.json")).expect("the folder is made");
    let fifo = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(
        rustix::fs::CWD,
        hooks.join("pipe.json"),
        rustix::fs::FileType::Fifo,
        fifo,
        0,
    )
    .expect("the pipe is made");
    disk.write(
        "app/.github/hooks/large.json",
        &" ".repeat(10 * 1024 * 1024),
    );
    fs::write(
        hooks.join("latin.json"),
        b"{\n\"hooks\": {\"a\": \"\xe4\"}}",
    )
    .expect("written");
    assert_eq!(
        disk.show(),
        [
            "project app/.github/hooks/a.json if app is trusted",
            "! app/.github/hooks/folder.json: cannot be read: it is not a regular file",
            "! app/.github/hooks/large.json: is larger than 1024 KiB and is not read",
            "! app/.github/hooks/latin.json: is not UTF-8 text",
            "! app/.github/hooks/link.json: is a link that leads out of its project and is not followed",
            "! app/.github/hooks/pipe.json: cannot be read: it is not a regular file",
        ]
    );
}

#[test]
fn a_file_that_a_person_names() {
    let disk = Disk::new();
    let mistake = "{\"hooks\":{\"agentStop\":[{\"bash\":\"x\"},{\"bash\":1}]}}";
    let hooks = |file: &str| load_file(&disk.path(file), LocalHttp::Refused);
    disk.write("a.json", mistake);
    disk.write("settings.json", mistake);
    assert_eq!(
        (hooks("a.json").hooks.len(), hooks("a.json").problems.len()),
        (1, 1)
    );
    let settings = hooks("settings.json");
    assert_eq!((settings.hooks.len(), settings.problems.len()), (0, 2));
    let missing = hooks("none.json").problems;
    assert_eq!(
        missing.first().map(|it| it.what.as_str()),
        Some("does not exist")
    );
    assert_eq!(
        HookKind::read("Stop"),
        Ok((HookKind::AgentStop, PayloadForm::Claude))
    );
    let wrong = HookKind::read("onStop").expect_err("no kind");
    assert_eq!(wrong, "`onStop` is no kind of hook; did you mean `Stop`?");
}

#[test]
fn an_agent_brings_hooks_of_its_own() {
    let disk = Disk::new();
    let text = "---\nname: x\ndescription: Does.\nhooks:\n  PreToolUse:\n    - matcher: Bash\n      hooks:\n        - type: command\n          command: ./check.sh\n  Stop:\n    - hooks:\n        - command: 5\n---\nDo.";
    let file = disk.write("app/sub/.claude/agents/x.md", text);
    let agent = agents::parse(&file, text, AgentOrigin::Project).expect("an agent");
    let content = of_agent(&agent, LocalHttp::Refused, &disk.path("app"));
    let [hook] = content.hooks.as_slice() else {
        panic!("{content:?}");
    };
    assert_eq!(hook.source.origin, HookOrigin::Agent);
    assert_eq!(
        hook.source.folder.as_deref(),
        Some(disk.path("app/sub").as_path())
    );
    assert_eq!(hook.matcher.to_string(), "Bash");
    let [problem] = content.problems.as_slice() else {
        panic!("{content:?}");
    };
    assert_eq!(
        problem.what,
        "`hooks` of the agent `x`: this Stop hook is not used: `command`: invalid type: integer `5`, expected a string"
    );
}
