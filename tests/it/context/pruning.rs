//! Old results of tools are shortened before anything else is done to make room.

use loopd_tests::script::Recorded;
use loopd_tests::{Commits, Daemon, Script, Turn, call};
use serde_json::{Value, json};

use super::window;

/// How many times the model looks at the file.
const LOOKS: usize = 24;

/// How a request for a summary begins.
const SUMMARY: &str = "Please create a detailed summary";

/// A model that looks at a file again and again, and says something at the end.
async fn looking() -> Script {
    let mut looks = 0;
    Script::answering(move |request| {
        if request.last_user_text().starts_with(SUMMARY) {
            return Turn::any().fails(400, "no summaries here");
        }
        looks += 1;
        if looks > LOOKS {
            return Turn::any().says("seen enough");
        }
        let id = format!("c{looks}");
        Turn::any().calls([call(&id, "view", json!({"path": "notes.txt"}))])
    })
    .await
}

/// The texts of the results in a request.
fn results(request: &Recorded) -> Vec<&str> {
    let messages = request.messages().iter();
    let results = messages.filter(|message| message["role"] == "tool");
    results
        .filter_map(|message| message["content"].as_str())
        .collect()
}

/// A file of about 800 tokens.
fn notes() -> String {
    let lines: Vec<String> = (1..=80)
        .map(|line| format!("line {line} of some words"))
        .collect();
    lines.join("\n")
}

/// Whether a text has every line of the file.
fn is_whole(result: &str) -> bool {
    (1..=80).all(|line| result.contains(&format!("line {line} of some words")))
}

fn is_short(result: &str) -> bool {
    result.contains("bytes of this output are left out here to save room")
}

#[tokio::test]
async fn old_results_are_shortened_in_steps_and_the_whole_is_in_a_file() {
    let commits = Commits::default();
    let builder = Daemon::builder().script(looking().await);
    let daemon = builder.commits(&commits).start().await;
    std::fs::write(daemon.file("notes.txt"), notes()).unwrap();
    let mut session = daemon.client().create(window(16_000)).await;
    session.approve_all().await;
    session.ask("look").await;

    let mut requests = daemon.script().requests();
    requests.retain(|request| !request.last_user_text().starts_with(SUMMARY));
    let last = results(requests.last().unwrap());
    assert_eq!(last.len(), LOOKS);
    let short = last.iter().filter(|result| is_short(result)).count();
    assert!((5..LOOKS - 3).contains(&short), "{short} were shortened");
    // The oldest ones are short, the newest ones are whole.
    assert!(last[..short].iter().all(|result| is_short(result)));
    assert!(last[short..].iter().all(|result| is_whole(result)));
    // The whole text is where the model was told.
    let path = last[0].split("in the file ").nth(1).unwrap();
    let path = path.split(".]").next().unwrap();
    assert!(is_whole(&std::fs::read_to_string(path).unwrap()));
    // What was sent once stays the same, but for a few steps.
    let changed = requests.windows(2).filter(|pair| {
        let (before, after) = (pair[0].messages(), pair[1].messages());
        before[..] != after[..before.len()]
    });
    let steps = changed.count();
    assert!(
        (2..=5).contains(&steps),
        "{steps} steps for {LOOKS} results"
    );
    // Each step is one more commit, and everything is in the log.
    let kinds = commits.kinds();
    let with = |kind: &str| kinds.iter().flatten().filter(|it| *it == kind).count();
    assert_eq!(with("loopd.pruned"), steps);
    assert_eq!(with("loopd.making_room"), steps);
    let stored = session.messages().await;
    let whole = stored.iter().filter(|event| {
        let content = event["data"]["result"]["content"].as_str();
        content.is_some_and(is_whole)
    });
    assert_eq!(whole.count(), LOOKS);
    daemon.finish().await;
}

#[tokio::test]
async fn a_session_that_wants_none_of_it_keeps_every_result() {
    let daemon = Daemon::with(looking().await).await;
    std::fs::write(daemon.file("notes.txt"), notes()).unwrap();
    let mut options = window(16_000);
    options["infiniteSessions"] = json!({"enabled": false});
    let mut session = daemon.client().create(options).await;
    session.approve_all().await;
    session.ask("look").await;
    let last = daemon.script().last_request();
    assert!(!results(&last).into_iter().any(is_short));
    daemon.finish().await;
}

#[tokio::test]
async fn a_small_turn_costs_no_more_commits_than_without() {
    let kinds = |enabled: Value| async move {
        let commits = Commits::default();
        let script = Script::play([
            Turn::user("look").calls([call("c", "view", json!({"path": "notes.txt"}))]),
            Turn::results(["word"]).says("ok"),
        ]);
        let builder = Daemon::builder().script(script.await);
        let daemon = builder.commits(&commits).start().await;
        std::fs::write(daemon.file("notes.txt"), "word").unwrap();
        let options = json!({"infiniteSessions": {"enabled": enabled}});
        let mut session = daemon.client().create(options).await;
        session.approve_all().await;
        session.ask("look").await;
        // What a client changes meanwhile may be committed before or after a part of the turn.
        let of_turn = |kind: &String| {
            let prefixes = [
                "assistant.",
                "tool.",
                "user.",
                "loopd.usage",
                "loopd.pruned",
            ];
            prefixes.iter().any(|prefix| kind.starts_with(prefix))
        };
        let kinds = commits.kinds().into_iter().map(|mut kinds| {
            kinds.retain(of_turn);
            kinds
        });
        let kinds: Vec<_> = kinds.filter(|kinds| !kinds.is_empty()).collect();
        daemon.finish().await;
        kinds
    };
    let (with, without) = (kinds(json!(true)).await, kinds(json!(false)).await);
    assert_eq!(with, without);
}
