//! Ways to a denied path that are not its name: another directory, a link, a folder above it, a
//! process's own folder. And rules that deny writing or reading anything at all.

use super::*;
use crate::policy::shell::analysis::tests::shell_request;

const PRIV: &str = "/project/a/b/priv";

fn denying(kind: &str, argument: Option<&str>) -> Permissions {
    Permissions {
        approve_all: true,
        denied: vec![rule(kind, argument)],
        ..Permissions::default()
    }
}

/// Compares what becomes of lines with what is expected.
fn check(permissions: &Permissions, lines: &[&str], expected: &Verdict) {
    let judged = |line: &&str| judge(permissions, "/project", &shell_request(line));
    let wrong = lines.iter().map(|line| (line, judged(line)));
    let wrong: Vec<_> = wrong.filter(|(_, verdict)| verdict != expected).collect();
    assert!(wrong.is_empty(), "expected {expected:?}: {wrong:#?}");
}

/// A request in a shell that earlier commands led to other directories.
fn moved(line: &str, directories: Option<&[&str]>) -> PermissionRequest {
    let mut request = shell_request(line);
    let directories = directories.map(|all| all.iter().map(|it| (*it).to_owned()).collect());
    if let (PermissionRequest::Shell { resolved_paths, .. }, Some(directories)) =
        (&mut request, &directories)
    {
        let directories: &Vec<String> = directories;
        let same = directories.iter().map(|it| (it.clone(), it.clone()));
        resolved_paths.extend(same);
    }
    request.in_directories(directories)
}

#[test]
fn a_line_is_compared_with_all_directories_that_its_shell_may_be_in() {
    for kind in ["write", "read"] {
        let permissions = denying(kind, Some(PRIV));
        let denied = Verdict::Deny(permissions.denied.clone());
        for (directory, line) in [
            ("/project/a/b", "rm priv/f"),
            ("/project/a/b/priv", "rm f"),
            ("/project/a/b/priv", "echo x > f"),
            ("/project/a", "cd b && rm priv/f"),
            ("/project/a/b/priv/deep", "rm ../f"),
        ] {
            let request = moved(line, Some(&["/project", directory]));
            let verdict = judge(&permissions, "/project", &request);
            assert_eq!(verdict, denied, "{kind} {directory} {line}");
        }
        let request = moved("rm other/f", Some(&["/project", "/project/a/b"]));
        let verdict = judge(&permissions, "/project", &request);
        assert_eq!(verdict, Verdict::Allow);
    }
    let permissions = denying("read", Some(PRIV));
    let request = moved("cat priv/f", Some(&["/project", "/project/a/b"]));
    let verdict = judge(&permissions, "/project", &request);
    assert_eq!(verdict, Verdict::Deny(permissions.denied.clone()));
}

#[test]
fn a_directory_that_was_a_link_counts_by_where_it_leads() {
    for kind in ["write", "read"] {
        let permissions = denying(kind, Some(PRIV));
        let mut request = moved("rm f", Some(&["/project", "/project/lp"]));
        if let PermissionRequest::Shell { resolved_paths, .. } = &mut request {
            resolved_paths.insert("/project/lp".to_owned(), PRIV.to_owned());
        }
        let verdict = judge(&permissions, "/project", &request);
        assert_eq!(verdict, Verdict::Deny(permissions.denied.clone()), "{kind}");
        // A directory that was not looked up may be a link.
        let request = shell_request("rm f").in_directories(Some(vec!["/project/lp".to_owned()]));
        let verdict = judge(&permissions, "/project", &request);
        assert_eq!(verdict, Verdict::Ask, "{kind}");
    }
}

#[test]
fn in_a_directory_that_is_not_known_every_relative_name_is_asked_about() {
    for line in [
        "rm f",
        "echo x > f",
        "frobnicate f",
        "cp a b",
        "tar xf a.tgz",
    ] {
        for kind in ["write", "read"] {
            let permissions = denying(kind, Some(PRIV));
            let verdict = judge(&permissions, "/project", &moved(line, None));
            assert_eq!(verdict, Verdict::Ask, "{kind} {line}");
        }
    }
    let read = denying("read", Some(PRIV));
    let verdict = judge(&read, "/project", &moved("cat f", None));
    assert_eq!(verdict, Verdict::Ask);
    for line in [
        "ls",
        "pwd",
        "rm /tmp/f",
        "git commit -m x",
        "make",
        "y{enter}",
    ] {
        for kind in ["write", "read"] {
            let permissions = denying(kind, Some(PRIV));
            let verdict = judge(&permissions, "/project", &moved(line, None));
            assert_eq!(verdict, Verdict::Allow, "{kind} {line}");
        }
    }
}

#[test]
fn a_line_that_goes_where_nobody_knows_is_asked_about() {
    let lines = [
        "cd \"$d\" && rm key",
        "cd - && rm key",
        "cd && rm key",
        "cd ~ && rm key",
        "CDPATH=a/b; cd priv; rm f",
        "CDPATH=a/b cd priv && rm f",
        "export CDPATH=a/b; cd priv; echo x > f",
    ];
    for kind in ["write", "read"] {
        check(&denying(kind, Some(PRIV)), &lines, &Verdict::Ask);
    }
}

#[test]
fn who_may_not_read_may_not_write_by_a_command_either() {
    let permissions = denying("read", Some(PRIV));
    let denied = Verdict::Deny(permissions.denied.clone());
    let lines = [
        "echo x > a/b/priv/f",
        "echo x >> a/b/priv/f",
        "echo x | tee a/b/priv/f",
        "cd a/b && echo x > priv/f",
        "sh -c 'echo x > a/b/priv/f'",
        "{ echo x; } > a/b/priv/f",
        "> a/b/priv/f",
        "mv a q",
        "mv a/b q; cat q/priv/f",
        "rm -rf a",
        "ln a/b/priv/f hh",
        "ln -s a/b/priv q; echo x > q/f",
    ];
    check(&permissions, &lines, &denied);
    let lines = [
        "sed -n 'w a/b/priv/f' x",
        "python3 -c \"open('a/b/priv/f', 'w')\"",
        "echo x > \"$f\"",
        "echo x > a/b/$f",
    ];
    check(&permissions, &lines, &Verdict::Ask);
}

#[test]
fn writing_through_a_folder_above_or_a_link_is_denied_or_asked_about() {
    let permissions = denying("write", Some(PRIV));
    let denied = Verdict::Deny(permissions.denied.clone());
    let lines = [
        "git mv a z",
        "git rm -r a",
        "git -C a mv b z",
        "mv a/b q",
        "ln a/b/priv/f hh",
        "ln -s priv a/b/q",
        "ln -sf /project/a/b/priv q",
        "cp x/priv a/b",
        "cp -t a/b x/priv",
        "mv x/priv a/b/",
        "env -C a/b rm priv/f",
    ];
    check(&permissions, &lines, &denied);
    let lines = [
        "cp -r src/a .",
        "cp -r src/. .",
        "cp -aT src .",
        "cp -R src/a/. a",
        "rsync -a src/ .",
        "rsync -a src/a .",
        "tar xf x.tar",
        "tar -xzf x.tgz -C a",
        "tar --extract -f x.tar",
        "unzip x.zip",
        "unzip x.zip -d a",
        "7z x x.7z",
        "patch -p1 < x",
        "git apply x.patch",
        "git restore a",
        "git restore .",
        "git checkout HEAD~1 -- .",
        "git checkout -- a",
        "git reset --hard",
        "git checkout -f HEAD",
        "git checkout-index -f -a",
        "git read-tree -u --reset HEAD",
        "find . -name f -delete",
        "find . -type f -delete",
        "find a -delete",
        "find -delete",
        "ln -s a q; echo x > q/b/priv/f",
        "ln -s . q",
    ];
    check(&permissions, &lines, &Verdict::Ask);
    let lines = [
        "cp -r src/x .",
        "cp -r a ../copy",
        "mv notes.txt docs",
        "tar czf x.tgz .",
        "tar tf x.tgz",
        "tar xf x.tar -C out",
        "unzip -l x.zip",
        "find . -name '*.rs'",
        "find out -delete",
        "git restore src",
        "git mv x y",
        "git reset --soft HEAD~1",
        "git checkout main",
        "ln -s ../lib lib",
        "ln x y",
    ];
    check(&permissions, &lines, &Verdict::Allow);
}

#[test]
fn a_folder_that_cd_names_counts_by_where_it_leads() {
    let permissions = denying("write", Some(PRIV));
    let denied = Verdict::Deny(permissions.denied.clone());
    for line in [
        "cd lp && rm f",
        "cd lp; echo x > f",
        "pushd lp; rm f",
        "cd -P lp && rm f",
    ] {
        let mut request = shell_request(line);
        let places = shell::analysis::places(line);
        assert!(places.iter().any(|it| it.path == "lp"), "{line} {places:?}");
        if let PermissionRequest::Shell { resolved_paths, .. } = &mut request {
            resolved_paths.insert("lp".to_owned(), PRIV.to_owned());
        }
        let verdict = judge(&permissions, "/project", &request);
        assert_eq!(verdict, denied, "{line}");
    }
}

#[test]
fn paths_through_a_process_are_asked_about() {
    let lines = [
        "rm /proc/self/cwd/a/b/priv/f",
        "echo x > /proc/self/cwd/a/b/priv/f",
        "cat /proc/self/cwd/a/b/priv/f",
        "cat /proc/1/root/project/a/b/priv/f",
        "cat /proc/$$/cwd/a/b/priv/f",
        "cat /proc/self/task/1/cwd/x",
        "cd /proc/self && cat cwd/a/b/priv/f",
        "cat /dev/fd/../cwd/a/b/priv/f",
        "cp x /dev/fd/../cwd/a",
        "cat /proc/thread-self/cwd/x",
    ];
    check(&denying("read", Some(PRIV)), &lines, &Verdict::Ask);
    let lines = [
        "rm /proc/self/cwd/a/b/priv/f",
        "echo x > /proc/self/cwd/a/b/priv/f",
        "cp x /dev/fd/../cwd/a",
        "cd /proc/self/cwd && rm a/b/c",
    ];
    check(&denying("write", Some(PRIV)), &lines, &Verdict::Ask);
    let lines = [
        "cat /proc/cpuinfo",
        "cat <(ls) /dev/fd/3",
        "echo x > /dev/stderr",
    ];
    check(&denying("read", Some(PRIV)), &lines, &Verdict::Allow);
}

#[test]
fn a_rule_against_all_writing_covers_commands() {
    let permissions = denying("write", None);
    let denied = Verdict::Deny(permissions.denied.clone());
    let lines = [
        "echo x > src/y",
        "echo x >> \"$f\"",
        "touch y",
        "sed -i s/a/b/ x",
        "rm -rf x",
        "cp a b",
        "mv a b",
        "mkdir -p x",
        "ls | tee out",
        "sh -c 'echo x > y'",
        "dd if=a of=b",
        "git rm x",
        "cat a > b",
    ];
    check(&permissions, &lines, &denied);
    let lines = [
        "npm test",
        "frobnicate",
        "make",
        "git commit -m x",
        "bash run.sh",
        "eval \"$x\"",
    ];
    check(&permissions, &lines, &Verdict::Ask);
    let lines = [
        "ls -la",
        "cat a | head -5",
        "grep -rn x src 2>/dev/null",
        "git status",
        "git log --oneline > /dev/null",
        "cd src && ls",
        "cd .. && ls",
        "echo hello",
        "ls 2>&1",
    ];
    check(&permissions, &lines, &Verdict::Allow);
}

#[test]
fn a_rule_against_all_reading_covers_commands() {
    let permissions = denying("read", None);
    let denied = Verdict::Deny(permissions.denied.clone());
    let lines = [
        "cat x",
        "head -5 x",
        "grep -n a x",
        "grep -rn a .",
        "wc -l < x",
        "while read l; do echo $l; done < x",
        "sed -n p x",
        "sh -c 'cat x'",
        "cat x > y",
    ];
    check(&permissions, &lines, &denied);
    let lines = [
        "frobnicate x",
        "python3 run.py",
        "cp a b",
        "eval \"$x\"",
        "cat \"$x\"",
    ];
    check(&permissions, &lines, &Verdict::Ask);
    let lines = ["echo hello", "pwd", "date +%F", "ls -la", "make", "true"];
    check(&permissions, &lines, &Verdict::Allow);
}
