//! A whole daemon in this process: real JSON-RPC, sessions, tools and providers, with an in-memory
//! store and in-memory connections.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use loopd::app::App;
use loopd::front::connection::Trust;
use loopd::launch::{Launch, LaunchOptions};
use loopd::session::SessionHandle;
use loopd_kernel::state::State;
use loopd_model::secret::Secret;
use loopd_proto::id::SessionId;
use loopd_store::{Location, SqliteStore, Store};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::DuplexStream;

use crate::client::Client;
use crate::held_store::{Commits, HeldStore};
use crate::replay;
use crate::script::Script;
use crate::transcript::Scrub;
use crate::within;

/// The size of a connection's buffer, in bytes.
const PIPE: usize = 64 * 1024;

/// Sets up a daemon.
#[derive(Default)]
pub struct Builder {
    script: Option<Script>,
    environment: BTreeMap<String, String>,
    copilot: bool,
    token: Option<String>,
    yolo: bool,
    commits: Option<Commits>,
    config: Option<String>,
}

impl Builder {
    /// Lets sessions use this model through their own `provider` configuration.
    #[must_use]
    pub fn script(mut self, script: Script) -> Self {
        self.script = Some(script);
        self
    }

    /// Lets sessions use this model through the launch's environment; no session names a model.
    #[must_use]
    pub fn copilot(mut self, script: Script) -> Self {
        self.script = Some(script);
        self.copilot = true;
        self
    }

    /// Adds a variable to the launch's environment.
    #[must_use]
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.environment.insert(name.to_owned(), value.to_owned());
        self
    }

    /// Makes connections authenticate with this token, as TCP connections have to.
    #[must_use]
    pub fn token(mut self, token: &str) -> Self {
        self.token = Some(token.to_owned());
        self
    }

    /// Allows every tool without asking.
    #[must_use]
    pub fn yolo(mut self) -> Self {
        self.yolo = true;
        self
    }

    /// Lets the test hold the commits of sessions, or make them fail.
    #[must_use]
    pub fn commits(mut self, commits: &Commits) -> Self {
        self.commits = Some(commits.clone());
        self
    }

    /// Sets the text of `config.toml` in the home.
    #[must_use]
    pub fn config(mut self, text: &str) -> Self {
        self.config = Some(text.to_owned());
        self
    }

    pub async fn start(self) -> Daemon {
        let home = TempDir::new().unwrap();
        let work = TempDir::new().unwrap();
        let store = SqliteStore::open(Location::Memory).await.unwrap();
        let mut store: Arc<dyn Store> = Arc::new(store);
        if let Some(commits) = self.commits {
            store = Arc::new(HeldStore::new(store, commits));
        }
        if let Some(text) = self.config {
            std::fs::write(home.path().join(loopd::config::FILE), text).unwrap();
        }
        let app = App::with_store(home.path(), store, None).unwrap();
        let mut environment = self.environment;
        let path = std::env::var("PATH").unwrap();
        environment.entry("PATH".to_owned()).or_insert(path);
        if self.copilot {
            let url = self.script.as_ref().unwrap().url().to_owned();
            environment.insert("COPILOT_API_URL".to_owned(), url);
        }
        let trust = match self.token {
            Some(_) => Trust::Token,
            None => Trust::Transport,
        };
        let mut daemon = Daemon {
            app,
            launch: None,
            environment,
            token: self.token,
            yolo: self.yolo,
            copilot: self.copilot,
            trust,
            script: self.script,
            clients: Mutex::default(),
            home,
            work,
            finished: false,
        };
        daemon.launch = Some(daemon.new_launch());
        daemon
    }
}

/// A daemon under test.
pub struct Daemon {
    pub app: Arc<App>,
    launch: Option<Arc<Launch>>,
    environment: BTreeMap<String, String>,
    token: Option<String>,
    yolo: bool,
    copilot: bool,
    trust: Trust,
    script: Option<Script>,
    clients: Mutex<Vec<Client>>,
    home: TempDir,
    work: TempDir,
    finished: bool,
}

impl Daemon {
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Starts a daemon whose sessions use this model.
    pub async fn with(script: Script) -> Self {
        Self::builder().script(script).start().await
    }

    /// Starts a daemon with a model that expects exactly these turns.
    pub async fn playing(turns: impl IntoIterator<Item = crate::Turn>) -> Self {
        Self::with(Script::play(turns).await).await
    }

    pub fn script(&self) -> &Script {
        self.script
            .as_ref()
            .expect("the daemon has a scripted model")
    }

    /// The home of the daemon.
    pub fn home(&self) -> &Path {
        self.home.path()
    }

    /// Returns the working directory of sessions.
    pub fn work(&self) -> &Path {
        self.work.path()
    }

    /// Returns the path of a file in the working directory of sessions.
    pub fn file(&self, name: &str) -> PathBuf {
        self.work.path().join(name)
    }

    /// Returns the launch that clients belong to by default.
    pub fn launch(&self) -> Arc<Launch> {
        self.launch.clone().expect("made at the start")
    }

    /// Makes another launch with the same environment, like another app of the same user.
    pub fn new_launch(&self) -> Arc<Launch> {
        Arc::new(Launch::new(
            self.work.path().to_path_buf(),
            self.environment.clone(),
            LaunchOptions {
                connection_token: self.token.clone().map(Secret::new),
                yolo: self.yolo,
                ..LaunchOptions::default()
            },
        ))
    }

    /// Opens a new connection of the default launch.
    pub fn client(&self) -> Client {
        self.client_of(self.launch())
    }

    /// Opens a new connection of a launch.
    pub fn client_of(&self, launch: Arc<Launch>) -> Client {
        let (ours, theirs) = tokio::io::duplex(PIPE);
        let served = self.serve(theirs, launch);
        let client = Client::over(ours, self.defaults(), self.scrub()).served_by(served);
        self.clients.lock().unwrap().push(client.clone());
        client
    }

    /// Opens a connection and returns the client's end, for tests that write their own bytes.
    pub fn raw_connection(&self) -> DuplexStream {
        let (ours, theirs) = tokio::io::duplex(PIPE);
        self.serve(theirs, self.launch());
        ours
    }

    fn serve(
        &self,
        stream: DuplexStream,
        launch: Arc<Launch>,
    ) -> tokio::task::JoinHandle<loopd_proto::wire::CloseReason> {
        let (app, trust) = (self.app.clone(), self.trust);
        tokio::spawn(async move { app.serve(stream, launch, trust).await })
    }

    fn defaults(&self) -> Value {
        match &self.script {
            Some(script) if !self.copilot => json!({
                "model": "scripted",
                "provider": {"type": "openai", "baseUrl": script.url(), "apiKey": "secret-key"},
                "enableConfigDiscovery": true,
            }),
            Some(_) | None => json!({"enableConfigDiscovery": true}),
        }
    }

    fn scrub(&self) -> Scrub {
        let path = |path: &Path| path.to_string_lossy().into_owned();
        let scrub = Scrub::default()
            .with(path(self.work.path()), "<work>")
            .with(path(self.home.path()), "<home>");
        match &self.script {
            Some(script) => scrub.with(script.url(), "<model>"),
            None => scrub,
        }
    }

    /// Returns the live session with this id.
    pub fn live(&self, id: &str) -> SessionHandle {
        let live = self.app.sessions.get(&SessionId::from(id));
        live.unwrap_or_else(|| panic!("the session {id} is not live"))
    }

    /// Returns the state of a live session.
    pub async fn state(&self, id: &str) -> State {
        self.live(id).state(State::clone).await.unwrap()
    }

    /// Waits until the state of a live session fits, without a client.
    pub async fn until(&self, id: &str, what: &str, fits: impl Fn(&State) -> bool) -> State {
        let live = self.live(id);
        within(what, async {
            loop {
                let look = live.view(|view| (view.state.clone(), view.ticks.subscribe()));
                let (state, mut ticks) = look.await.unwrap();
                if fits(&state) {
                    return state;
                }
                ticks.changed().await.unwrap();
            }
        })
        .await
    }

    /// Ends the daemon and starts another one on the same store and the same home. Clients have to
    /// connect again.
    pub async fn restart(&mut self) {
        let store = self.app.services.store.clone();
        for id in self.app.sessions.ids() {
            if let Some(session) = self.app.sessions.get(&id) {
                within("a session to stop", session.stop()).await;
            }
        }
        let clients = self.clients.lock().unwrap().clone();
        for client in clients.iter().filter(|client| client.is_connected()) {
            client.vanish().await;
        }
        within("the sessions to stop", self.app.sessions.drained()).await;
        self.app.services.processes.shutdown().await;
        self.app = App::with_store(self.home.path(), store, None).unwrap();
        self.launch = Some(self.new_launch());
    }

    /// Checks what has to hold after every test, then ends the daemon.
    pub async fn finish(mut self) {
        self.finished = true;
        let clients = std::mem::take(&mut *self.clients.lock().unwrap());
        within(
            "the replay of every session",
            Box::pin(replay::check(&self.app, &clients)),
        )
        .await;
        for client in &clients {
            let open = client.open_requests();
            assert!(
                open.is_empty(),
                "the daemon asked and nobody looked: {open:?}"
            );
        }
        within("the daemon to close", self.app.close()).await;
        if let Some(script) = &mut self.script {
            script.finish();
        }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        assert!(
            self.finished || std::thread::panicking(),
            "a test has to end with `daemon.finish().await`, which replays its sessions"
        );
    }
}
