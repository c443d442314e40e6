//! Getting started with the crate github-copilot-sdk. `../../../README.md` says what each scenario has to show.

mod setup;

use std::error::Error;
use std::fmt::Debug;
use std::future::Future;
use std::time::Duration;

use github_copilot_sdk::session::Session;
use github_copilot_sdk::types::{MessageOptions, SessionEvent, SessionId};
use github_copilot_sdk::{Client, EventSubscription, Transport};
use serde_json::json;
use tokio::sync::watch;
use tokio::time::timeout;

use setup::{Asked, Program};

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

const PATIENCE: Duration = Duration::from_secs(10);

async fn scenario(name: &str, body: impl Future<Output = Outcome>) {
    let outcome = timeout(PATIENCE, body)
        .await
        .unwrap_or_else(|_| Err(format!("it did not end within {PATIENCE:?}").into()));
    match outcome {
        Ok(()) => println!("ok {name}"),
        Err(error) => {
            let why = error.to_string();
            let words: Vec<&str> = why.split_whitespace().collect();
            println!("FAIL {name}: {}", words.join(" "));
        }
    }
}

fn equal<T: PartialEq + Debug>(found: T, expected: T) -> Outcome {
    check(found == expected, &format!("{found:?} is not {expected:?}"))
}

fn check(holds: bool, otherwise: &str) -> Outcome {
    if holds { Ok(()) } else { Err(otherwise.into()) }
}

async fn becomes_true(of: &watch::Sender<bool>) -> Outcome {
    of.subscribe().wait_for(|is| *is).await?;
    Ok(())
}

fn content(event: &SessionEvent) -> String {
    event.data["content"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

async fn ask(session: &Session, prompt: &str) -> Outcome<String> {
    let answer = session
        .send_and_wait(MessageOptions::new(prompt).with_wait_timeout(PATIENCE))
        .await?;
    answer
        .as_ref()
        .map(content)
        .ok_or_else(|| "the wait ended without a message".into())
}

/// Asks, and fails when the answer is another one.
async fn expect(session: &Session, prompt: &str, answer: &str) -> Outcome {
    equal(ask(session, prompt).await?.as_str(), answer)
}

/// The next event of a type that fits.
async fn next(
    events: &mut EventSubscription,
    kind: &str,
    fits: impl Fn(&SessionEvent) -> bool,
) -> Outcome<SessionEvent> {
    loop {
        let event = events.recv().await?;
        if event.event_type == kind && fits(&event) {
            return Ok(event);
        }
    }
}

async fn create(program: &Program, client: &Client) -> Outcome<Session> {
    let session = client.create_session(program.config()).await?;
    expect(&session, "say created", "created").await?;
    Ok(session)
}

async fn start_tcp(program: &Program) -> Outcome<Client> {
    let transport = Transport::Tcp {
        port: 0,
        connection_token: None,
    };
    let client = program.start(transport).await?;
    let session = client.create_session(program.config()).await?;
    expect(&session, "say over tcp", "over tcp").await?;
    session.disconnect().await?;
    Ok(client)
}

async fn stream(session: &Session) -> Outcome {
    let mut events = session.subscribe();
    expect(session, "say one two three", "one two three").await?;
    let mut pieces = Vec::new();
    loop {
        let event = events.recv().await?;
        match event.event_type.as_str() {
            "assistant.message_delta" => pieces.push(
                event.data["deltaContent"]
                    .as_str()
                    .unwrap_or_default()
                    .to_owned(),
            ),
            "session.idle" => break,
            _ => {}
        }
    }
    check(pieces.len() > 1, &format!("{} pieces", pieces.len()))?;
    equal(pieces.concat(), "one two three".to_owned())
}

async fn client_tool(session: &Session, asked: &Asked) -> Outcome {
    expect(
        session,
        r#"call lookup {"word":"fig"}"#,
        "lookup said: fig is a fruit",
    )
    .await?;
    equal(
        asked.tools.lock().unwrap().clone(),
        vec![json!({"word": "fig"})],
    )
}

async fn permission(session: &Session, program: &Program) -> Outcome {
    let command = r#"{"command":"echo made > made.txt","description":"make a file"}"#;
    let answer = ask(session, &format!("call bash {command}")).await?;
    check(answer.contains("exit code 0"), &answer)?;
    check(
        program.place.join("work/made.txt").exists(),
        "the command did not run",
    )?;
    let commands = program.asked.commands.lock().unwrap().clone();
    equal(commands, vec![json!("echo made > made.txt")])
}

async fn question(session: &Session, asked: &Asked) -> Outcome {
    let answer = ask(session, r#"call ask_user {"question":"Which colour?"}"#).await?;
    check(answer.contains("green"), &answer)?;
    equal(
        asked.questions.lock().unwrap().clone(),
        vec!["Which colour?".to_owned()],
    )
}

async fn two_waits(session: &Session, asked: &Asked) -> Outcome {
    let gate = asked.new_gate();
    let mut events = session.subscribe();
    let second = async {
        becomes_true(&gate.entered).await?;
        let opening = async {
            next(&mut events, "pending_messages.modified", |_| true).await?;
            gate.open.send_replace(true);
            Outcome::Ok(())
        };
        let (answer, opened) = tokio::join!(ask(session, "say second"), opening);
        opened?;
        answer
    };
    let (first, second) = tokio::join!(ask(session, "call gate {}"), second);
    equal(
        (first?, second?),
        ("gate said: open".to_owned(), "second".to_owned()),
    )
}

async fn abort(session: &Session, asked: &Asked) -> Outcome {
    let gate = asked.new_gate();
    let mut events = session.subscribe();
    let aborting = async {
        becomes_true(&gate.entered).await?;
        session.abort().await?;
        Outcome::Ok(())
    };
    let (answer, aborted) = tokio::join!(ask(session, "call gate {}"), aborting);
    aborted?;
    match answer {
        Ok(answer) => return Err(format!("an aborted wait ended with {answer:?}").into()),
        Err(error) => check(
            error.to_string().contains("aborted"),
            &format!("the wait ended with: {error}"),
        )?,
    }
    let idle = next(&mut events, "session.idle", |_| true).await?;
    equal(idle.data["aborted"].clone(), json!(true))?;
    gate.open.send_replace(true);
    expect(session, "say after abort", "after abort").await
}

async fn wait_timeout(session: &Session, asked: &Asked) -> Outcome {
    let gate = asked.new_gate();
    let mut events = session.subscribe();
    let short = MessageOptions::new("call gate {}").with_wait_timeout(Duration::from_millis(300));
    match session.send_and_wait(short).await {
        Ok(_) => return Err("the wait did not end with a timeout".into()),
        Err(error) => check(
            error.to_string().contains("time"),
            &format!("the wait ended with: {error}"),
        )?,
    }
    becomes_true(&gate.entered).await?;
    gate.open.send_replace(true);
    next(&mut events, "assistant.message", |event| {
        content(event) == "gate said: open"
    })
    .await?;
    next(&mut events, "session.idle", |_| true).await?;
    expect(session, "say after timeout", "after timeout").await
}

async fn resume(program: &Program, client: &Client, session: &Session) -> Outcome<Session> {
    session.disconnect().await?;
    let session = program.resume(client, session.id()).await?;
    let kept = session.get_events().await?;
    let first = kept.iter().find(|event| event.event_type == "user.message");
    equal(first.map(content), Some("say created".to_owned()))?;
    expect(&session, "say resumed", "resumed").await?;
    Ok(session)
}

async fn is_listed(client: &Client, id: &SessionId) -> Outcome<bool> {
    let sessions = client.list_sessions(None).await?;
    Ok(sessions.iter().any(|each| each.session_id == *id))
}

async fn list(client: &Client, session: &Session) -> Outcome {
    check(
        is_listed(client, session.id()).await?,
        "the session is not listed",
    )
}

async fn delete(program: &Program, client: &Client, session: &Session) -> Outcome {
    session.disconnect().await?;
    client.delete_session(session.id()).await?;
    check(
        !is_listed(client, session.id()).await?,
        "the session is still listed",
    )?;
    check(
        program.resume(client, session.id()).await.is_err(),
        "a deleted session was resumed",
    )
}

/// What an earlier scenario should have left.
fn from<'a, T>(earlier: &'a Option<T>, name: &str) -> Outcome<&'a T> {
    earlier
        .as_ref()
        .ok_or_else(|| format!("{name} failed").into())
}

#[tokio::main]
async fn main() {
    let program = Program::new();
    let asked = &program.asked;
    let (mut client, mut over_tcp, mut second) = (None, None, None);
    let (mut session, mut resumed) = (None, None);

    scenario("start_stdio", async {
        let started = client.insert(program.start(Transport::Stdio).await?);
        equal(
            started.ping(Some("hello")).await?.message,
            "pong: hello".to_owned(),
        )
    })
    .await;
    scenario("start_tcp", async {
        over_tcp = Some(start_tcp(&program).await?);
        Ok(())
    })
    .await;
    scenario("create", async {
        session = Some(create(&program, from(&client, "start_stdio")?).await?);
        Ok(())
    })
    .await;
    scenario("stream", async { stream(from(&session, "create")?).await }).await;
    scenario("client_tool", async {
        client_tool(from(&session, "create")?, asked).await
    })
    .await;
    scenario("permission", async {
        permission(from(&session, "create")?, &program).await
    })
    .await;
    scenario("question", async {
        question(from(&session, "create")?, asked).await
    })
    .await;
    scenario("two_waits", async {
        two_waits(from(&session, "create")?, asked).await
    })
    .await;
    scenario("abort", async {
        abort(from(&session, "create")?, asked).await
    })
    .await;
    scenario("wait_timeout", async {
        wait_timeout(from(&session, "create")?, asked).await
    })
    .await;
    scenario("resume", async {
        let other = second.insert(program.start(Transport::Stdio).await?);
        resumed = Some(resume(&program, other, from(&session, "create")?).await?);
        Ok(())
    })
    .await;
    scenario("list", async {
        list(from(&second, "resume")?, from(&resumed, "resume")?).await
    })
    .await;
    scenario("delete", async {
        delete(
            &program,
            from(&second, "resume")?,
            from(&resumed, "resume")?,
        )
        .await
    })
    .await;
    scenario("stop", async {
        for (each, starting) in [
            (&over_tcp, "start_tcp"),
            (&second, "resume"),
            (&client, "start_stdio"),
        ] {
            from(each, starting)?.stop().await?;
        }
        Ok(())
    })
    .await;
}
