//! The daemon as seen from `loop`.

use loopd_sdk::{Client, ConnectOptions, SessionConfig, Wait};
use loopd_tests::{Turn, call};
use serde_json::json;

use crate::home::Home;
use crate::model::Model;

#[test]
fn the_daemon_is_started_shown_and_stopped() {
    let home = Home::new();
    let status = home.run(&["daemon", "status"]);
    assert_eq!(status.code, 1);
    assert!(status.err.contains("not running"), "{status:?}");
    let started = home.prints(&["daemon", "start"]);
    assert!(started.contains(" runs as process "), "{started}");
    let shown = home.prints(&["daemon", "status", "--json"]);
    let shown: serde_json::Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(shown["connections"], 1);
    let stopped = home.run(&["daemon", "stop"]);
    assert_eq!(stopped.code, 0, "{stopped:?}");
    assert!(
        stopped.err.contains(&shown["pid"].to_string()),
        "{stopped:?}"
    );
    assert_eq!(home.run(&["daemon", "status"]).code, 1);
    assert!(home.prints(&["doctor"]).contains("ok   lock    free"));
    assert_eq!(home.run(&["daemon", "stop"]).code, 0);
}

#[test]
fn a_session_survives_the_end_of_the_daemon() {
    let home = Home::new();
    home.prints(&["run echo one"]);
    home.prints(&["daemon", "stop"]);
    let out = home.prints(&["-c", "run echo two"]);
    assert!(out.contains("\ntwo\n"), "{out}");
}

#[test]
fn the_doctor_finds_a_healthy_home_and_says_how_to_fix_another() {
    let home = Home::new();
    let healthy = home.prints(&["doctor"]);
    for name in ["home", "disk", "loopd", "lock", "socket", "daemon", "bash"] {
        let line = format!("ok   {name:<7} ");
        assert!(healthy.contains(&line), "{name} in {healthy}");
    }
    assert!(healthy.contains("warn model "), "{healthy}");
    home.prints(&["daemon", "start"]);
    assert!(home.prints(&["doctor"]).contains("held by process "));
    let mut lost = home.command(&["doctor"]);
    let lost = lost.env("LOOPD_BIN", "/nowhere/loopd").output().unwrap();
    assert_eq!(lost.status.code(), Some(1));
    let lost = String::from_utf8(lost.stdout).unwrap();
    assert!(lost.contains("fail loopd   /nowhere/loopd"), "{lost}");
}

#[test]
fn a_timeout_that_is_no_number_is_told_by_its_name() {
    let home = Home::new();
    for name in ["LOOPD_UNATTENDED_TIMEOUT", "LOOPD_IDLE_TIMEOUT"] {
        for running in [false, true] {
            if running {
                home.prints(&["daemon", "start"]);
            }
            let mut command = home.command(&["doctor"]);
            let said = command.env(name, "half an hour").output().unwrap();
            assert_eq!(said.status.code(), Some(1), "{said:?}");
            let said = String::from_utf8(said.stdout).unwrap();
            assert!(
                said.contains(name) && said.contains("half an hour"),
                "{said}"
            );
        }
        home.prints(&["daemon", "stop"]);
    }
    let file = home.path("home/config.toml");
    std::fs::write(&file, "local = false\nunattended_timeout = \"soon\"\n").unwrap();
    let said = home.run(&["doctor"]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(
        said.out
            .contains("config.toml, line 2: `unattended_timeout`: "),
        "{said:?}"
    );
}

#[test]
fn a_wrong_key_in_the_configuration_is_told_by_the_doctor_also_while_a_daemon_runs() {
    let home = Home::new();
    let doctor = home.prints(&["doctor"]);
    assert!(doctor.contains("ok   config "), "{doctor}");
    let file = home.path("home/config.toml");
    std::fs::write(&file, "local = false\nunattended = 5\n").unwrap();
    let said = home.run(&["doctor"]);
    assert_eq!(said.code, 1, "{said:?}");
    let line = said
        .out
        .lines()
        .find(|line| line.starts_with("fail config"));
    let line = line.unwrap();
    assert!(line.contains("config.toml, line 2"), "{line}");
    assert!(line.contains("`unattended`"), "{line}");
    assert!(
        line.contains("unattended_timeout"),
        "the key that was meant: {line}"
    );
    std::fs::write(&file, "unattended_timeout = 5\n").unwrap();
    let said = home.run(&["doctor"]);
    assert!(
        said.out.contains("was changed after the daemon started"),
        "{said:?}"
    );
    home.prints(&["daemon", "stop"]);
    home.prints(&["doctor"]);
}

#[test]
fn the_time_without_clients_that_a_daemon_is_started_with_holds_for_all_its_sessions() {
    let home = Home::new();
    let mut start = home.command(&["daemon", "start"]);
    let started = start.env("LOOPD_UNATTENDED_TIMEOUT", "0").output().unwrap();
    assert_eq!(started.status.code(), Some(0), "{started:?}");
    let model = Model::answering(|request| {
        if request.last_results().is_empty() {
            let command = json!({"command": "echo one", "shellId": "build"});
            Turn::any().calls([call("c", "bash", command)])
        } else {
            Turn::any().says("done")
        }
    });
    let mut options = ConnectOptions {
        allow_all: true,
        ..home.connect_options()
    };
    for (name, value) in model.command(&home, &[]).get_envs() {
        let value = value.unwrap().to_str().unwrap().to_owned();
        let env = options.env.as_mut().unwrap();
        env.insert(name.to_str().unwrap().to_owned(), value);
    }
    // A client that leaves its session as it is.
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let session = runtime.block_on(async {
        let client = Client::connect(options).await.unwrap();
        let session = client.create(SessionConfig::new()).await.unwrap();
        let mut turn = session.turn("go", Wait::Session);
        while turn.next().await.is_some() {}
        turn.finish().unwrap();
        let id = session.id().to_string();
        drop(session);
        client.close().await;
        id
    });
    until(|| {
        let events = home.prints(&["events", &session]);
        events.contains("nobody was attached to the session for 0 seconds")
    });
    // The daemon ends by itself, and says so where people look for it.
    let log = home.path("home/daemon.log");
    until(|| {
        let said = std::fs::read_to_string(&log).unwrap_or_default();
        said.contains("the daemon ends: nobody was connected")
    });
    model.finish();
}

/// Waits until this holds, at most a minute.
fn until(holds: impl Fn() -> bool) {
    let begun = std::time::Instant::now();
    while !holds() {
        assert!(begun.elapsed().as_secs() < 60, "it did not come to be");
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
}
