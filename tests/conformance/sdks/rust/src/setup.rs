//! Clients and sessions: how they are set up, and what they answer when the agent asks.

use std::env;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use github_copilot_sdk::handler::{
    PermissionHandler, PermissionResult, UserInputHandler, UserInputResponse,
};
use github_copilot_sdk::session::Session;
use github_copilot_sdk::tool::ToolHandler;
use github_copilot_sdk::types::{
    PermissionRequestData, ProviderConfig, RequestId, ResumeSessionConfig, SessionConfig,
    SessionId, Tool, ToolInvocation, ToolResult,
};
use github_copilot_sdk::{CliProgram, Client, ClientOptions, Error, Transport};
use serde_json::{Value, json};
use tokio::sync::watch;

#[allow(clippy::disallowed_methods)] // The rule is the daemon's; this is a client.
fn variable(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| panic!("{name} is not set; sdks/run.mjs sets it"))
}

/// One run of the program, in a folder of its own.
pub struct Program {
    pub place: PathBuf,
    pub asked: Arc<Asked>,
}

impl Program {
    pub fn new() -> Self {
        Self {
            place: variable("PLACE").into(),
            asked: Arc::default(),
        }
    }

    pub async fn start(&self, transport: Transport) -> Result<Client, Error> {
        let options = ClientOptions::new()
            .with_program(CliProgram::Path(variable("LOOPD_BIN").into()))
            .with_transport(transport)
            .with_base_directory(self.place.join("home"))
            .with_cwd(self.place.join("work"));
        Client::start(options).await
    }

    fn tools(&self) -> [Tool; 2] {
        let word = json!({"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]});
        let nothing = json!({"type": "object", "properties": {}});
        [
            ("lookup", "Looks a word up.", word),
            ("gate", "Waits.", nothing),
        ]
        .map(|(name, description, parameters)| {
            Tool::new(name)
                .with_description(description)
                .with_parameters(parameters)
                .with_handler(self.asked.clone())
        })
    }

    fn provider(&self) -> ProviderConfig {
        ProviderConfig::new(variable("MODEL_URL"))
            .with_provider_type("openai")
            .with_api_key("none")
    }

    pub fn config(&self) -> SessionConfig {
        SessionConfig::default()
            .with_model("scripted")
            .with_provider(self.provider())
            .with_streaming(true)
            .with_permission_handler(self.asked.clone())
            .with_user_input_handler(self.asked.clone())
            .with_tools(self.tools())
    }

    pub async fn resume(&self, client: &Client, id: &SessionId) -> Result<Session, Error> {
        let config = ResumeSessionConfig::new(id.clone())
            .with_model("scripted")
            .with_provider(self.provider())
            .with_streaming(true)
            .with_permission_handler(self.asked.clone())
            .with_user_input_handler(self.asked.clone())
            .with_tools(self.tools());
        client.resume_session(config).await
    }
}

/// A tool call that goes on until the program opens the gate.
#[derive(Default)]
pub struct Gate {
    pub entered: watch::Sender<bool>,
    pub open: watch::Sender<bool>,
}

/// What the client was asked, and how it answers.
#[derive(Default)]
pub struct Asked {
    pub tools: Mutex<Vec<Value>>,
    pub commands: Mutex<Vec<Value>>,
    pub questions: Mutex<Vec<String>>,
    gate: Mutex<Arc<Gate>>,
}

impl Asked {
    pub fn new_gate(&self) -> Arc<Gate> {
        let gate = Arc::new(Gate::default());
        *self.gate.lock().unwrap() = gate.clone();
        gate
    }
}

#[async_trait]
impl ToolHandler for Asked {
    async fn call(&self, call: ToolInvocation) -> Result<ToolResult, Error> {
        if call.tool_name == "gate" {
            let gate = self.gate.lock().unwrap().clone();
            gate.entered.send_replace(true);
            let _ = gate.open.subscribe().wait_for(|is| *is).await;
            return Ok(ToolResult::Text("open".to_owned()));
        }
        let word = call.arguments["word"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        self.tools.lock().unwrap().push(call.arguments);
        Ok(ToolResult::Text(format!("{word} is a fruit")))
    }
}

#[async_trait]
impl PermissionHandler for Asked {
    async fn handle(
        &self,
        _: SessionId,
        _: RequestId,
        request: PermissionRequestData,
    ) -> PermissionResult {
        let command = &request.extra["permissionRequest"]["fullCommandText"];
        if command.is_string() {
            self.commands.lock().unwrap().push(command.clone());
        }
        PermissionResult::approve_once()
    }
}

#[async_trait]
impl UserInputHandler for Asked {
    async fn handle(
        &self,
        _: SessionId,
        question: String,
        _: Option<Vec<String>>,
        _: Option<bool>,
    ) -> Option<UserInputResponse> {
        self.questions.lock().unwrap().push(question);
        Some(UserInputResponse {
            answer: "green".to_owned(),
            was_freeform: true,
        })
    }
}
