//! Deny rules for writing, and commands that write to what may not be written.

use loopd_proto::permission::ManagedPermissions;

use super::*;
use crate::policy::shell::analysis::tests::shell_request;

fn rules() -> Permissions {
    Permissions {
        approved: vec![rule("shell", None)],
        denied: vec![rule("write", Some("/project/conf/key"))],
        ..Permissions::default()
    }
}

fn everything() -> Permissions {
    Permissions {
        approve_all: true,
        ..rules()
    }
}

#[test]
fn a_command_that_writes_to_it_is_denied() {
    let managed = Permissions {
        denied: Vec::new(),
        managed: Some(Box::new(ManagedPermissions {
            deny: rules().denied,
            ..ManagedPermissions::default()
        })),
        ..everything()
    };
    let denied = Verdict::Deny(rules().denied);
    let mut wrong = Vec::new();
    for line in [
        "echo x > conf/key",
        "echo x >> conf/key",
        "echo x >| conf/key",
        "echo x &> conf/key",
        "echo x 2>conf/key",
        "echo x <>conf/key",
        "echo x > ./conf/../conf/key",
        "echo x > /project/conf/key",
        "echo x > 'conf'/key",
        "echo x > co''nf//key",
        "echo x > c\\onf/key",
        "> conf/key",
        ": > conf/key",
        "echo x | tee conf/key",
        "echo x | tee -a a conf/key",
        "rm conf/key",
        "rm -rf conf",
        "rm -rf .",
        "rm -rf /project",
        "rm -- conf/key",
        "unlink conf/key",
        "truncate -s 0 conf/key",
        "touch conf/key",
        "chmod 600 conf/key",
        "mv a conf/key",
        "mv conf/key a",
        "mv conf a",
        "cp a conf/key",
        "cp -t conf/key a",
        "cp --target-directory=conf/key a",
        "ln -sf a conf/key",
        "install a conf/key",
        "dd if=a of=conf/key",
        "sed -i s/a/b/ conf/key",
        "sed --in-place=.bak s/a/b/ conf/key",
        "sort -o conf/key a",
        "sort --output=conf/key a",
        "curl -oconf/key https://a.b",
        "curl -o conf/key https://a.b",
        "gcc a.c -o conf/key",
        "git rm conf/key",
        "git mv conf/key a",
        "git restore conf/key",
        "cd conf && echo x > key",
        "cd conf; rm key",
        "cd sub && rm ../conf/key",
        "cd / && rm project/conf/key",
        "cd .. && cd project && rm conf/key",
        "npm test && rm conf/key",
        "sh -c 'echo x > conf/key'",
        "bash -c 'rm conf/key'",
        "env nice rm conf/key",
        "sudo rm conf/key",
        "xargs rm conf/key",
        "find . -exec rm conf/key \\;",
        "echo $(rm conf/key)",
        "if true; then rm conf/key; fi",
        "for i in 1 2; do echo $i > conf/key; done",
        "f() { rm conf/key; }; f",
        "{ echo x; } > conf/key",
        "(cd conf; rm key)",
        "rm {conf/key,a}",
        "rm conf/{key,a}",
        "rm conf/key{enter}",
        "exec 3> conf/key",
    ] {
        for permissions in [&rules(), &everything(), &managed] {
            let verdict = judge(permissions, "/project", &shell_request(line));
            if verdict != denied {
                wrong.push((line, verdict));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_command_whose_writes_are_not_known_is_asked_about() {
    let mut wrong = Vec::new();
    for line in [
        "echo x > \"$f\"",
        "echo x > $f",
        "echo x > conf/$f",
        "echo x > $(name)",
        "rm \"$f\"",
        "rm conf/*",
        "rm conf/k*",
        "rm -rf con*",
        "rm -rf *",
        "rm c*/key",
        "python3 run.py conf/key",
        "python3 -c \"open('conf/key', 'w')\"",
        "frobnicate conf/key",
        "frobnicate --file=conf/key",
        "cd conf && frobnicate key",
        "git checkout -- conf/key",
        "find conf/key -delete",
        "tee $f",
        "sort -o \"$f\" a",
        "sort -o conf/* a",
        "sed -i s/a/b/ conf/*",
        "perl -pi -e 1 \"$f\"",
        "curl -o conf/$x https://a.b",
        "curl -o$f https://a.b",
        "wget -O \"$f\" https://a.b",
        "openssl enc -in a -out $f",
        "dd if=a of=$f",
        "xxd -r a \"$f\"",
        "split a \"$p\"",
        "uniq a $f",
        "gcc a.c -o$f",
        "unzip -d \"$d\" a.zip",
        "x=../conf; echo y > out/$x/key",
    ] {
        for permissions in [&rules(), &everything()] {
            let verdict = judge(permissions, "/project", &shell_request(line));
            if verdict != Verdict::Ask {
                wrong.push((line, verdict));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_command_that_may_do_anything_is_asked_about_also_if_everything_is_approved() {
    for line in ["eval \"$x\"", "python3 -c \"$x\""] {
        let request = shell_request(line);
        let verdict = judge(&rules(), "/project", &request);
        assert_eq!(verdict, Verdict::Ask, "{line}");
        let verdict = judge(&everything(), "/project", &request);
        assert_eq!(verdict, Verdict::Ask, "{line}");
    }
}

#[test]
fn a_command_that_does_not_write_to_it_is_judged_as_before() {
    let mut wrong = Vec::new();
    for line in [
        "cat conf/key",
        "cat < conf/key > out",
        "grep -rn x conf",
        "cp conf/key out",
        "cp -r conf ../copy",
        "diff a conf/key > out",
        "echo conf/key >> .gitignore",
        "git add conf/key",
        "git commit -m 'Change conf/key'",
        "git diff -- conf/key",
        "rm conf/keys",
        "rm *.o",
        "rm -rf target/*",
        "rm -f out/$x",
        "echo x > out/$x.txt",
        "mkdir -p build && cd build && cmake ..",
        "touch a/conf/key",
        "npm test",
        "cargo build 2>&1 | tail -5",
        "cd conf && ls",
        "ls conf > out",
        "mv a .",
    ] {
        for permissions in [&rules(), &everything()] {
            let verdict = judge(permissions, "/project", &shell_request(line));
            if verdict != Verdict::Allow {
                wrong.push((line, verdict));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_link_to_what_may_not_be_written_is_denied() {
    let link = |line: &str| {
        let mut request = shell_request(line);
        if let PermissionRequest::Shell { resolved_paths, .. } = &mut request {
            let real = "/project/conf/key".to_owned();
            resolved_paths.insert("pub/link".to_owned(), real);
        }
        judge(&everything(), "/project", &request)
    };
    assert_eq!(link("echo x > pub/link"), Verdict::Deny(rules().denied));
    assert_eq!(link("cat pub/link > out"), Verdict::Allow);
}

#[test]
fn a_line_with_too_many_names_is_asked_about() {
    let many: Vec<String> = (0..3_000).map(|number| format!("x{number}")).collect();
    let many = format!("frobnicate {}", many.join(" "));
    let verdict = judge(&everything(), "/project", &shell_request(&many));
    assert_eq!(verdict, Verdict::Ask);
}

#[test]
fn everyday_commands_are_asked_about_only_if_it_is_not_known_what_they_write() {
    let all = include_str!("../shell/analysis/tests/data/everyday.txt").lines();
    let all = all.filter(|line| !line.is_empty() && !line.starts_with('#'));
    let all = all.map(|line| line.replace('⏎', "\n"));
    let asked: Vec<String> = all
        .filter(|line| judge(&everything(), "/project", &shell_request(line)) != Verdict::Allow)
        .collect();
    assert_eq!(
        asked,
        [
            "rg -l \"import React\" | xargs sed -i 's/React/Preact/'",
            "find . -name '*.orig' -exec rm {} \\;",
            "tar -xzf release.tar.gz",
            "git apply fix.patch",
            "make install PREFIX=$HOME/.local",
            "echo \"export FOO=1\" >> ~/.bashrc",
            "echo 'console.log(1)' > a.js && node a.js",
            "tmux ls",
            "python3 -c \"import sys; print(sys.version)\"",
            "python3 -c 'import json; print(json.load(open(\"a.json\"))[\"x\"])'",
            "node -e \"console.log(require('./package.json').version)\"",
            "node -p process.version",
            "perl -pi -e 's/foo/bar/' file.txt",
            "perl -ne 'print if /x/' file.txt",
            "ruby -e 'puts 1'",
        ]
    );
}
