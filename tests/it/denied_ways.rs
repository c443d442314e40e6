//! Deny rules for a path over the wire, under a client that approves everything: a shell that was
//! led elsewhere by an earlier call, links, hard links, and rules without a path.

use loopd_tests::{Daemon, Turn, call};
use serde_json::{Value, json};

/// What becomes of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Runs,
    Asks,
    Denied,
}

use Fate::{Asks, Denied, Runs};

/// One call of `bash`: the command, the shell, and what becomes of it.
type Step = (&'static str, Option<&'static str>, Fate);

/// Runs each step in a session that approves everything but `denied`.
async fn play(steps: &[Step], denied: impl Fn(&Daemon) -> Value) {
    let turns = steps.iter().enumerate().flat_map(|(at, (line, shell, _))| {
        let id = format!("t{at}");
        let mut arguments = json!({"command": line});
        if let Some(shell) = shell {
            arguments["shellId"] = json!(shell);
        }
        [
            Turn::user(&id).calls([call(&id, "bash", arguments)]),
            Turn::results([""]).says("ok"),
        ]
    });
    let daemon = Daemon::playing(turns).await;
    std::fs::create_dir_all(daemon.file("a/b/priv")).unwrap();
    std::fs::create_dir_all(daemon.file("sub")).unwrap();
    let secret = daemon.file("a/b/priv/f");
    std::fs::write(&secret, "kept").unwrap();
    std::fs::write(daemon.file("notes"), "text").unwrap();
    std::fs::hard_link(&secret, daemon.file("hard")).unwrap();
    std::os::unix::fs::symlink("a/b/priv", daemon.file("lp")).unwrap();
    std::os::unix::fs::symlink("../a/b/priv", daemon.file("sub/lp")).unwrap();
    let client = daemon.client();
    let mut session = client.create(json!({"requestPermission": true})).await;
    let rules = json!({
        "rules": {"approved": [], "denied": denied(&daemon)}, "approveAllToolPermissionRequests": true,
    });
    session.call("session.permissions.configure", rules).await;
    for (at, (line, _, fate)) in steps.iter().enumerate() {
        session.send(&format!("t{at}")).await;
        let is_told = |event: &Value| {
            event["type"] == "permission.requested" || event["type"] == "tool.execution_complete"
        };
        let event = session.next_where("a request or a result", is_told).await;
        let found = if event["type"] == "permission.requested" {
            let request = event["data"]["requestId"].as_str().unwrap();
            let no = json!({"kind": "user-not-available"});
            assert!(session.decide(request, no).await);
            Asks
        } else if event["data"]["error"]["code"] == "denied" {
            Denied
        } else {
            Runs
        };
        assert_eq!(found, *fate, "{line}");
        session.next("session.idle").await;
        assert_eq!(std::fs::read_to_string(&secret).unwrap(), "kept", "{line}");
    }
    daemon.finish().await;
}

fn about(kind: &'static str) -> impl Fn(&Daemon) -> Value {
    move |daemon| json!([{"kind": kind, "argument": daemon.file("a/b/priv")}])
}

#[tokio::test]
async fn a_shell_that_an_earlier_call_led_elsewhere_is_where_it_is() {
    let steps = [
        ("cd a/b", Some("one"), Runs),
        ("rm priv/f", Some("one"), Denied),
        ("rm priv/f", Some("other"), Runs),
        ("touch new", Some("one"), Runs),
        ("cd lp", Some("two"), Runs),
        ("echo x > f", Some("two"), Denied),
        ("cd sub", Some("three"), Runs),
        ("rm lp/f", Some("three"), Denied),
        ("cd \"$PWD/a\"", Some("four"), Runs),
        ("rm b/priv/f", Some("four"), Asks),
        ("ls", Some("four"), Runs),
        ("echo x > hard", None, Denied),
        ("cd lp && rm f", None, Denied),
        ("ln a/b/priv/f hh", None, Denied),
        ("rm /proc/self/cwd/a/b/priv/f", None, Asks),
    ];
    play(&steps, about("write")).await;
}

#[tokio::test]
async fn what_may_not_be_read_is_not_read_from_elsewhere_and_not_written() {
    let steps = [
        ("cat notes", None, Runs),
        ("cat hard", None, Denied),
        ("echo x > a/b/priv/f", None, Denied),
        ("python3 -c \"open('a/b/priv/f','w')\"", None, Asks),
        ("mv a q", None, Denied),
        ("cat /proc/self/cwd/a/b/priv/f", None, Asks),
    ];
    play(&steps, about("read")).await;
}

#[tokio::test]
async fn a_shell_that_was_led_elsewhere_does_not_read_what_is_denied() {
    let steps = [
        ("cd sub", Some("one"), Runs),
        ("cat lp/f", Some("one"), Denied),
        ("cat ../a/b/priv/f", Some("one"), Denied),
        ("cat ../notes", Some("one"), Runs),
    ];
    play(&steps, about("read")).await;
}

#[tokio::test]
async fn a_rule_against_all_writing_holds_for_commands() {
    let steps = [
        ("echo x > notes", None, Denied),
        ("touch made", None, Denied),
        ("cat notes", None, Runs),
        ("make", None, Asks),
    ];
    play(&steps, |_| json!([{"kind": "write", "argument": null}])).await;
}

#[tokio::test]
async fn a_rule_against_all_reading_holds_for_commands() {
    let steps = [
        ("cat notes", None, Denied),
        ("wc -l < notes", None, Denied),
        ("echo hello", None, Runs),
        ("python3 notes", None, Asks),
    ];
    play(&steps, |_| json!([{"kind": "read", "argument": null}])).await;
}
