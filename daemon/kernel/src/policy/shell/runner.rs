//! Finds commands that run whatever their arguments, their input or a file says. A rule for such a
//! program would allow anything, so each call is asked about.
//!
//! Such a list can never be complete. It is the second line of defence. The first is that a rule
//! names one program and that a person chose this program.

use super::{compiler, runs};

/// Programs that exist to run others, or whose arguments are a program, besides those that
/// `runs` reads.
#[rustfmt::skip]
const RUNNERS: &[&str] = &[
    "aa-exec", "ack", "alpine", "ansible", "ansible-console", "ansible-playbook", "ash", "at", "autossh",
    "awk", "bash", "batch", "bpftrace", "bsdtar", "bunx", "busybox", "bwrap", "bzless", "bzmore", "capsh",
    "cargo-watch", "cgexec", "choom", "chpst", "chronic", "chroot", "chrt", "clisp", "clojure", "clush",
    "cmd", "corepack", "cpio", "crontab", "cscope", "csh", "csi", "d8", "daemonize", "dash", "dbclient",
    "dbus-run-session", "dc", "dlv", "doas", "dtach", "duckdb", "ecl", "ed", "editor", "elinks", "elixir",
    "elvis", "elvish", "emacs", "emacs-gtk", "emacs-nox", "emacsclient", "entr", "env", "envdir", "erl", "ex",
    "execlineb", "expect", "expectk", "fab", "fakeroot", "faketime", "file-rename", "find", "firejail",
    "fish", "flock", "ftp", "fzf", "gawk", "gcore", "gdb", "gdb-multiarch", "gdbserver", "ghci", "gjs",
    "gnuplot", "gp", "gpg-agent", "gpg-connect-agent", "gprolog", "groovy", "gs", "gsed", "gtar", "guile",
    "gview", "gvim", "heaptrack", "hyperfine", "iex", "ifne", "info", "invoke", "ionice", "irb", "java",
    "jjs", "jmacs", "joe", "jshell", "julia", "kotlin", "ksh", "less", "lesspipe", "links", "lldb",
    "logrotate", "ltrace", "lua", "lynx", "m4", "machinectl", "mailx", "man", "mawk", "maxima", "mcedit",
    "mg", "micro", "mispipe", "mongo", "mongosh", "more", "mosh", "most", "multilog", "mycli", "mysql",
    "mysqlsh", "nawk", "nc", "ncat", "ncftp", "neomutt", "newgrp", "nice", "nnn", "node", "nodejs", "nohup",
    "npx", "nq", "nsenter", "nu", "numactl", "nvim", "nvim-qt", "octave", "open", "osascript", "osh", "pager",
    "parallel", "parallel-ssh", "pdsh", "pee", "perf", "perl", "perl-rename", "pgcli", "php", "php-cgi",
    "pico", "pine", "pkexec", "pnpx", "powershell", "prename", "proot", "pry", "psql", "pssh", "pwsh", "qjs",
    "r", "racket", "raku", "rdbg", "rename", "rgview", "rgvim", "rhino", "rlwrap", "rr", "rscript", "rsh",
    "rsync", "ruby", "run-mailcap", "run-parts", "runcon", "runghc", "runhaskell", "runuser", "rview", "rvim",
    "sage", "sbcl", "scala", "scp", "screen", "script", "sed", "see", "select-editor", "sensible-browser",
    "sensible-editor", "sensible-pager", "setarch", "setlock", "setpriv", "setsid", "sftp", "sg", "sh", "sk",
    "socat", "softlimit", "sqlcmd", "sqlite3", "sqlplus", "ssh", "ssh-agent", "sshfs", "sshpass", "stap",
    "start-stop-daemon", "stdbuf", "strace", "su", "sudo", "sudoedit", "svscan", "swipl", "systemd-nspawn",
    "systemd-run", "tar", "taskset", "tclsh", "tcpdump", "tee", "telnet", "time", "timeout", "tmux", "toybox",
    "ts-node", "tsp", "tsx", "unbuffer", "unshare", "usql", "utop", "uvx", "valgrind", "vi", "vidir", "view",
    "vifm", "vigr", "vile", "vim", "vimdiff", "vipe", "vipw", "visudo", "w3m", "watch", "wine", "wine64",
    "wish", "wolframscript", "wsl", "xargs", "xdg-open", "xonsh", "xterm", "xvfb-run", "xzless", "xzmore",
    "ysh", "zip", "zless", "zmore", "zrun", "zsh",
];

/// How the names of further such programs begin: interpreters with a version, loaders and emulators of
/// one kind of machine.
const RUNNING_FAMILIES: &[&str] = &[
    "ld-linux", "ld-musl", "ld.so", "ld64.so", "pypy", "python", "qemu-",
];

/// How the names of programs end that come in several builds.
const BUILT: &[&str] = &[".athena", ".basic", ".exe", ".gtk3", ".nox", ".tiny"];

/// Subcommands that run the arguments after them or the contents of a file.
const RUNNING_SUBCOMMANDS: &[(&str, &[&str])] = &[
    ("bun", &["create", "exec", "repl", "run", "x"]),
    ("bundle", &["exec"]),
    ("composer", &["exec"]),
    ("conda", &["run"]),
    ("deno", &["eval", "repl", "run", "serve", "task"]),
    (
        "docker",
        &["build", "buildx", "compose", "container", "exec", "run"],
    ),
    ("dotnet", &["exec", "fsi", "run", "script", "tool"]),
    ("gem", &["exec"]),
    ("gh", &["alias", "extension"]),
    (
        "git",
        &[
            "bisect",
            "config",
            "credential",
            "daemon",
            "difftool",
            "filter-branch",
            "hook",
            "instaweb",
            "maintenance",
            "mergetool",
            "send-email",
            "shell",
            "submodule",
            "svn",
        ],
    ),
    ("go", &["generate", "run", "tool"]),
    ("helm", &["plugin"]),
    ("hg", &["import", "patch", "qimport", "unbundle"]),
    ("kubectl", &["cp", "debug", "exec", "plugin", "run"]),
    ("minikube", &["ssh"]),
    ("mix", &["eval", "run"]),
    ("mvn", &["antrun:run", "exec:exec", "exec:java"]),
    ("nix", &["develop", "eval", "run", "shell"]),
    (
        "npm",
        &["config", "create", "exec", "explore", "init", "set", "x"],
    ),
    ("pipx", &["run"]),
    ("pnpm", &["create", "dlx", "exec"]),
    ("podman", &["build", "compose", "container", "exec", "run"]),
    ("poetry", &["run", "shell"]),
    ("rails", &["console", "dbconsole", "runner"]),
    ("rustup", &["run"]),
    ("svn", &["patch"]),
    ("swift", &["repl", "run"]),
    ("uv", &["run", "tool"]),
    ("yarn", &["create", "dlx", "exec", "node"]),
    ("zig", &["build", "run"]),
];

/// Long options, in any program, that name a program to run, a settings file that may name one, or
/// a file to write.
#[rustfmt::skip]
const RUNNING_OPTIONS: &[&str] = &[
    "--agent-program", "--checkpoint-action", "--command", "--compress-program", "--config",
    "--config-env", "--config-file", "--config-option", "--diff-cmd", "--dirmngr-program",
    "--editor-cmd", "--eval", "--exec", "--exec-batch", "--exec-path", "--execute", "--ext-diff", "--extcmd",
    "--filter", "--gpg-program", "--hostname-bin", "--info-script", "--justfile", "--kubeconfig", "--lua-filter",
    "--makefile", "--new-volume-script", "--node-options", "--open-files-in-pager", "--options",
    "--output", "--pager", "--pdf-engine", "--photo-viewer", "--pinentry-program", "--plugin", "--pre",
    "--preview", "--rakefile", "--receive-pack", "--rsh", "--rsh-command", "--script-shell", "--shell",
    "--strip-program", "--template", "--textconv", "--to-command", "--toolexec", "--upload-pack",
    "--use-askpass", "--use-compress-program", "--use-embedded-filename", "--vettool",
];

/// Short options with the same effect, by program and, if it has one, subcommand.
const RUNNING_LETTERS: &[(&str, &str, &str)] = &[
    ("apt", "", "co"),
    ("apt-get", "", "co"),
    ("curl", "", "KoO"),
    ("fd", "", "xX"),
    ("fdfind", "", "xX"),
    ("git", "clone", "cu"),
    ("git", "grep", "O"),
    ("git", "rebase", "ix"),
    ("gmake", "", "CEIf"),
    ("just", "", "cdf"),
    ("make", "", "CEIf"),
    ("sort", "", "o"),
    ("ssh-add", "", "s"),
    ("ssh-keygen", "", "D"),
    ("wget", "", "eioO"),
];

/// Options with the same effect that have one dash and several letters.
const RUNNING_WORDS: &[(&str, &[&str])] = &[
    ("bun", &["-e", "-p"]),
    ("clang-tidy", &["-load", "--load"]),
    ("cmake", &["-E", "-P"]),
    ("ghc", &["-e", "-F", "-pgm"]),
    ("go", &["-exec", "-toolexec", "-vettool", "-overlay"]),
    (
        "gradle",
        &["-I", "--init-script", "--include-build", "-b", "-c", "-p"],
    ),
    ("helm", &["--post-renderer"]),
    ("jarsigner", &["-J"]),
    ("keytool", &["-J", "-provider"]),
    ("mvn", &["-f", "-s", "-gs", "-t", "--file", "--settings"]),
    ("mypy", &["--python-executable"]),
    ("pandoc", &["-F", "-L"]),
    ("pipx", &["--python"]),
    ("pylint", &["--init-hook", "--load-plugins", "--rcfile"]),
    ("rake", &["-e", "-E", "-f", "-I", "-p", "-r", "-R"]),
    ("terraform", &["-chdir", "-plugin-dir", "-out"]),
    ("tofu", &["-chdir", "-plugin-dir", "-out"]),
    ("uv", &["--python", "--directory", "--project"]),
    ("virtualenv", &["--python", "-p"]),
];

/// Says whether a rule for this command would allow anything at all.
pub(crate) fn runs_anything(argv: &[String]) -> bool {
    let Some((program, arguments)) = argv.split_first() else {
        return true;
    };
    let name = program.rsplit('/').next().unwrap_or(program);
    let name = name.to_ascii_lowercase();
    is_runner(&name)
        || runs_by_options(&name, arguments)
        || (name == "git" && changes_git(arguments))
        // A variable given to make replaces the one in its file, and this includes SHELL.
        || (matches!(name.as_str(), "make" | "gmake" | "just")
            && arguments.iter().any(|argument| argument.contains('=')))
}

/// Says whether a program exists to run others, or takes programs as arguments.
pub(crate) fn is_runner(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    // The name may say how the program was built: vim.basic, bash.exe.
    let built = BUILT.iter().find_map(|end| name.strip_suffix(end));
    let name = built.unwrap_or(&name);
    // The name may have a version: python3.12, ruby3.1, lua5.4.
    let family = name.trim_end_matches(|c: char| c.is_ascii_digit() || ".-".contains(c));
    let has_subcommands = || RUNNING_SUBCOMMANDS.iter().any(|(own, _)| *own == name);
    RUNNING_FAMILIES.iter().any(|start| name.starts_with(start))
        || [name, family]
            .iter()
            .any(|own| RUNNERS.contains(own) || (!has_subcommands() && runs::is_for_running(own)))
}

/// Says whether options or a subcommand make a program run something.
pub(crate) fn runs_by_options(name: &str, arguments: &[String]) -> bool {
    has_running_subcommand(name, arguments)
        || has_running_option(name, arguments)
        || (compiler::is_compiler(name)
            && arguments.iter().any(|argument| compiler::runs(argument)))
}

fn has_running_subcommand(program: &str, arguments: &[String]) -> bool {
    let Some((_, subcommands)) = RUNNING_SUBCOMMANDS
        .iter()
        .find(|(name, _)| *name == program)
    else {
        return false;
    };
    // The first two words that are no options are checked, because the first may be the value of an
    // option.
    arguments
        .iter()
        .filter(|argument| !argument.starts_with('-'))
        .take(2)
        .any(|argument| subcommands.contains(&argument.as_str()))
}

fn has_running_option(program: &str, arguments: &[String]) -> bool {
    let letters = RUNNING_LETTERS.iter().find(|(name, subcommand, _)| {
        *name == program
            && (subcommand.is_empty() || arguments.first().is_some_and(|first| first == subcommand))
    });
    let letters = letters.map_or("", |(_, _, letters)| letters);
    let words = RUNNING_WORDS
        .iter()
        .find(|(name, _)| *name == program)
        .map_or::<&[&str], _>(&[], |(_, words)| words);
    arguments.iter().any(|argument| {
        if let Some(long) = argument.strip_prefix("--") {
            let name = long.split('=').next().unwrap_or(long);
            // Programs accept the beginning of an option for the whole option.
            let is_listed = |option: &&str| option.trim_start_matches('-').starts_with(name);
            return name.len() >= 2
                && (RUNNING_OPTIONS.iter().any(is_listed)
                    || words
                        .iter()
                        .filter(|word| word.starts_with("--"))
                        .any(is_listed));
        }
        let Some(short) = argument.strip_prefix('-') else {
            return false;
        };
        short.contains(|letter| letters.contains(letter))
            || words.iter().any(|word| argument.starts_with(word))
    })
}

/// Whether options before git's subcommand change what git runs. Only the options listed here do
/// not.
fn changes_git(arguments: &[String]) -> bool {
    let harmless = [
        "--no-pager",
        "-P",
        "--no-optional-locks",
        "--version",
        "--help",
    ];
    arguments
        .iter()
        .take_while(|argument| argument.starts_with('-'))
        .any(|argument| !harmless.contains(&argument.as_str()))
}
