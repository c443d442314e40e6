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
        if !walk.only.is_empty() {
            text.extend([" only ", &walk.only.join(",")]);
        }
        for left_out in &walk.without {
            let (what, pattern) = match left_out {
                LeftOut::File(pattern) => (" no file ", pattern),
                LeftOut::Folder(pattern) => (" no folder ", pattern),
                LeftOut::Any(pattern) => (" no ", pattern),
                LeftOut::Path(path) => (" not ./", path),
            };
            text.extend([what, pattern]);
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
        ("grep -rl x src", "read src"),
        ("grep -n x a", ""),
        ("grep -r -I x priv src", "read priv; read src"),
        ("grep -r -m 3 x priv src", "read priv; read src"),
        ("grep -rf list priv", "read list; read priv"),
        ("grep -r x $D", "any …; read /"),
        ("grep -r x . --include='*.rs'", "read . only *.rs"),
        ("grep -r x . --include='[k]ey'", "read ."),
        ("grep -r x . --exclude-dir=priv", "read . no folder priv"),
        ("grep -r x . --exclude=priv", "read . no file priv"),
        ("grep -r x . --exclude=$x", "read ."),
        (
            "grep -r x . --exclude=.env --include=.env",
            "read . only .env",
        ),
        ("rg x", "read . visible"),
        ("rg -uu x src", "read src"),
        ("rg --files", "list . visible"),
        ("rg x -g '!priv'", "read . visible no priv"),
        ("rg x -g '!priv' -g priv", "read . only priv"),
        ("rg x -g .env", "read . only .env"),
        ("rg x -g'!.env'", "read x only *; read . only *"),
        ("find . -name '*.rs'", "list . only *.rs"),
        ("find . -name '*.rs' -exec cat {} \\;", "read . only *.rs"),
        (
            "find . -path ./priv -prune -o -name x -print",
            "list . only x not ./priv",
        ),
        ("find . -name priv -prune -exec cat {} +", "read ."),
        ("find . -name x -o -exec cat {} +", "read ."),
        ("find . ! -name x -o -exec cat {} +", "read ."),
        ("find . ! -name .env -exec cat {} +", "read . no file .env"),
        ("find . ! \\( -name x \\) -exec cat {} +", "read ."),
        ("find . -iname A.ENV -exec cat {} +", "read ."),
        ("find $D -exec cat {} +", "any …; read /"),
        ("find . -name '*.rs' | xargs wc -l", "read . only *.rs"),
        ("wc -l $(git ls-files)", "read / tracked"),
        ("cat $(cat list)", "any …"),
        ("xargs -a list cat", "any …"),
        ("xargs -alist -n 1 head", "any …"),
        ("xargs --arg-file=list cat", "any …"),
        ("xargs --arg list cat", "any …"),
        ("find . -name '*.rs' | xargs -n 1 wc", "read . only *.rs"),
        ("wc --files0-from=list", "any …"),
        ("sort --files0-from list", "any …"),
        ("rg --files", "list . visible"),
        ("gcc -E $f", "any …"),
        ("gcc -c $f", ""),
        ("git --work-tree=/app --git-dir=/tmp/g add .", "read /"),
        ("git --git-dir /tmp/g --work-tree /app show HEAD", "read /"),
        ("git add .", ""),
        ("ls", "list . flat visible"),
        ("ls -R docs", "list docs visible"),
        ("cp -r . /tmp/x", "read ."),
        (
            "cp -r -t /tmp/x src priv",
            "read /tmp/x; read src; read priv",
        ),
        ("tar czf a.tgz .", "read czf; read a.tgz; read ."),
        ("tar cf a.tar -C priv .", "read /"),
        ("tar xf a.tar", ""),
        ("git diff", "read / tracked"),
        ("git diff --stat", ""),
        ("git diff --no-index /dev/null .", "read /"),
        ("git log --oneline", ""),
        ("git log -p -- src", "read src tracked"),
        ("git diff -- ':!*.lock'", "read / tracked no file *.lock"),
        ("git status", ""),
        ("git show HEAD", "read / tracked"),
        ("cat $(pwd)/secret.env", "any …/secret.env"),
        ("cat ~/../work/secret.env", "any …/secret.env"),
        ("cat sec{r..r}et.env", "any …et.env"),
        ("./show.sh sec{r..r}et.env", "any …et.env"),
        ("./show.sh $(date)", ""),
        ("shopt -s nocaseglob; cat SEC*", "match SEC*; any …"),
        ("shopt -s nullglob; cat a*", "match a*"),
        ("HISTFILE=$PWD/a.env; history -r", "any …/a.env"),
        ("git grep --no-index x -- '*.env'", "read /"),
        ("git add -f .", "read /"),
        ("git stash -a", "read /"),
        ("git stash", ""),
        ("git update-index --add --stdin", "any …"),
        (
            "git archive --add-file=\"$f\" HEAD",
            "any …; read / tracked",
        ),
        ("curl file:///tmp/sec%72et", "any …"),
        ("curl -w '%{http_code}' https://a.b", ""),
        ("curl -d '{\"a\":1,\"b\":2}' https://a.b", ""),
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
