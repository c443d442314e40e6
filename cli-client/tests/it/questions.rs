//! Questions that another client answers while a person looks at them here.

use loopd_sdk::{Client, PermissionDecision, Session, SessionConfig, Wait};
use tokio::runtime::Runtime;
use tokio::sync::watch;

use crate::home::Home;
use crate::terminal::OnTerminal;

/// Another client of a session, which answers its permission requests when it is told to.
struct OtherClient {
    runtime: Runtime,
    session: Session,
    answers: watch::Sender<bool>,
}

impl OtherClient {
    fn join(home: &Home, id: &str) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .unwrap();
        let (answers, told) = watch::channel(false);
        let config = SessionConfig::new().on_permission(move |_| {
            let mut told = told.clone();
            async move {
                told.wait_for(|answers| *answers).await.unwrap();
                PermissionDecision::ApproveOnce {}
            }
        });
        let session = runtime.block_on(async {
            let client = Client::connect(home.connect_options()).await.unwrap();
            client.resume(id, config).await.unwrap()
        });
        Self {
            runtime,
            session,
            answers,
        }
    }

    fn answer(&self) {
        self.answers.send_replace(true);
    }
}

#[test]
fn a_conversation_is_told_and_keeps_the_line_that_was_typed() {
    let home = Home::new();
    let mut chat = OnTerminal::start(home.command(&[]));
    chat.read_until("> ");
    chat.types("run touch made\r");
    chat.read_until("[y/a/n] ");
    let other = OtherClient::join(&home, &home.last_session());
    chat.types("run echo ");
    chat.read_until("run echo ");
    other.answer();
    // At once, before the line is complete.
    chat.read_until("answered by another client");
    chat.read_until("(no answer is needed) > run echo ");
    chat.read_until("Done.");
    assert!(home.path("made").exists());
    chat.types("nex''t\r");
    chat.read_until("your line is in the prompt");
    chat.read_until("run echo nex''t");
    chat.types("\r");
    chat.read_until("\nnext\r\n");
    chat.read_until("> ");
    chat.types("\x04");
    assert_eq!(chat.ends(), Some(0));
}

#[test]
fn attach_is_told_and_the_next_line_is_a_message() {
    let home = Home::new();
    home.prints(&["run echo one"]);
    let id = home.last_session();
    let other = OtherClient::join(&home, &id);
    let mut attach = OnTerminal::start(home.command(&["attach", &id]));
    // The prompt itself, and not a message that is shown.
    attach.read_until("\x1b[1m> \x1b[0m");
    let mut turn = {
        let _inside = other.runtime.enter();
        other.session.turn("run touch made", Wait::Session)
    };
    attach.read_until("[y/a/n] ");
    other.answer();
    attach.read_until("answered by another client");
    let reply = other.runtime.block_on(async {
        while turn.next().await.is_some() {}
        turn.finish()
    });
    assert!(reply.is_ok(), "{reply:?}");
    attach.types("run echo nex''t\r");
    attach.read_until("next\r\n");
    attach.types("/exit\r");
    assert_eq!(attach.ends(), Some(0));
}

#[test]
fn a_single_message_says_that_the_line_was_not_used() {
    let home = Home::new();
    let mut asks = OnTerminal::start(home.command(&["run touch made; sleep 60"]));
    asks.read_until("/n] ");
    let other = OtherClient::join(&home, &home.last_session());
    asks.types("n");
    other.answer();
    asks.read_until("answered by another client");
    asks.types("\r");
    asks.read_until("your line was not used");
    crate::home::interrupt(asks.child());
    assert_eq!(asks.ends(), Some(130));
}
