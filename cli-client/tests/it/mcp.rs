//! `loop mcp` with a real server.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;

use loopd_tests::auth_server::{AuthServer, visit};

use crate::home::{self, Home};

fn program() -> String {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/it/mcp/server.py");
    program.display().to_string()
}

#[test]
fn a_server_is_added_listed_tried_and_removed() {
    let home = Home::new();
    let none = home.run(&["mcp"]);
    assert_eq!((none.code, none.out.as_str()), (0, ""), "{none:?}");
    assert!(none.err.contains("no MCP servers"), "{none:?}");

    let program = program();
    let added = home.run(&["mcp", "add", "box", "--", "python3", &program, "good"]);
    assert_eq!(added.code, 0, "{added:?}");
    let again = home.run(&["mcp", "add", "box", "--", "python3", &program]);
    assert_eq!(again.code, 1, "{again:?}");
    assert_eq!(home.prints(&["mcp", "list"]), "box  yours  a program\n");

    let tested = home.prints(&["mcp", "test", "box"]);
    assert!(tested.starts_with("box is connected after "), "{tested}");
    assert!(tested.contains("\n  echo  Does echo.\n"), "{tested}");
    let sessions = home.run(&["sessions"]);
    assert_eq!(sessions.out, "", "nothing is left of the try");
    let doctor = home.run(&["doctor"]).out;
    assert!(doctor.contains("mcp     box;"), "{doctor}");

    let removed = home.run(&["mcp", "remove", "box"]);
    assert_eq!(removed.code, 0, "{removed:?}");
    assert!(removed.err.contains("removed box"), "{removed:?}");
    let gone = home.run(&["mcp", "test", "box"]);
    assert_eq!(gone.code, 1, "{gone:?}");
    assert!(gone.err.contains("not configured"), "{gone:?}");
}

#[test]
fn a_server_that_fails_is_told_with_what_it_wrote() {
    let home = Home::new();
    let added = home.run(&["mcp", "add", "dead", "--", "python3", &program(), "dies"]);
    assert_eq!(added.code, 0, "{added:?}");
    let tested = home.run(&["mcp", "test", "dead"]);
    assert_eq!(tested.code, 1, "{tested:?}");
    assert!(tested.out.contains("dead cannot be used"), "{tested:?}");
    assert!(tested.out.contains("no key was given"), "{tested:?}");
    let wrong = home.run(&["mcp", "add", "x"]);
    assert!(wrong.err.contains("--url"), "{wrong:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_logs_in_and_out_at_a_server_and_an_interrupt_loses_nothing() {
    let server = AuthServer::start().await;
    let home = Home::new();
    let url = server.url().to_owned();
    let work = tokio::task::spawn_blocking(move || {
        let added = home.run(&["mcp", "add", "box", "--url", &url]);
        assert_eq!(added.code, 0, "{added:?}");
        let begin = || {
            let mut child = home
                .command(&["mcp", "login", "box", "--no-browser"])
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap();
            let mut address = String::new();
            let mut out = BufReader::new(child.stdout.take().unwrap());
            out.read_line(&mut address).unwrap();
            (child, address.trim().to_owned())
        };
        let (mut child, address) = begin();
        home::interrupt(&child);
        child.wait().unwrap();
        let (child, again) = begin();
        assert_eq!(again, address, "the login that was begun is still open");
        let runtime = tokio::runtime::Handle::current();
        let (status, page) = runtime.block_on(visit(&address));
        assert_eq!(status, 200, "{page}");
        let ended = child.wait_with_output().unwrap();
        let said = String::from_utf8(ended.stderr).unwrap();
        assert!(ended.status.success(), "{said}");
        assert!(said.contains("you are logged in at box"), "{said}");
        let tested = home.prints(&["mcp", "test", "box"]);
        assert!(tested.contains("box is connected"), "{tested}");
        let known = home.run(&["mcp", "login", "box"]);
        assert!(known.err.contains("--again"), "{known:?}");
        let out = home.run(&["mcp", "logout", "box"]);
        assert!(out.err.contains("is forgotten"), "{out:?}");
        let tested = home.run(&["mcp", "test", "box"]);
        assert_eq!(tested.code, 1, "{tested:?}");
        assert_eq!(home.run(&["sessions"]).out, "", "nothing is left");
    });
    work.await.unwrap();
}
