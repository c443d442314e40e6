mod home;

use super::*;
use crate::policy::shell::analysis::tests::shell_request;
use crate::policy::{Verdict, judge};
use loopd_proto::permission::PermissionRule;

fn permissions(kinds: &[&str]) -> Permissions {
    let rule = |kind: &&str| PermissionRule {
        kind: (*kind).to_owned(),
        argument: None,
    };
    Permissions {
        approved: kinds.iter().map(rule).collect(),
        ..Permissions::default()
    }
}

fn write(file: &str, also: &[&str]) -> PermissionRequest {
    PermissionRequest::Write {
        managed_approval_required: None,
        tool_call_id: None,
        intention: String::new(),
        file_name: file.to_owned(),
        diff: String::new(),
        new_file_contents: None,
        can_offer_session_approval: true,
        other_files: Vec::new(),
        also_named: also.iter().map(|name| (*name).to_owned()).collect(),
        repository_folders: Vec::new(),
    }
}

#[test]
fn files_that_make_others_run_something_are_protected_at_any_depth() {
    let protected = [
        ".git/config",
        "./.git/hooks/pre-commit",
        "a/../.git/config",
        "vendor/lib/.git/config",
        ".git",
        ".GIT/config",
        ".Git/HOOKS/x",
        ".git./config",
        ".git /config",
        ".git::$INDEX_ALLOCATION/config",
        "GIT~1/config",
        ".g\u{200c}it/config",
        "a\\.git\\config",
        ".github/hooks/pre.json",
        "sub/.github/hooks",
        ".claude/settings.json",
        ".loopd/agents/a.md",
        ".mcp.json",
        "deep/er/.mcp.json",
        ".bashrc",
        "home/.zshenv",
        ".config/fish/conf.d/x.fish",
        "x/config.fish",
        ".envrc",
        ".vscode/tasks.json",
        ".husky/pre-commit",
        ".gitmodules",
        ".ssh/authorized_keys",
        ".git-hooks/pre-commit",
        ".lefthook.yml",
        "lefthook.yml",
        ".direnvrc",
        ".mise.toml",
        "sub/mise.toml",
        ".devcontainer.json",
        ".yarnrc.yml",
        ".yarn/releases/yarn-4.cjs",
        ".pnpmfile.cjs",
        ".npmrc",
        ".cargo/config.toml",
        "crates/a/.cargo/config",
        ".zed/tasks.json",
        ".nvim.lua",
        ".psqlrc",
        ".sqliterc",
        ".pryrc",
        ".Rprofile",
        ".mvn/extensions.xml",
        ".config/nvim/init.lua",
        "rust-toolchain.toml",
        "crates/a/rust-toolchain",
        "lefthook.toml",
        ".mise/config.toml",
        ".rtx.toml",
        "bunfig.toml",
        ".ycm_extra_conf.py",
        ".curlrc",
        ".wgetrc",
        ".lessfilter",
        ".elvish/rc.elv",
    ];
    for path in protected {
        assert!(is_protected(path), "{path}");
    }
    let ordinary = [
        ".gitignore",
        ".gitattributes",
        ".github/workflows/ci.yml",
        "hooks/pre.json",
        "git/config",
        "src/.gitkeep",
        "mcp.json",
        "bashrc",
        "src/profile",
        ".env",
        "a/.github",
        "docs/claude.md",
        "Makefile",
        "package.json",
        ".cargo/registry/x",
        ".yarn/cache/x.zip",
        ".config/app.toml",
        "config.toml",
        ".eslintrc.js",
    ];
    for path in ordinary {
        assert!(!is_protected(path), "{path}");
    }
}

#[test]
fn all_names_are_written_as_they_are_compared() {
    for name in FILES.iter().chain(FOLDERS) {
        assert_eq!(*name, name.to_lowercase(), "{name}");
        assert!(is_protected(name), "{name}");
    }
}

#[test]
fn what_the_configuration_of_a_repository_names_is_asked_about_in_every_folder_of_a_line() {
    let permissions = permissions(&["write", "shell"]);
    let table = [
        ("echo x > inc.cfg", true),
        ("cp a scripts/hk/pre-commit", true),
        ("cd scripts && echo x > hk/pre-commit", true),
        ("cd scripts && cp ../a hk/pre-commit", true),
        ("cd scripts/hk; tee pre-commit < a", true),
        ("cat inc.cfg", false),
        ("echo x > other.cfg", false),
        ("cd scripts && echo x > notes", false),
    ];
    for (line, expected) in table {
        let mut request = shell_request(line);
        let PermissionRequest::Shell {
            repository_folders, ..
        } = &mut request
        else {
            unreachable!("a command asks for a shell");
        };
        *repository_folders = vec![
            "/project/inc.cfg".to_owned(),
            "/project/scripts/hk".to_owned(),
        ];
        let asks = judge(&permissions, "/project", &request) == Verdict::Ask;
        assert_eq!(asks, expected, "{line}");
    }
}

#[test]
fn a_protected_file_is_asked_about_whatever_the_rules_allow() {
    let mut named = permissions(&["write", "shell"]);
    named.approved.push(PermissionRule {
        kind: "write".to_owned(),
        argument: Some("/project/.git".to_owned()),
    });
    for permissions in [permissions(&["write"]), named] {
        let verdict = |request: &PermissionRequest| judge(&permissions, "/project", request);
        assert_eq!(verdict(&write("/project/src/a.rs", &[])), Verdict::Allow);
        assert_eq!(verdict(&write("/project/.git/config", &[])), Verdict::Ask);
        // A link, named by what it is or by where it leads.
        assert_eq!(
            verdict(&write("/project/.git/config", &["/project/notes"])),
            Verdict::Ask
        );
        assert_eq!(
            verdict(&write(
                "/project/git-data/config",
                &["/project/.git/config"]
            )),
            Verdict::Ask
        );
    }
    let all = Permissions {
        approve_all: true,
        ..Permissions::default()
    };
    let request = write("/project/.git/config", &[]);
    assert_eq!(judge(&all, "/project", &request), Verdict::Allow);
}

#[test]
fn the_name_of_the_sessions_own_directory_protects_nothing_in_it() {
    let permissions = permissions(&["write"]);
    let cwd = "/home/a/.loopd/worktrees/x";
    let verdict = |request: &PermissionRequest| judge(&permissions, cwd, request);
    let inside = "/home/a/.loopd/worktrees/x/src/a.rs";
    assert_eq!(verdict(&write(inside, &[])), Verdict::Allow);
    // The directory was reached through a link.
    let real = "/data/.claude/x/src/a.rs";
    assert_eq!(verdict(&write(inside, &[real])), Verdict::Allow);
    let hook = "/home/a/.loopd/worktrees/x/.husky/pre-commit";
    assert_eq!(verdict(&write(hook, &[])), Verdict::Ask);
    let mut wide = permissions.clone();
    wide.unrestricted_paths = true;
    let other = write("/home/a/.loopd/config.toml", &[]);
    assert_eq!(judge(&wide, cwd, &other), Verdict::Ask);
}

#[test]
fn a_command_that_writes_to_a_protected_path_is_asked_about() {
    let everything = permissions(&["shell"]);
    let asked = [
        "echo x > .git/config",
        "echo x >> ./.git/hooks/pre-commit",
        "echo x > \".g\"it/config",
        "echo x > a/../.GIT/config",
        "cp evil .git/hooks/pre-commit",
        "mv evil .husky/pre-commit",
        "ln -s /tmp/x .claude",
        "tee .mcp.json < x",
        "cat x | tee -a ~/.bashrc",
        "touch .git/x",
        "rm -rf .git",
        "sed -i s/a/b/ .git/config",
        "cd .git && touch x",
        "cd .git/hooks; echo x > pre-commit",
        "python3 -c 'open(\".git/config\", \"w\")'",
        "sh -c 'echo x > .git/config'",
        "dd if=x of=.git/config",
        "curl -o .bashrc https://x.y",
        "tar -xf x.tar -C .git",
        "git log > .git/x",
        "find .git -name x -delete",
        "env cp x .envrc",
        "install x {.git/config,y}",
        "echo \"$(cp x .git/config)\"",
    ];
    for line in asked {
        let verdict = judge(&everything, "/project", &shell_request(line));
        assert_eq!(verdict, Verdict::Ask, "{line}");
    }
    let allowed = [
        "git commit -m 'touch .git'",
        "git config user.name x",
        "git status && git add .",
        "cat .git/config",
        "ls -la .git",
        "grep -rn x . --exclude-dir=.git",
        "rsync -a --exclude .git . /tmp/x",
        "tar --exclude=.git -czf x.tgz .",
        "find . -path ./.git -prune -o -name x -print",
        "cat .git/HEAD > head.txt",
        "echo x > .gitignore",
        "npm test",
        "cp .github/workflows/a.yml b.yml",
    ];
    for line in allowed {
        let verdict = judge(&everything, "/project", &shell_request(line));
        assert_eq!(verdict, Verdict::Allow, "{line}");
    }
}

#[test]
fn a_protected_path_that_a_command_of_git_writes_is_asked_about() {
    let mut named = permissions(&[]);
    named.approved.push(PermissionRule {
        kind: "shell".to_owned(),
        argument: Some("git:*".to_owned()),
    });
    let everything = permissions(&["shell"]);
    let asked = [
        "git mv a .bashrc",
        "git mv a ./.husky/pre-commit",
        "git mv -v a.json .mcp.json",
        "git -P mv a .envrc",
        "git checkout -- .bashrc",
        "git checkout HEAD~1 .vscode/tasks.json",
        "git checkout other -- a .envrc",
        "git restore .bashrc",
        "git restore --source=HEAD~1 .husky",
        "git restore --staged --worktree .bashrc",
        "git restore -SW .bashrc",
        "git apply --include=.bashrc a.patch",
        "git apply --directory=.husky a.patch",
        "git clone . .git/x",
        "git clone https://a.b/c .husky",
        "git init .husky",
        "git worktree add .git/x",
        "git worktree add -b y .vscode",
        "git rm .bashrc",
        "git rm .bashrc -- --cached",
        "git restore .bashrc -- --staged",
        "git config -zf .mcp.json a.b c",
        "git reflog --output=.bashrc",
        "git rm -r .husky",
        "git stash push .envrc",
        "git stash -- .envrc",
        "git format-patch -o .git/hooks HEAD",
        "git format-patch -o.husky HEAD",
        "git diff --output=.bashrc",
        "git log --output .bashrc",
        "git config --file .mcp.json a.b c",
        "git config -f.gitmodules a.b c",
        "git -C .husky mv a b",
        "git archive -o .bashrc HEAD",
        "git bundle create .git/hooks/x HEAD",
        "git checkout-index --prefix=.husky/ -a",
        "git clean -f .vscode",
        "git unknown .bashrc",
    ];
    for line in asked {
        for permissions in [&named, &everything] {
            let verdict = judge(permissions, "/project", &shell_request(line));
            assert_eq!(verdict, Verdict::Ask, "{line}");
        }
    }
    let allowed = [
        "git add .vscode/settings.json",
        "git add -A .husky",
        "git commit -m 'Change .bashrc and .git/config'",
        "git commit .envrc -m x",
        "git rm -r --cached .idea",
        "git restore --staged .envrc",
        "git reset HEAD .envrc",
        "git stash push -m 'Change .envrc' src",
        "git checkout -b fix-bashrc",
        "git checkout -- src/a.rs",
        "git clone https://a.b/c.git",
        "git mv a b",
        "git log -- .vscode",
        "git diff .bashrc",
        "git show HEAD:.bashrc",
        "git ls-files .husky",
        "git check-ignore .envrc",
        "git blame .bashrc",
        "git push origin main",
        "git remote add x ../other/.git",
    ];
    for line in allowed {
        for permissions in [&named, &everything] {
            let verdict = judge(permissions, "/project", &shell_request(line));
            assert_eq!(verdict, Verdict::Allow, "{line}");
        }
    }
}

#[test]
fn a_protected_path_may_be_attached_to_an_option() {
    let everything = permissions(&["shell"]);
    for line in [
        "curl -o.bashrc https://x.y",
        "curl -so.bashrc https://x.y",
        "cp -t.git a",
        "tar -xf a.tar -C.git",
        "sort -o.envrc a",
        "cp --target-directory=.git a",
    ] {
        let verdict = judge(&everything, "/project", &shell_request(line));
        assert_eq!(verdict, Verdict::Ask, "{line}");
    }
}

#[test]
fn a_link_into_a_protected_folder_is_asked_about() {
    let everything = permissions(&["shell"]);
    let mut request = shell_request("echo x > link/config");
    assert_eq!(judge(&everything, "/project", &request), Verdict::Allow);
    if let PermissionRequest::Shell { resolved_paths, .. } = &mut request {
        let real = "/project/.git/config".to_owned();
        resolved_paths.insert("link/config".to_owned(), real);
    }
    assert_eq!(judge(&everything, "/project", &request), Verdict::Ask);
}

#[test]
fn a_rule_for_a_program_does_not_cover_copies_of_folders_and_archives() {
    let programs = [
        "cp", "mv", "tar", "rsync", "unzip", "git", "ditto", "7z", "cpio", "scp", "patch",
    ];
    let approved = programs.iter().map(|program| PermissionRule {
        kind: "shell".to_owned(),
        argument: Some(format!("{program}:*")),
    });
    let permitted = Permissions {
        approved: approved.collect(),
        ..Permissions::default()
    };
    let mut wrong = Vec::new();
    for line in [
        "cp -r tpl/. .",
        "cp -rT tpl .",
        "cp -a tpl .",
        "cp -R pl/st .",
        "cp -vr pl sub",
        "cp --recursive pl sub",
        "cp --recurs pl sub",
        "cp --archive pl sub",
        "cp --parents a/b sub",
        "cp -t . -r pl",
        "cp x /proc/self/cwd/st/config.toml",
        "cp x /dev/fd/../cwd/st/config.toml",
        "tar xf x.tar",
        "tar -xf x.tar",
        "rsync -a tpl/ .",
        "unzip x.zip",
        "ditto a b",
        "7z x x.7z",
        "cpio -i",
        "scp -r a b",
        "patch -p1 -i x",
        "git apply x",
    ] {
        let verdict = judge(&permitted, "/project", &shell_request(line));
        if verdict != Verdict::Ask {
            wrong.push(line);
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    for line in ["cp a b", "cp -pv a b c/", "mv a.txt b.txt", "git mv a b"] {
        let verdict = judge(&permitted, "/project", &shell_request(line));
        assert_eq!(verdict, Verdict::Allow, "{line}");
    }
}

#[test]
fn what_a_command_moves_is_told() {
    let table: &[(&str, Option<&[&str]>)] = &[
        ("mv a b", Some(&["a"])),
        ("mv -v a b c/", Some(&["a", "b"])),
        ("mv -t c a b", Some(&["c", "a", "b"])),
        ("git mv a b", Some(&["a"])),
        ("ls && mv a b", Some(&["a"])),
        ("cd x && mv a b", None),
        ("cd x && ls", Some(&[])),
        ("cp a b", Some(&[])),
    ];
    for (line, moved) in table {
        let found = crate::policy::shell::analysis::moved(line);
        let found: Option<Vec<&str>> = found
            .as_ref()
            .map(|words| words.iter().map(String::as_str).collect());
        assert_eq!(found.as_deref(), *moved, "{line}");
    }
}
