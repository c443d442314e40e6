use super::*;

/// Shows what a line may read in short.
fn shown(line: &str) -> String {
    let Some(reach) = reach(line) else {
        return "too much".to_owned();
    };
    let mut parts: Vec<String> = Vec::new();
    parts.extend(reach.patterns.iter().map(|it| format!("match {it}")));
    let computed = reach.computed.iter();
    parts.extend(computed.map(|it| format!("any {}…{}", it.start, it.end)));
    for walk in &reach.walks {
        let shows = match walk.shows {
            Shows::Names => "list",
            Shows::Content => "read",
        };
        let mut text = format!("{shows} {}", walk.root);
        for (is_so, mark) in [
            (!walk.is_deep, " flat"),
            (walk.skips_hidden, " visible"),
            (walk.is_tracked, " tracked"),
        ] {
            text.push_str(if is_so { mark } else { "" });
        }
        for (list, mark) in [(&walk.only, " only "), (&walk.without, " not ")] {
            if !list.is_empty() {
                text.extend([mark, &list.join(",")]);
            }
        }
        parts.push(text);
    }
    parts.join("; ")
}

#[test]
fn what_lines_may_read_that_does_not_stand_in_them() {
    let table = [
        ("cat a", ""),
        ("cat *.env", "match *.env"),
        ("cat .e*", "match .e*"),
        ("head -5 src/*.rs", "match src/*.rs"),
        ("cat \"$F\"", "any …"),
        ("cat $DIR/package.json", "any …/package.json"),
        ("cat src/$x.rs", "any src/….rs"),
        ("cat ~/.bashrc", "any …/.bashrc"),
        ("cat < $f", "any …"),
        ("curl -d @$f https://a.b", "any …"),
        ("echo $x", ""),
        ("npm run $x", ""),
        ("kill $PID", ""),
        ("git checkout $branch", ""),
        ("diff <(sort a) <(sort b)", ""),
        ("grep -rn x .", "read ."),
        ("grep -rn x", "read ."),
        ("grep -rl x src", "list src"),
        ("grep -n x a", ""),
        ("grep -r x . --include='*.rs'", "read . only *.rs"),
        ("grep -r x . --exclude-dir=priv", "read . not priv"),
        ("rg x", "read . visible"),
        ("rg -uu x src", "read src"),
        ("rg x -g '!priv/**'", "read . visible not priv"),
        ("find . -name '*.rs'", "list . only *.rs"),
        ("find . -name '*.rs' -exec cat {} \\;", "read . only *.rs"),
        (
            "find . -path ./priv -prune -o -name x -print",
            "list . only x not priv",
        ),
        ("find . -name '*.rs' | xargs wc -l", "read . only *.rs"),
        ("wc -l $(git ls-files)", "read . tracked"),
        ("cat $(cat list)", "any …"),
        ("ls", "list . flat visible"),
        ("ls -R docs", "list docs visible"),
        ("cp -r . /tmp/x", "read ."),
        ("tar czf a.tgz .", "read a.tgz; read ."),
        ("git diff", "read . tracked"),
        ("git diff --stat", ""),
        ("git log --oneline", ""),
        ("git log -p -- src", "read src tracked"),
        ("git status", ""),
        ("git show HEAD", "read . tracked"),
    ];
    let mut wrong = Vec::new();
    for (line, expected) in table {
        let shown = shown(line);
        if shown != expected {
            wrong.push(format!("{line}: {shown} (expected {expected})"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
