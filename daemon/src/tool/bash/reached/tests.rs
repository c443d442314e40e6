use super::*;
use crate::tool::fixture::Fixture;
use loopd_kernel::policy::GuardedPaths;

/// A project with a file and a folder that may not be read.
fn project() -> (Fixture, ClosedPlaces) {
    let fixture = Fixture::new();
    for file in [".env", "a.env", "priv/key.txt", "src/main.rs", "fine.txt"] {
        fixture.write(file, "text");
    }
    std::os::unix::fs::symlink(fixture.path(""), fixture.path("src/link")).unwrap();
    std::os::unix::fs::symlink("a.env", fixture.path("alias.me")).unwrap();
    std::os::unix::fs::symlink("src/link", fixture.path("lnk")).unwrap();
    let closed = ClosedPlaces::of(&GuardedPaths {
        denied_reads: vec![
            fixture.text(".env"),
            fixture.text("a.env"),
            fixture.text("priv"),
            fixture.text("not/there"),
        ],
        ..GuardedPaths::default()
    });
    (fixture, closed)
}

/// Shows what a line may reach.
fn shown(line: &str, fixture: &Fixture, closed: &ClosedPlaces) -> String {
    let root = fixture.path("").canonicalize().unwrap();
    let found = reached(line, std::slice::from_ref(&root), closed);
    let short = |path: &String| {
        let below = Path::new(path).strip_prefix(fixture.path(""));
        below.unwrap().to_string_lossy().into_owned()
    };
    found.iter().map(short).collect::<Vec<_>>().join(" ")
}

#[test]
fn what_lines_reach_without_naming_it() {
    let (fixture, closed) = project();
    let table = [
        ("cat fine.txt", ""),
        ("cat *.env", "a.env"),
        ("cat .e*", ".env"),
        ("cat *", "a.env priv"),
        ("cat *.txt", ""),
        ("cat src/*", ""),
        ("cat p*/key.txt", "priv"),
        ("cat priv*/*", "priv"),
        ("shopt -s dotglob; cat *", ".env a.env priv"),
        ("cat \"$F\"", ".env a.env priv"),
        ("cat \"$D/package.json\"", ""),
        ("cat \"$D/key.txt\"", "priv"),
        ("cat src/$x", ""),
        ("cat ~/.bashrc", ""),
        ("grep -r x .", ".env a.env priv"),
        ("grep -r x src", ""),
        ("grep -r x . --include='*.rs'", ""),
        ("grep -r x . --exclude='*.env' --exclude-dir=priv", ""),
        ("rg x", "a.env priv"),
        ("rg x -g '*.rs'", ""),
        ("find . -name '*.txt'", "priv"),
        ("find . -name '*.rs' | xargs cat", ""),
        ("find . | xargs cat", ".env a.env priv"),
        ("ls", ""),
        ("ls -la", ""),
        ("ls -R", "priv"),
        ("cd src && cat *", "a.env priv"),
        ("cd priv && cat *", "a.env priv"),
        ("git diff", ""),
        ("cp -r . /tmp/x", ".env a.env priv"),
        ("npm test", ""),
        ("xargs cat <<< .env", ".env a.env priv"),
        ("echo .env | xargs cat", ".env a.env priv"),
        ("xargs cat < list", ".env a.env priv"),
        ("kill $(echo 1)", ""),
        ("cat ?env", "a.env"),
        ("cat ?.env", "a.env"),
        ("cat [a].env", "a.env"),
        ("cat ~/a.env", "a.env"),
        ("cat \"$PWD\"/.env", ".env"),
        ("cat ~+/.env", ".env"),
        ("cat < ~/a.env", "a.env"),
        ("cp ~/a.env out", "a.env"),
        ("bash -c 'cat ~/a.env'", "a.env"),
        ("curl file://$PWD/.env", ".env"),
        ("x=.env; cat $x", ".env a.env priv"),
        ("for f in .e*; do cat $f; done", ".env a.env priv"),
        (
            "while read f; do cat \"$f\"; done < list",
            ".env a.env priv",
        ),
        ("echo $HOME", ""),
        ("cat src/../*.env", "a.env"),
        ("cat src/.././p*/key.txt", "priv"),
        ("cat */../a.e*", "a.env"),
        ("cat \"$PWD\"/src/../*.env", ".env a.env"),
        ("cd src; cat ../*.env", "a.env"),
        ("head away/../a*.env", "a.env"),
        ("cat l*/a.*", "a.env"),
        ("cat alias.*", "a.env"),
        ("cat src/../*.txt", ""),
        ("./show.sh *.env", "a.env"),
        ("python3 -c 'print(1)' a.*", "a.env"),
        ("./show.sh *.rs", ""),
        ("echo *", ""),
    ];
    let mut wrong = Vec::new();
    for (line, expected) in table {
        let shown = shown(line, &fixture, &closed);
        if shown != expected {
            wrong.push(format!("{line}: {shown} (expected {expected})"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn what_git_keeps_is_reached_by_git() {
    let (fixture, closed) = project();
    let git = |args: &[&str]| {
        let done = std::process::Command::new("git")
            .args(args)
            .current_dir(fixture.path(""))
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("HOME", fixture.path(""))
            .output()
            .unwrap();
        assert!(done.status.success(), "{done:?}");
    };
    git(&["init", "--quiet"]);
    git(&["add", "src", "priv"]);
    assert_eq!(shown("git diff", &fixture, &closed), "priv");
    assert_eq!(shown("git grep x -- src", &fixture, &closed), "");
    git(&["add", "--force", ".env"]);
    assert_eq!(shown("git show HEAD", &fixture, &closed), ".env priv");
    assert_eq!(
        shown("cat $(git ls-files '*.rs')", &fixture, &closed),
        ".env priv"
    );
}
