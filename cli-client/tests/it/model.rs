//! A scripted model for `loop`, so that a test decides what agents are started and what they say.

use std::process::{Child, Command, Stdio};

use loopd_tests::script::Recorded;
use loopd_tests::{Script, Turn};
use tokio::runtime::Runtime;

use crate::home::{Home, RunOutput};

/// The model, and a runtime for its server.
pub(crate) struct Model {
    runtime: Runtime,
    script: Script,
}

impl Model {
    pub(crate) fn answering(answer: impl FnMut(&Recorded) -> Turn + Send + 'static) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let script = runtime.block_on(Script::answering(answer));
        Self { runtime, script }
    }

    /// `loop` with this model.
    pub(crate) fn command(&self, home: &Home, args: &[&str]) -> Command {
        let mut command = home.command(args);
        command
            .env("OPENAI_BASE_URL", format!("{}/v1", self.script.url()))
            .env("LOOPD_MODEL", "scripted");
        command
    }

    pub(crate) fn run(&self, home: &Home, args: &[&str]) -> RunOutput {
        self.command(home, args).output().unwrap().into()
    }

    /// Runs a command that must succeed; returns its stdout.
    pub(crate) fn prints(&self, home: &Home, args: &[&str]) -> String {
        let said = self.run(home, args);
        assert_eq!(said.code, 0, "loop {args:?}: {said:?}");
        said.out
    }

    /// Starts a run that goes on beside the test.
    pub(crate) fn start(&self, home: &Home, args: &[&str]) -> Child {
        self.command(home, args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    /// Waits until the model was asked so often.
    pub(crate) fn asked(&self, count: usize) {
        self.runtime.block_on(self.script.asked(count));
    }

    /// How often the model was asked so far.
    pub(crate) fn requests(&self) -> usize {
        self.script.requests().len()
    }

    /// The keys of all requests so far.
    pub(crate) fn authorizations(&self) -> Vec<Option<String>> {
        let requests = self.script.requests();
        let key = |request: &Recorded| request.header("authorization").map(str::to_owned);
        requests.iter().map(key).collect()
    }

    /// The reasoning effort of the last request.
    pub(crate) fn last_effort(&self) -> Option<String> {
        let body = &self.script.last_request().body;
        let effort = body
            .get("reasoning_effort")
            .or_else(|| body.pointer("/reasoning/effort"));
        effort?.as_str().map(str::to_owned)
    }

    pub(crate) fn finish(mut self) {
        self.script.finish();
    }
}
