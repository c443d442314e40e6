//! A client behind a JSON-RPC connection: how notices and questions become messages.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use loopd_proto::event::ask::{
    AutoModeSwitch, AutoModeSwitchRequested, ExitPlanModeRequested, PlanAction, UserInputRequested,
};
use loopd_proto::id::{Seq, SessionId};
use loopd_proto::params::event_log::{LAGGED, Lagged, LaggedSession, cursor_after};
use loopd_proto::params::inference::{RequestChunk, RequestStart};
use loopd_proto::params::pending::ExitPlanMode;
use loopd_proto::params::skill::ProvidedSkill;
use loopd_proto::params::ui::UserInputResponse;
use loopd_proto::visible::visible;
use loopd_proto::wire::{
    self, CallError, CloseReason, Closed, LogPlace, Peer, PendingCall, notification,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::client::{
    AskError, Asking, Class, Client, ClientId, Notice, NoticeContent, SectionTexts,
};
use loopd_model::client_http::{CarryingClient, NotTaken, Taking};

/// One client, reached through its peer.
pub(super) struct ClientLink {
    id: ClientId,
    peer: Peer,
}

impl ClientLink {
    pub(super) fn new(peer: Peer) -> Self {
        peer.set_last_word(lagged);
        Self {
            id: ClientId::next(),
            peer,
        }
    }

    /// Sends a request whose answer only confirms that it arrived.
    fn send(&self, method: &str, params: &impl Serialize) -> Taking {
        let sent = self.peer.start_request(method, params);
        async move {
            match came(sent).await {
                Ok(_) => Ok(()),
                Err(CallError::Closed) => Err(NotTaken::Gone),
                Err(error) => Err(NotTaken::Refused(error.to_string())),
            }
        }
        .boxed()
    }
}

async fn came(sent: Result<PendingCall, Closed>) -> Result<Box<RawValue>, CallError> {
    sent?.await
}

/// Waits for the answer to a request and decodes it.
async fn answer<T: DeserializeOwned>(sent: Result<PendingCall, Closed>) -> Result<T, AskError> {
    let answer = came(sent).await.map_err(|error| match error {
        CallError::Closed => AskError::Gone,
        error @ CallError::Unreadable(_) => AskError::TooLarge(error.to_string()),
        error => AskError::Failed(error.to_string()),
    })?;
    serde_json::from_str(answer.get())
        .map_err(|error| AskError::Failed(CallError::Decode(error).to_string()))
}

/// The parameters of a request that only names a session.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct OfSession<'a> {
    session_id: &'a SessionId,
}

impl Client for ClientLink {
    fn id(&self) -> ClientId {
        self.id
    }

    fn tell(&self, class: Class, notice: &Notice<'_>) {
        let class = match class {
            Class::Event => wire::Class::Event,
            Class::Delta => wire::Class::Delta,
        };
        let place = match notice.content() {
            NoticeContent::Event { session, seq, .. } => seq.map(|seq| LogPlace {
                log: session.shared(),
                position: seq.0,
            }),
            NoticeContent::Lifecycle(_)
            | NoticeContent::ShellOutput(_)
            | NoticeContent::ShellExit(_) => None,
        };
        // The push fails if the peer is gone. Its sessions lose it when its connection ends.
        let bytes = notice.bytes(encode);
        self.peer.push_from(class, bytes, place).ok();
    }

    fn ask_user(
        &self,
        session: &SessionId,
        question: &UserInputRequested,
    ) -> Asking<UserInputResponse> {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Params<'a> {
            session_id: &'a SessionId,
            question: &'a str,
            #[serde(skip_serializing_if = "Option::is_none")]
            choices: Option<&'a Vec<String>>,
            allow_freeform: bool,
        }
        let params = Params {
            session_id: session,
            question: &question.question,
            choices: question.choices.as_ref(),
            allow_freeform: question.allow_freeform.unwrap_or(true),
        };
        answer(self.peer.start_request("userInput.request", &params)).boxed()
    }

    fn ask_plan(&self, session: &SessionId, plan: &ExitPlanModeRequested) -> Asking<ExitPlanMode> {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Params<'a> {
            session_id: &'a SessionId,
            summary: &'a str,
            plan_content: &'a str,
            actions: &'a [PlanAction],
            recommended_action: PlanAction,
        }
        let params = Params {
            session_id: session,
            summary: &plan.summary,
            plan_content: &plan.plan_content,
            actions: &plan.actions,
            recommended_action: plan.recommended_action,
        };
        answer(self.peer.start_request("exitPlanMode.request", &params)).boxed()
    }

    fn ask_switch(
        &self,
        session: &SessionId,
        limit: &AutoModeSwitchRequested,
    ) -> Asking<AutoModeSwitch> {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Params<'a> {
            session_id: &'a SessionId,
            #[serde(skip_serializing_if = "Option::is_none")]
            error_code: Option<&'a String>,
            #[serde(skip_serializing_if = "Option::is_none")]
            retry_after_seconds: Option<u64>,
        }
        #[derive(Deserialize)]
        struct Answer {
            response: AutoModeSwitch,
        }
        let params = Params {
            session_id: session,
            error_code: limit.error_code.as_ref(),
            retry_after_seconds: limit.retry_after_seconds,
        };
        let sent = self.peer.start_request("autoModeSwitch.request", &params);
        async move { Ok(answer::<Answer>(sent).await?.response) }.boxed()
    }

    fn ask_token(&self, session: &SessionId, provider: &str) -> Asking<String> {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Params<'a> {
            session_id: &'a SessionId,
            provider_name: &'a str,
        }
        #[derive(Deserialize)]
        struct Answer {
            token: String,
        }
        let params = Params {
            session_id: session,
            provider_name: provider,
        };
        let sent = self.peer.start_request("providerToken.getToken", &params);
        async move { Ok(answer::<Answer>(sent).await?.token) }.boxed()
    }

    fn invoke_hook(&self, session: &SessionId, kind: &str, input: &Value) -> Asking<Option<Value>> {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Params<'a> {
            session_id: &'a SessionId,
            hook_type: &'a str,
            input: &'a Value,
        }
        let params = Params {
            session_id: session,
            hook_type: kind,
            input,
        };
        let sent = self.peer.start_request("hooks.invoke", &params);
        async move {
            // A client without a handler of this kind may answer with null.
            let members = answer::<Option<Map<String, Value>>>(sent).await?;
            let mut members = members.unwrap_or_default();
            let output = members.remove("output");
            // What stands beside it may be the decision of a guard.
            match members.keys().next() {
                None => Ok(output),
                Some(name) => Err(AskError::Failed(format!(
                    "its answer has the member `{}` beside `output`; what the hook says belongs into `output`",
                    visible(name)
                ))),
            }
        }
        .boxed()
    }

    fn ask_skills(&self, session: &SessionId) -> Asking<Vec<ProvidedSkill>> {
        #[derive(Deserialize)]
        struct Answer {
            skills: Vec<ProvidedSkill>,
        }
        let params = OfSession {
            session_id: session,
        };
        let sent = self.peer.start_request("skillProvider.list", &params);
        async move { Ok(answer::<Answer>(sent).await?.skills) }.boxed()
    }

    fn ask_skill(&self, session: &SessionId, name: &str) -> Asking<String> {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Params<'a> {
            session_id: &'a SessionId,
            name: &'a str,
        }
        #[derive(Deserialize)]
        struct Answer {
            markdown: String,
        }
        let params = Params {
            session_id: session,
            name,
        };
        let sent = self.peer.start_request("skillProvider.read", &params);
        async move { Ok(answer::<Answer>(sent).await?.markdown) }.boxed()
    }

    fn ask_sections(&self, session: &SessionId, sections: &SectionTexts) -> Asking<SectionTexts> {
        #[derive(Serialize)]
        struct Section<'a> {
            content: &'a str,
        }
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Params<'a> {
            session_id: &'a SessionId,
            sections: BTreeMap<&'a str, Section<'a>>,
        }
        #[derive(Deserialize)]
        struct Rewritten {
            content: String,
        }
        #[derive(Deserialize)]
        struct Answer {
            sections: BTreeMap<String, Rewritten>,
        }
        let sections = sections.iter();
        let params = Params {
            session_id: session,
            sections: sections
                .map(|(name, content)| (name.as_str(), Section { content }))
                .collect(),
        };
        let sent = self.peer.start_request("systemMessage.transform", &params);
        async move {
            let sections = answer::<Answer>(sent).await?.sections.into_iter();
            Ok(sections
                .map(|(name, section)| (name, section.content))
                .collect())
        }
        .boxed()
    }
}

impl CarryingClient for ClientLink {
    fn start_http(&self, start: &RequestStart<'_>) -> Taking {
        self.send("llmInference.httpRequestStart", start)
    }

    fn send_http_chunk(&self, chunk: &RequestChunk<'_>) -> Taking {
        self.send("llmInference.httpRequestChunk", chunk)
    }

    fn is_gone(&self) -> bool {
        self.peer.is_closed()
    }

    fn gone(&self) -> BoxFuture<'static, ()> {
        let peer = self.peer.clone();
        async move {
            peer.closed().await;
        }
        .boxed()
    }
}

/// Encodes a notice as a JSON-RPC notification.
fn encode(content: NoticeContent<'_>) -> Bytes {
    match content {
        NoticeContent::Event { session, line, .. } => event(session, line),
        NoticeContent::Lifecycle(lifecycle) => notification("session.lifecycle", lifecycle),
        NoticeContent::ShellOutput(piece) => notification("shell.output", piece),
        NoticeContent::ShellExit(exit) => notification("shell.exit", exit),
    }
}

/// Makes the last message for a client that reads too slowly: where it has to read on.
fn lagged(missed: &BTreeMap<Arc<str>, u64>) -> Bytes {
    let sessions = missed.iter().map(|(session, first)| LaggedSession {
        session_id: SessionId::new(session.clone()),
        cursor: cursor_after(Seq(first.saturating_sub(1))),
    });
    let lagged = Lagged {
        reason: CloseReason::TooSlow.to_string(),
        sessions: sessions.collect(),
    };
    notification(LAGGED, &lagged)
}

/// Wraps the stored line of an event. The line was serialised once, for the log and all clients.
fn event(session: &SessionId, line: &str) -> Bytes {
    const HEAD: &str = r#"{"jsonrpc":"2.0","method":"session.event","params":{"sessionId":"#;
    let mut frame = Vec::with_capacity(HEAD.len() + line.len() + session.as_str().len() + 32);
    frame.extend_from_slice(HEAD.as_bytes());
    // Writing a string to memory cannot fail.
    serde_json::to_writer(&mut frame, session.as_str()).ok();
    frame.extend_from_slice(br#","event":"#);
    frame.extend_from_slice(line.as_bytes());
    frame.extend_from_slice(b"}}");
    Bytes::from(frame)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests fail by panicking")]
mod tests;
