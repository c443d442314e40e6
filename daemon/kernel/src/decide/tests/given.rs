//! States to start from, as logs. Messages are called `m1`, `m2`, calls `a`, `b`. The question of
//! call `a` is `r-a`. The interaction is `i`, so the first turn is `i/0`.

mod event;
mod request;

use loopd_proto::event::Durable;
use loopd_proto::id::SessionId;
use loopd_proto::permission::Permissions;
use loopd_proto::time::Timestamp;
use serde_json::{Value, json};

pub(crate) use self::event::*;
pub(crate) use self::request::*;
use super::{head, through_json};
use crate::apply::apply;
use crate::command::RequestFacts;
use crate::context_size::RequestSize;
use crate::context_window::{ContextWindow, RoomRules};
use crate::state::State;

/// A log, and the surroundings of the session: whether a client is attached, whether the launch
/// allows everything, and whether clients run the tools that are called.
pub(crate) struct Given {
    pub(super) events: Vec<Durable>,
    pub(super) attended: bool,
    pub(super) bypass: bool,
    pub(super) inherited: Option<Permissions>,
    pub(super) has_client_tools: bool,
    pub(super) tools_end_turns: bool,
    pub(super) has_task_complete: bool,
    pub(super) has_commands: bool,
    pub(super) guarded: bool,
    pub(super) can_switch_model: bool,
    pub(super) fallback_models: Vec<String>,
    pub(super) longest_wait: u64,
    pub(super) most_wakes: u32,
    pub(super) makes_titles: bool,
}

impl Given {
    /// The state after one more event.
    pub(crate) fn and(mut self, event: Durable) -> Self {
        self.events.push(event);
        self
    }

    pub(crate) fn and_all(mut self, events: impl IntoIterator<Item = Durable>) -> Self {
        self.events.extend(events);
        self
    }

    /// The same with no client attached.
    pub(crate) fn unattended(mut self) -> Self {
        self.attended = false;
        self
    }

    /// The same with a chain of models for the failures of a provider.
    pub(crate) fn falling_back_to(mut self, models: &[&str]) -> Self {
        self.fallback_models = models.iter().map(|model| (*model).to_owned()).collect();
        self
    }

    /// The same in a daemon whose turns wait so many seconds for a provider.
    pub(crate) fn waiting_up_to(mut self, seconds: u64) -> Self {
        self.longest_wait = seconds;
        self
    }

    /// The same in a daemon where notifications start so many runs between two messages.
    pub(crate) fn waking_up_to(mut self, runs: u32) -> Self {
        self.most_wakes = runs;
        self
    }

    /// The same in a daemon where a model makes titles.
    pub(crate) fn making_titles(mut self) -> Self {
        self.makes_titles = true;
        self
    }

    /// The same in a launch that allows everything.
    pub(crate) fn allowing_all(mut self) -> Self {
        self.bypass = true;
        self
    }

    /// The same in a sub-agent with these permissions of its parents.
    pub(crate) fn inheriting(mut self, permissions: &Value) -> Self {
        self.inherited = Some(super::when::data(permissions.clone()));
        self
    }

    /// The same with hooks of all kinds, which may block the end of the loop twice.
    pub(crate) fn with_hooks(mut self) -> Self {
        self.guarded = true;
        self
    }

    /// The same with a client that can be asked for another model.
    pub(crate) fn asking_for_models(mut self) -> Self {
        self.can_switch_model = true;
        self
    }

    /// The same with a client that runs slash commands.
    pub(crate) fn with_commands(mut self) -> Self {
        self.has_commands = true;
        self
    }

    /// The same after the clients that ran tools have left.
    pub(crate) fn without_client_tools(mut self) -> Self {
        self.has_client_tools = false;
        self
    }

    /// The same with tools that end the turn.
    pub(crate) fn with_terminal_tools(mut self) -> Self {
        self.tools_end_turns = true;
        self
    }

    /// The same with options that keep `task_complete` from the model.
    pub(crate) fn without_task_complete(mut self) -> Self {
        self.has_task_complete = false;
        self
    }

    /// The size of the next request to a model that takes 10,000 tokens, 1,000 of which are the system
    /// message and the tools.
    pub(crate) fn request(state: &State) -> RequestFacts {
        RequestFacts {
            model: "gpt".to_owned(),
            window: ContextWindow {
                limit: 10_000,
                output: None,
            },
            rules: RoomRules::default(),
            size: RequestSize {
                system: 500,
                tools: 500,
                conversation: state.conversation_tokens(),
            },
            factor: 1.0,
            overflowed: false,
        }
    }

    pub(crate) fn state(&self) -> State {
        let mut state = State::new(SessionId::from("s"));
        for event in &self.events {
            let (head, event) = through_json(&head(&state, Timestamp(0)), event);
            apply(&mut state, &head, &event);
        }
        state
    }
}

/// Nothing is stored yet.
pub(crate) fn nothing() -> Given {
    Given {
        events: Vec::new(),
        attended: true,
        bypass: false,
        inherited: None,
        has_client_tools: true,
        tools_end_turns: false,
        has_task_complete: true,
        has_commands: false,
        guarded: false,
        can_switch_model: false,
        fallback_models: Vec::new(),
        longest_wait: 0,
        most_wakes: 100,
        makes_titles: false,
    }
}

/// A session that was created, has a name, and was never used.
pub(crate) fn idle() -> Given {
    nothing()
        .and(event(
            "session.start",
            json!({ "sessionId": "s", "version": 1, "producer": "loopd", "copilotVersion": "1",
                "startTime": "1970-01-01T00:00:00.000Z", "selectedModel": "gpt",
                "context": { "cwd": "/work" } }),
        ))
        .and(event(
            "loopd.configured",
            json!({ "options": { "model": "gpt" }, "workingDirectory": "/work" }),
        ))
        .and(event(
            "loopd.named",
            json!({ "name": "title", "by": "auto" }),
        ))
}

/// A message is being prepared.
pub(crate) fn preparing() -> Given {
    idle().and(queued("m1")).and(taken(&["m1"]))
}

/// A slash command was handed to the clients.
pub(crate) fn commanding() -> Given {
    idle().and(queued_command("c1")).and(taken(&["c1"]))
}

/// Notifications of tasks are being prepared.
pub(crate) fn woken() -> Given {
    idle().and(event("loopd.woken", json!({})))
}

/// The model was called.
pub(crate) fn model_called() -> Given {
    preparing()
        .and(event(
            "system.message",
            json!({ "role": "system", "content": "system" }),
        ))
        .and(event(
            "user.message",
            json!({ "messageId": "m1", "content": "hello" }),
        ))
        .and(turn_started(0))
}

/// The model asked for these calls, which are being assessed or run.
pub(crate) fn calls_started(calls: &[&str]) -> Given {
    let requests: Vec<Value> = calls
        .iter()
        .map(|id| json!({ "toolCallId": id, "name": "edit", "arguments": {}, "type": "function" }))
        .collect();
    let start = |id: &&str| {
        event(
            "tool.execution_start",
            json!({ "toolCallId": id, "toolName": "edit", "arguments": {}, "turnId": "0" }),
        )
    };
    model_called()
        .and(event(
            "assistant.message",
            json!({ "messageId": "reply", "content": "", "toolRequests": requests }),
        ))
        .and_all(calls.iter().map(start))
}

/// Two calls are under way.
pub(crate) fn two_calls() -> Given {
    calls_started(&["a", "b"])
}

/// A person has to allow the call `a`.
pub(crate) fn asking() -> Given {
    calls_started(&["a"]).and(permission_asked("a", write("/work/file")))
}

/// A client runs the call `a`.
pub(crate) fn client_runs() -> Given {
    calls_started(&["a"]).and(client_asked("a"))
}

/// The call `a` asks the user something.
pub(crate) fn user_asked() -> Given {
    calls_started(&["a"]).and(question("a"))
}

/// The session is in plan mode, and one call has started.
pub(crate) fn planning() -> Given {
    calls_started(&["a"]).and(event(
        "session.mode_changed",
        json!({ "previousMode": "interactive", "newMode": "plan" }),
    ))
}

/// The model asks to leave plan mode.
pub(crate) fn plan_asked() -> Given {
    planning().and(event(
        "loopd.asked",
        json!({ "kind": "exitplanmode", "requestId": "r-a", "summary": "Short", "planContent": "Long",
            "actions": ["autopilot", "interactive"], "recommendedAction": "interactive", "toolCallId": "a" }),
    ))
}

/// Two calls run, and the turn is being aborted.
pub(crate) fn aborting() -> Given {
    two_calls().and(event("abort", json!({ "reason": "user_initiated" })))
}

/// The session was shut down.
pub(crate) fn closed() -> Given {
    idle().and(event(
        "session.shutdown",
        json!({ "shutdownType": "routine", "totalApiDurationMs": 0, "sessionStartTime": 0,
            "codeChanges": { "linesAdded": 0, "linesRemoved": 0, "filesModified": [] },
            "modelMetrics": {} }),
    ))
}
