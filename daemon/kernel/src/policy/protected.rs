//! Protected paths: files that make a program run something as soon as a person or an agent uses
//! git, opens a shell, an editor or an agent in their folder.
//!
//! Writing to one of them is always asked about, whatever the rules allow. Only approving
//! everything covers it. A path is protected by the names of its parts, at any depth, whether it
//! exists or not. What git writes into its own folder is not counted; a path that a command of git
//! names and writes, as `git mv` does, is. The home of the daemon is protected by its path, too, and
//! so is a folder in which git keeps a repository under another name than `.git`: the daemon finds
//! those on the disk and names them in the request.

mod computed;
mod home;

use std::path::Path;

use loopd_proto::permission::{PermissionRequest, Permissions};

use super::process_path::is_through_process;
use super::shell::write_targets::WriteTargets;
use super::{Whereabouts, plain, shell, within};

/// Folders that are protected with everything in them, and files in a folder of a certain name. A `/`
/// separates a folder and its parent. All names are in small letters.
///
/// What counts is that a tool which people start anyway runs code from there without a question of
/// its own. What a project runs when it is built or tested on purpose (a Makefile, package.json,
/// .eslintrc.js) does not count, nor what runs elsewhere after a push (.github/workflows).
#[rustfmt::skip]
const FOLDERS: &[&str] = &[
    // Version control runs hooks, filters and monitors; the others set such hooks.
    ".git", ".githooks", ".git-hooks", ".husky", ".hg", ".jj", ".config/git",
    // Agents run hooks and start servers.
    ".github/hooks", ".github/agents", ".github/copilot", ".loopd", ".claude", ".codex", ".copilot", ".cursor", ".gemini", ".opencode",
    ".agents", ".windsurf", ".kiro", ".roo", ".continue", ".qwen",
    // Editors run tasks, language servers and settings when they open the folder.
    ".vscode", ".idea", ".zed", ".devcontainer", ".emacs.d", ".config/nvim", ".vim",
    // Shells and sessions run these when they start.
    ".config/fish", ".config/direnv", ".config/mise", ".config/systemd", ".config/autostart", ".config/environment.d",
    ".config/nushell", ".config/xonsh", ".bashrc.d", ".zshrc.d", ".oh-my-zsh", "etc/profile.d", "etc/cron.d",
    // Keys, and who may log in.
    ".ssh", ".gnupg",
    // These tools load a program named or kept there whatever they are asked to do.
    ".cargo/config", ".cargo/config.toml", ".mise/config.toml", ".config/mise", ".rtx/config.toml", ".yarn/releases", ".yarn/plugins", ".mvn", ".gradle/init.d",
];

/// Files that are protected in every folder, for the same reasons.
#[rustfmt::skip]
const FILES: &[&str] = &[
    // Version control and what installs its hooks.
    ".gitmodules", ".gitconfig", ".hgrc", ".pre-commit-config.yaml", ".lefthook.yml", ".lefthook.yaml", "lefthook.yml", "lefthook.yaml",
    ".lefthook.toml", "lefthook.toml", ".lefthook.json", "lefthook.json", ".lefthook-local.yml", "lefthook-local.yml", "lefthook-local.yaml",
    "lefthook-local.toml", "lefthook-local.json", ".overcommit.yml",
    // Agents.
    ".mcp.json", ".claude.json", ".aider.conf.yml", "opencode.json", ".crush.json",
    // What runs when a shell enters the folder.
    ".envrc", ".direnvrc", ".mise.toml", ".mise.local.toml", "mise.toml", "mise.local.toml", ".rtx.toml", ".rtx.local.toml",
    // Shells and sessions.
    ".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile",
    ".zshrc", ".zshenv", ".zprofile", ".zlogin", ".zlogout", ".kshrc", ".mkshrc", ".xonshrc", "bash.bashrc", ".cshrc", ".tcshrc", ".login",
    ".logout", "config.fish", "rc.elv", ".lessfilter", ".xprofile", ".xinitrc", ".xsession", ".xsessionrc", ".pam_environment",
    ".inputrc", ".tmux.conf", ".screenrc",
    // Editors.
    ".vimrc", ".gvimrc", ".exrc", ".nvimrc", ".nvim.lua", ".lvimrc", ".emacs", ".dir-locals.el", ".dir-locals-2.el", ".devcontainer.json", ".ycm_extra_conf.py",
    // Debuggers, and programs that take commands.
    ".gdbinit", ".lldbinit", ".pythonrc", ".pdbrc", ".irbrc", ".pryrc", ".byebugrc", ".psqlrc", ".sqliterc", ".rprofile", ".iex.exs",
    ".ghci", ".ocamlinit", ".octaverc",
    // Package managers that run a program named there whatever they are asked to do.
    ".npmrc", ".yarnrc", ".yarnrc.yml", ".pnpmfile.cjs", ".pnpmfile.js", ".bazelrc", "bunfig.toml", ".bunfig.toml",
    // What every call of cargo and rustc runs.
    "rust-toolchain", "rust-toolchain.toml",
    // Programs that fetch write where these say.
    ".curlrc", "_curlrc", ".wgetrc",
    // Passwords.
    ".netrc",
];

/// Whether a path names a protected file or folder, or something in one. Letters of either case
/// count as the same, because some file systems do not tell them apart.
pub fn is_protected(path: &str) -> bool {
    let mut parent = String::new();
    for part in path.split(['/', '\\']) {
        if part.is_empty() || part == "." {
            continue;
        }
        let name = folded(part);
        let pair = format!("{parent}/{name}");
        if FOLDERS.contains(&name.as_str())
            || FOLDERS.contains(&pair.as_str())
            || FILES.contains(&name.as_str())
            // The short name that Windows gives to `.git`.
            || name == "git~1"
        {
            return true;
        }
        parent = name;
    }
    false
}

/// Whether the last part of a path, with more behind it, may become a protected name. The rest of
/// the name consists of letters and digits, unless it is open what follows.
fn begins_protected(path: &str, is_open: bool) -> bool {
    let start = shell::word::base_name(path).to_lowercase();
    let names = FILES.iter().chain(FOLDERS);
    let mut parts = names.flat_map(|name| name.split('/'));
    parts.any(|name| {
        let rest = name.strip_prefix(start.as_str());
        rest.is_some_and(|rest| is_open || rest.chars().all(|it| it.is_ascii_alphanumeric()))
    })
}

/// Returns a name as a lenient file system compares it: without invisible characters, without a
/// stream, and without dots and spaces at the end.
fn folded(name: &str) -> String {
    let visible: String = name
        .chars()
        .filter(|character| !shell::plain::is_invisible(*character))
        .collect();
    let visible = visible.split(':').next().unwrap_or_default();
    visible.trim_end_matches(['.', ' ']).to_lowercase()
}

/// Whether a request writes to a protected path, as far as its paths are known.
pub(crate) fn is_written<'a>(
    permissions: &Permissions,
    at: impl Into<Whereabouts<'a>>,
    request: &PermissionRequest,
) -> bool {
    let Whereabouts { cwd, home } = at.into();
    // A home whose name is protected needs no second look.
    let home = home.filter(|home| !is_protected(home));
    match request {
        PermissionRequest::Write {
            file_name,
            other_files,
            also_named,
            repository_folders,
            ..
        } => {
            if !repository_folders.is_empty() {
                return true;
            }
            let roots = roots(permissions, cwd, None);
            let mut files = std::iter::once(file_name).chain(other_files);
            let is_inside = |path: &str| roots.iter().any(|root| within(root, path));
            // A file of the session has a second name outside when its folder is a link. Only the
            // name inside counts then.
            let is_spelled_outside =
                |name: &str| !is_inside(name) && is_inside(file_name) && other_files.is_empty();
            let in_home = |path: &str| home.is_some_and(|home| home::has(home, &roots, path));
            let is_there = |path: &str| is_protected_below(&roots, path) || in_home(path);
            files.any(|path| is_there(path))
                || also_named
                    .iter()
                    .filter(|name| !is_spelled_outside(name))
                    .any(|name| is_there(name))
        }
        PermissionRequest::Shell {
            full_command_text,
            resolved_paths,
            resolved_working_directory,
            repository_folders,
            ..
        } => {
            let roots = roots(permissions, cwd, resolved_working_directory.as_deref());
            let in_home = |path: &str| home.is_some_and(|home| home::has(home, &roots, path));
            let bases: Vec<&str> = [Some(cwd), resolved_working_directory.as_deref()]
                .into_iter()
                .flatten()
                .collect();
            let in_repository = |path: &str| {
                let mut folders = repository_folders.iter();
                folders.any(|folder| within(folder, path))
            };
            let leads_there = |name: &str| {
                let is_there = |path: &String| {
                    is_protected_below(&roots, path) || in_home(path) || in_repository(path)
                };
                resolved_paths.get(name).is_some_and(is_there)
                    || bases.iter().any(|base| in_repository(&joined(base, name)))
            };
            // Where `cd` may lead, if that matters.
            let goes = (!repository_folders.is_empty())
                .then(|| WriteTargets::of(full_command_text))
                .flatten()
                .map(|targets| targets.directories);
            shell::written::names(full_command_text).is_none_or(|names| {
                let is_there = |name: &String| {
                    is_protected_below(&roots, &joined(cwd, name)) || leads_there(name)
                };
                let text = full_command_text;
                let is_unclear = |name: &String| is_through_process(&joined(cwd, name));
                let begun = shell::composed::beginnings(text);
                let in_folder = |name: &String| {
                    let folders = goes.iter().flat_map(|goes| &goes.folders);
                    folders.into_iter().any(|folder| {
                        let name = shell::directories::below(folder, name);
                        bases.iter().any(|base| in_repository(&joined(base, &name)))
                    })
                };
                names.iter().any(is_there)
                    || names.iter().any(in_folder)
                    || begun
                        .iter()
                        .any(|begun| begins_protected(&begun.path, begun.is_open))
                    || names.iter().any(is_unclear)
                    || computed::may_write(text)
                    || home.is_some_and(|home| {
                        home::is_named(home, &roots, &bases, text, names.iter())
                    })
            })
        }
        PermissionRequest::Read { .. }
        | PermissionRequest::Url { .. }
        | PermissionRequest::Mcp { .. }
        | PermissionRequest::CustomTool { .. }
        | PermissionRequest::Hook { .. } => false,
    }
}

/// Returns the directories of the session. Their own names do not protect what is in them: a
/// session may work in a worktree below `.loopd`.
fn roots(permissions: &Permissions, cwd: &str, resolved: Option<&str>) -> Vec<String> {
    let primary = permissions.primary_directory.as_deref().unwrap_or(cwd);
    let directories = permissions.directories.iter().map(String::as_str);
    let all = [cwd, primary]
        .into_iter()
        .chain(resolved)
        .chain(directories);
    all.filter(|root| !root.is_empty())
        .map(str::to_owned)
        .collect()
}

/// Whether the part of a path below the directories of the session is protected.
fn is_protected_below(roots: &[String], path: &str) -> bool {
    let whole = plain(path);
    let below = roots
        .iter()
        .filter_map(|root| whole.strip_prefix(plain(root)).ok());
    let below = below.min_by_key(|rest| rest.components().count());
    is_protected(&below.unwrap_or(&whole).to_string_lossy())
}

fn joined(cwd: &str, name: &str) -> String {
    Path::new(cwd).join(name).to_string_lossy().into_owned()
}

#[cfg(test)]
#[cfg(unix)]
mod tests;
