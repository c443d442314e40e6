//! A session with many more tool calls than its model could read at once.
//!
//! `LOOPD_LONG_TURNS` sets how many; the default is small, so that the suite stays fast. The figures are
//! printed: `LOOPD_LONG_TURNS=3000 cargo nextest run --no-capture -E 'test(long::)'`.

#![expect(clippy::print_stdout, reason = "figures are for who watches the test")]

use std::sync::{Arc, Mutex};
use std::time::Instant;

use loopd_tests::{Daemon, Script, Turn, call};
use serde_json::{Value, json};

use super::foreign_tokens;

/// The window of the model, and by which factor it counts more tokens than we do.
const WINDOW: u64 = 16_000;
const FACTOR: f64 = 1.15;

/// What has to be in every request after the first few.
const FACTS: [&str; 3] = ["write the parser", "Keep names short", "sleep 3600"];

#[derive(Default)]
struct Seen {
    turns: usize,
    summaries: usize,
    largest: u64,
    wrong: Vec<String>,
    figures: Vec<String>,
}

fn memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    number.unwrap_or(0)
}

fn turns() -> usize {
    let given = std::env::var("LOOPD_LONG_TURNS").ok();
    given.and_then(|text| text.parse().ok()).unwrap_or(300)
}

#[tokio::test]
async fn a_long_session_never_overflows_and_never_forgets() {
    let seen = Arc::new(Mutex::new(Seen::default()));
    let (inside, most) = (seen.clone(), turns());
    let mut since = Instant::now();
    let script = Script::answering(move |request| {
        let mut seen = inside.lock().unwrap();
        let tokens = foreign_tokens(request, FACTOR);
        seen.largest = seen.largest.max(tokens);
        if tokens > WINDOW {
            let turn = seen.turns;
            seen.wrong.push(format!("turn {turn} has {tokens} tokens"));
        }
        if request
            .last_user_text()
            .starts_with("Please create a detailed summary")
        {
            seen.summaries += 1;
            let text = format!("<overview>{}</overview>", "looked at notes ".repeat(40));
            return Turn::any().says(&text).uses(tokens, 200);
        }
        seen.turns += 1;
        let turn = seen.turns;
        if [10, 100, 300, 1_000, 3_000].contains(&turn) {
            let elapsed = since.elapsed().as_millis();
            let figure = format!(
                "turn {turn}: {} kB, {elapsed} ms for the turns since",
                memory()
            );
            seen.figures.push(figure);
            since = Instant::now();
        }
        if turn > 5 {
            let text = Value::from(request.messages().to_vec()).to_string();
            for fact in FACTS {
                if !text.contains(fact) {
                    seen.wrong.push(format!("turn {turn} does not have {fact}"));
                }
            }
        }
        let id = format!("c{turn}");
        let answer = Turn::any().uses(tokens, 30);
        match turn {
            1 => answer.calls([call(&id, "todowrite", json!({"todos": [
                {"id": "t1", "content": "write the parser", "status": "in_progress", "priority": "high"},
            ]}))]),
            2 => {
                let wait = json!({"command": "sleep 3600", "mode": "async", "shellId": "server"});
                answer.calls([call(&id, "bash", wait)])
            }
            3 => answer.calls([call(&id, "skill", json!({"skill": "naming"}))]),
            turn if turn > most => answer.says("done"),
            turn => {
                let range = json!([turn % 40 + 1, turn % 40 + 30]);
                let look = json!({"path": "notes.txt", "view_range": range});
                answer.calls([call(&id, "view", look)])
            }
        }
    });
    let daemon = Daemon::with(script.await.forgetful()).await;
    let lines = (1..=80).map(|line| format!("line {line} of some words about parsers\n"));
    std::fs::write(daemon.file("notes.txt"), lines.collect::<String>()).unwrap();
    let skill = daemon.file("lib/naming");
    std::fs::create_dir_all(&skill).unwrap();
    let text = "---\nname: naming\ndescription: how to name things\n---\nKeep names short.\n";
    std::fs::write(skill.join("SKILL.md"), text).unwrap();
    let options = json!({
        "modelCapabilities": {"limits": {"max_context_window_tokens": WINDOW}},
        "availableTools": ["view", "todowrite", "skill", "bash"],
        "skillDirectories": ["lib"],
        "systemMessage": {"mode": "replace", "content": "You are an agent in a test."},
    });
    let mut session = daemon.client().create(options).await;
    session.approve_all().await;
    session
        .send("look at the notes until you are told to stop")
        .await;
    session
        .next_slowly("the end", |event| event["type"] == "session.idle")
        .await;

    let stored = session.messages().await;
    let count = |kind: &str| stored.iter().filter(|event| event["type"] == kind).count();
    assert_eq!(
        count("tool.execution_complete"),
        most,
        "the log is complete"
    );
    let completes = stored
        .iter()
        .filter(|event| event["type"] == "session.compaction_complete");
    let mut succeeded = 0;
    for complete in completes {
        let data = &complete["data"];
        if data["success"] == true {
            succeeded += 1;
            assert!(data["tokensRemoved"].as_i64().unwrap() > 1_000, "{data}");
        }
    }
    let seen = std::mem::take(&mut *seen.lock().unwrap());
    for figure in &seen.figures {
        println!("{figure}");
    }
    println!(
        "{succeeded} compactions, {} calls for them, the largest request has {} of {WINDOW} tokens",
        seen.summaries, seen.largest
    );
    assert!(
        seen.wrong.is_empty(),
        "{:#?}",
        &seen.wrong[..seen.wrong.len().min(10)]
    );
    assert!(succeeded >= 1, "there was no compaction in {most} turns");
    assert!(
        seen.summaries <= most / 8,
        "{} calls for summaries",
        seen.summaries
    );
    daemon.finish().await;
}
