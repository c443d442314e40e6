use super::*;

/// Writes what a text runs, with `?` before a possible command and `…` if anything may run.
fn runs(text: &str) -> String {
    let runs = Runs::of(text);
    let word = |word: &Word| match word.text() {
        Some(text) => text.to_owned(),
        None => format!("{}*", word.prefix()),
    };
    let mut all: Vec<String> = runs
        .programs
        .iter()
        .map(|run| {
            let words: Vec<String> = run.words.iter().map(word).collect();
            let mark = match run.certainty {
                Certainty::Sure => "",
                Certainty::Possible => "?",
            };
            format!("{mark}{}", words.join(" "))
        })
        .collect();
    if runs.anything {
        all.push("…".to_owned());
    }
    all.join(" ; ")
}

#[test]
fn commands_inside_wrappers_are_found() {
    let table = [
        ("nice -n 5 rm x", "rm x"),
        ("nice -5 rm x", "rm x"),
        ("timeout -k 1 5 rm x", "rm x"),
        ("env -i A=b -u C rm x", "rm x"),
        ("env -S 'rm -r' x", "rm -r x"),
        ("sudo -u me A=b rm x", "rm x"),
        ("command rm x", "rm x"),
        ("exec -a y rm x", "rm x"),
        ("nohup setsid stdbuf -o0 ionice -c3 rm x", "rm x"),
        ("time -p rm x", "rm x"),
        ("xargs -0 -n 1 rm x", "rm x *"),
        ("xargs -I{} rm {}", "rm *"),
        ("busybox rm x", "rm x"),
        ("chroot / rm x", "rm x"),
        ("flock f rm x", "rm x"),
        ("flock f -c 'rm x'", "rm x"),
        ("watch -n 1 rm x", "rm x"),
        ("find . -name a -exec rm {} +", "rm ./*"),
        ("find . -execdir rm -r {} \\;", "rm -r ./*"),
        ("sh -c 'rm x'", "rm x"),
        ("bash -eux -o pipefail -c 'ls; rm x' _ y", "rm x"),
        ("bash <<< 'rm x'", "rm x"),
        ("bash -s <<E\nrm x\nE", "rm x"),
        ("eval rm x", "rm x"),
        ("ssh -p 22 host rm x", "rm x"),
        ("su me -c 'rm x'", "rm x"),
        ("script -qc 'rm x' /dev/null", "rm x"),
        ("trap 'rm x' EXIT", "?rm x"),
        ("alias a='rm x'", "?rm x"),
        ("git -c alias.x='!rm y' x", "?rm y"),
        ("make SHELL='rm x'", "?rm x"),
        ("EDITOR='rm x' git commit", "?rm x"),
        ("frobnicate 'rm x'", "?rm x"),
    ];
    let mut wrong = Vec::new();
    for (text, expected) in table {
        let all = runs(text);
        if !format!(" ; {all} ;").contains(&format!(" ; {expected} ;")) || all.contains('…') {
            wrong.push(format!("{text}: {all}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_text_that_may_run_anything_sets_anything() {
    let mut wrong = Vec::new();
    for text in [
        "echo x | sh",
        "sh",
        "bash -c \"$x\"",
        "eval \"$x\"",
        "source x",
        ". ./x",
        "$x",
        "\"$x\" y",
        "/bin/$x",
        "python3 -c x",
        "perl -ne x y",
        "node -e x",
        "python3 - <<E\nx\nE",
        "ruby",
        "bash <(x)",
        "nice $x rm",
        "bash --rcfile x",
        "awk \"$x\"",
        "sed 1e x",
        "echo x > s; sh s",
        "cp x y; ./y",
        "hash -p x y",
        "printf -v 'a[$(rm x)]' y",
        "x='a[$(rm y)]'; echo $((x))",
        "[[ -v 'a[$(x)]' ]]",
        "xargs sh -c",
        "find $x",
        "at now",
        "GIT_SSH_COMMAND=$x git fetch",
        "git rebase -x \"$x\"",
    ] {
        if !Runs::of(text).anything {
            wrong.push(text);
        }
    }
    for text in [
        "ls $x",
        "cargo test",
        "python3 x.py $y",
        "bash x.sh",
        "./x.sh \"$y\"",
        "$HOME/bin/x y",
        "~/x",
        "git log $x",
        "make -j$(nproc)",
        "for i in 1 2; do echo $((i+1)); done",
        "awk '{print $1}' x",
        "command -v x",
        "sudo -v",
        "python3 -m pytest",
        "node --version",
        "x=$(cat y) z",
        "cat x > y; ./z",
        "git commit -m \"$x\"",
        "printf '%s' \"$x\"",
        "read x < y",
        "PATH=$HOME/bin:$PATH x",
    ] {
        if Runs::of(text).anything {
            wrong.push(text);
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
