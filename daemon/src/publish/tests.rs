//! How often an event's bytes are made, and who gets them.

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use loopd_proto::event::ask::{
    AutoModeSwitch, AutoModeSwitchRequested, ExitPlanModeRequested, UserInputRequested,
};
use loopd_proto::params::inference::{RequestChunk, RequestStart};
use loopd_proto::params::pending::ExitPlanMode;
use loopd_proto::params::skill::ProvidedSkill;
use loopd_proto::params::ui::UserInputResponse;
use serde_json::Value;

use super::*;
use crate::client::{AskError, Asking, NoticeContent, SectionTexts};
use loopd_model::client_http::{CarryingClient, NotTaken, Taking};

/// What every client of a test notes: whose session an event was encoded for, and what was told.
#[derive(Default)]
struct Notes {
    encoded: Mutex<Vec<String>>,
    told: Mutex<Vec<Bytes>>,
}

/// A client that only listens.
struct Listener {
    id: ClientId,
    notes: Arc<Notes>,
}

impl Listener {
    fn client(notes: &Arc<Notes>) -> Arc<dyn Client> {
        Arc::new(Self {
            id: ClientId::next(),
            notes: notes.clone(),
        })
    }
}

impl Client for Listener {
    fn id(&self) -> ClientId {
        self.id
    }

    fn tell(&self, _class: Class, notice: &Notice<'_>) {
        let bytes = notice.bytes(|content| {
            let NoticeContent::Event { session, line, .. } = content else {
                return Bytes::new();
            };
            let mut encoded = self.notes.encoded.lock();
            encoded.push(session.to_string());
            Bytes::from(line.to_owned())
        });
        self.notes.told.lock().push(bytes);
    }

    fn ask_user(&self, _: &SessionId, _: &UserInputRequested) -> Asking<UserInputResponse> {
        futures::future::ready(Err(AskError::Gone)).boxed()
    }

    fn ask_plan(&self, _: &SessionId, _: &ExitPlanModeRequested) -> Asking<ExitPlanMode> {
        futures::future::ready(Err(AskError::Gone)).boxed()
    }

    fn ask_switch(&self, _: &SessionId, _: &AutoModeSwitchRequested) -> Asking<AutoModeSwitch> {
        futures::future::ready(Err(AskError::Gone)).boxed()
    }

    fn ask_token(&self, _: &SessionId, _: &str) -> Asking<String> {
        futures::future::ready(Err(AskError::Gone)).boxed()
    }

    fn invoke_hook(&self, _: &SessionId, _: &str, _: &Value) -> Asking<Option<Value>> {
        futures::future::ready(Err(AskError::Gone)).boxed()
    }

    fn ask_skills(&self, _: &SessionId) -> Asking<Vec<ProvidedSkill>> {
        futures::future::ready(Err(AskError::Gone)).boxed()
    }

    fn ask_skill(&self, _: &SessionId, _: &str) -> Asking<String> {
        futures::future::ready(Err(AskError::Gone)).boxed()
    }

    fn ask_sections(&self, _: &SessionId, _: &SectionTexts) -> Asking<SectionTexts> {
        futures::future::ready(Err(AskError::Gone)).boxed()
    }
}

impl CarryingClient for Listener {
    fn start_http(&self, _: &RequestStart<'_>) -> Taking {
        futures::future::ready(Err(NotTaken::Gone)).boxed()
    }

    fn send_http_chunk(&self, _: &RequestChunk<'_>) -> Taking {
        futures::future::ready(Err(NotTaken::Gone)).boxed()
    }

    fn is_gone(&self) -> bool {
        false
    }

    fn gone(&self) -> BoxFuture<'static, ()> {
        futures::future::pending().boxed()
    }
}

fn message(line: &'static str) -> OutgoingEvent<'static> {
    OutgoingEvent {
        class: Class::Event,
        kind: "assistant.message",
        line: line.into(),
        seq: None,
    }
}

#[test]
fn an_event_is_encoded_once_for_each_session_that_hears_it() {
    let notes = Arc::new(Notes::default());
    let top = Audience::new(SessionId::new("top"));
    let below = Audience::new(SessionId::new("below"));
    below.pass_on_to(Upstream {
        session: SessionId::new("top"),
        audience: top.clone(),
        agent: AgentId::new("agent"),
        streaming: true,
    });
    for audience in [&top, &top, &below, &below, &below] {
        audience.join(Listener::client(&notes));
    }
    below.publish(&message("{}"));
    assert_eq!(*notes.encoded.lock(), ["below", "top"]);
    let told = notes.told.lock();
    let places: std::collections::BTreeSet<_> = told.iter().map(|bytes| bytes.as_ptr()).collect();
    assert_eq!((told.len(), places.len()), (5, 2));
}

#[test]
fn nobody_listening_costs_no_bytes_and_what_is_held_comes_later() {
    let notes = Arc::new(Notes::default());
    let audience = Audience::new(SessionId::new("s"));
    audience.publish(&message("{}"));
    audience.join(Listener::client(&notes));
    audience.hold();
    audience.say(message(r#"{"second":1}"#));
    audience.publish(&message(r#"{"first":1}"#));
    audience.release();
    assert_eq!(notes.encoded.lock().len(), 2);
    let told = notes.told.lock();
    assert_eq!(*told, [r#"{"first":1}"#, r#"{"second":1}"#]);
}
