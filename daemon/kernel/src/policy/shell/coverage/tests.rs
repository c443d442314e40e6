use super::*;

/// Splits at blanks and removes quotes.
fn split(text: &str) -> Vec<String> {
    crate::policy::shell::reader::Script::read(text)
        .commands
        .iter()
        .flat_map(|command| &command.words)
        .map(|word| word.text().unwrap_or("?").to_owned())
        .collect()
}

fn of_text(text: &str) -> Coverage {
    let argv = split(text);
    of(&argv, 0)
}

#[test]
fn every_line_of_the_tables_is_well_formed() {
    for table in TABLES.into_iter().chain([LOOKING, TOLD]) {
        let all = table
            .lines()
            .filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
        assert_eq!(all.count(), lines(table).count(), "a line without a colon");
        for line in lines(table) {
            for token in line.listed.split_whitespace().filter(|token| *token != "|") {
                assert!(token.starts_with('-'), "{}: {token}", line.names);
                let is_letters = !token.starts_with("--") && !has(&line, "words");
                let takes_value = token.ends_with(['=', '?']);
                assert!(
                    !is_letters || !takes_value || token.len() == 3,
                    "{}: {token} has a value and more than one letter",
                    line.names
                );
            }
        }
    }
}

#[test]
fn harmless_calls_are_told_from_others() {
    let mut wrong = Vec::new();
    let mut check = |text: &str, expected: Coverage| {
        let found = of_text(text);
        if found != expected {
            wrong.push(format!("{text}: {found:?}"));
        }
    };
    for text in [
        "git status -sb",
        "git log --oneline -5 -p",
        "git -P log -n 3",
        "git diff --stat HEAD~1",
        "git commit -am 'A change' --no-verify",
        "git push -u origin main",
        "git stash list",
        "git stash",
        "git remote -v",
        "git remote add x https://a.b/c",
        "git config --get user.name",
        "git rebase main",
        "git branch --show-current",
        "cargo test -p x --lib -- --nocapture",
        "cargo +nightly build",
        "cargo clippy --all-targets -- -D warnings",
        "npm run build -- --watch",
        "npm ci",
        "make -j4 test",
        "go test ./... -run X",
        "go mod tidy",
        "find . -name '*.rs' -mtime -7",
        "sed -n 1,5p x",
        "awk '{print $1}' x",
        "tar tzf x.tar.gz",
        "sort -t, -k2 x",
        "uniq -c x",
        "rg -n --hidden x",
        "fd -e rs",
        "jq -r .x y",
        "tree -L 2",
        "curl -sL https://x.y",
        "curl -X POST -H 'A: b' -d x=y https://x.y",
        "wget -q https://x.y",
        "ip addr show",
        "systemctl --user status nginx",
        "systemctl list-units --failed",
        "journalctl -u nginx -n 50 --no-pager",
        "ip a",
        "dpkg -l",
    ] {
        check(text, Coverage::Harmless);
    }
    for text in [
        "git -c a=b status",
        "git -P grep -Ox y",
        "git --exec-path=x status",
        "git rebase -x y main",
        "git bisect run x",
        "git foo",
        "git diff --output=x",
        "git log --outpu=x",
        "git submodule foreach x",
        "git config alias.x y",
        "git clone ext::x",
        "git clone -c a=b x",
        "git merge -s x y",
        "cargo --config x build",
        "cargo rustc",
        "npm exec x",
        "npm --script-shell=x test",
        "make A=b",
        "make -f x",
        "go test -exec x",
        "go run x",
        "find . -exec rm x",
        "find . -delete",
        "sed 1e x",
        "awk 'BEGIN{system(x)}'",
        "tar -I x -cf y z",
        "tar xf host:a",
        "sort --compress-program=x y",
        "uniq a b",
        "rg --pre x y",
        "fd -x y",
        "tree -o x",
        "curl -d @x y",
        "curl -w '%output{x}' y",
        "wget --use-askpass=x y",
        "ip netns exec x y",
        "systemctl mask nginx",
        "systemctl stop nginx",
        "systemctl edit nginx",
        "journalctl --vacuum-time=1s",
        "journalctl --rotate",
        "journalctl --cursor-file=f",
        "dpkg --pre-invoke=x -l",
        "cargo clippy -- -Clinker=x",
    ] {
        check(text, Coverage::Unknown);
    }
    for text in [
        "git push -f",
        "git push origin +main",
        "git push origin :main",
        "git reset --hard",
        "git clean -fd",
        "git branch -D x",
        "git -C x status",
        "curl -o x y",
        "sed -i s/a/b/ x",
        "cargo clippy --fix",
        "awk '{print > \"x\"}' y",
        "npm install -g x",
        "tar -czf x.tar.gz dir",
        "tar xf x",
        "git apply x",
        "git am x",
        "patch -p1 -i x",
        "unzip x",
        "pax x",
        "curl --unix-socket x y",
    ] {
        check(text, Coverage::Notable);
    }
    check("frobnicate x", Coverage::Unlisted);
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn words_that_a_rule_names_are_allowed() {
    let argv = |text: &str| split(text);
    assert_eq!(of(&argv("git push --force origin"), 3), Coverage::Harmless);
    assert_eq!(of(&argv("git push --force --mirror"), 3), Coverage::Notable);
    assert_eq!(of(&argv("git bisect run x"), 2), Coverage::Unknown);
}
