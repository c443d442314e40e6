//! The life of a server: started, connected, ended when idle, started again after a crash.

use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::lists::{Listed, Lists};
use super::{Known, Phase, Server, Setup};
use crate::config::ServerConfig;
use crate::connection::{ConnectError, Connected, END_SEEN_WITHIN, connect, last_words};
use crate::log::ServerLog;
use crate::port::ServerNews;
use crate::prompts::ServerPrompt;
use crate::tools::ServerTool;

/// How often a server is started again by itself before somebody has to need it.
const MOST_RESTARTS: u32 = 5;
/// The wait before the first start after a failure; it doubles with each.
const FIRST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// A server that was connected for so long has not failed at its start.
const STEADY: Duration = Duration::from_secs(60);
/// How long answers on a connection that the server has forgotten are waited for.
const ANSWERED_WITHIN: Duration = Duration::from_secs(5);
/// How long the end of a connection may take before its program is ended.
const CLOSED_WITHIN: Duration = Duration::from_millis(500);

/// An order to the task of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Control {
    Start,
    Restart,
    /// The server does not know the connection of this start any more.
    Forgotten(u64),
    Stop,
    /// The session ends.
    End,
}

/// The task of a server.
pub(super) struct Life {
    name: Arc<str>,
    server: Weak<Server>,
    setup: Setup,
    log: ServerLog,
    orders: mpsc::Receiver<Control>,
    /// Failures in a row.
    failures: u32,
    /// Which start the current connection is.
    attempt: u64,
}

/// Why a connection is over.
enum Over {
    Ordered(Control),
    Idle,
    Gone(String),
}

impl Life {
    pub(super) fn new(server: &Arc<Server>, orders: mpsc::Receiver<Control>) -> Self {
        Self {
            name: server.name.clone(),
            server: Arc::downgrade(server),
            setup: server.setup.clone(),
            log: server.log.clone(),
            orders,
            failures: 0,
            attempt: 0,
        }
    }

    /// Runs until the session ends.
    pub(super) async fn run(mut self) {
        let mut next = self.next_order().await;
        while let Some(order) = next {
            next = match order {
                Control::Start | Control::Restart | Control::Forgotten(_) => {
                    Box::pin(self.live()).await
                }
                Control::Stop => {
                    self.set(Phase::Stopped);
                    self.next_order().await
                }
                Control::End => return,
            };
        }
    }

    /// Waits for an order, and passes over those about an earlier connection.
    async fn next_order(&mut self) -> Option<Control> {
        loop {
            match self.orders.recv().await {
                Some(Control::Forgotten(attempt)) if attempt != self.attempt => {}
                order => return order,
            }
        }
    }

    /// Connects once and stays connected as long as possible. Returns the next order.
    async fn live(&mut self) -> Option<Control> {
        let config = self.server.upgrade()?.config();
        let mut attempt = self.attempt;
        self.update(|known| {
            known.phase = Phase::Starting;
            known.attempt += 1;
            attempt = known.attempt;
        });
        self.attempt = attempt;
        let cancel = CancellationToken::new();
        let tokens = self.setup.tokens.clone();
        let ports = self.setup.ports.clone();
        let log = self.log.clone();
        let connecting = connect(&config, &ports, tokens, &log, &cancel);
        tokio::pin!(connecting);
        let mut interrupted = None;
        let connected = loop {
            tokio::select! {
                connected = &mut connecting => break connected,
                order = self.orders.recv(), if interrupted.is_none() => match order {
                    // It starts already.
                    Some(Control::Start | Control::Forgotten(_)) => {}
                    // What was started is ended before anything else is done.
                    order => {
                        interrupted = Some(order);
                        cancel.cancel();
                    }
                },
            }
        };
        match connected {
            Ok(connected) => {
                let since = Instant::now();
                let over = match interrupted {
                    Some(order) => {
                        self.close(connected).await;
                        return order;
                    }
                    None => self.stay(connected, &config).await,
                };
                match over {
                    Over::Ordered(Control::Stop) => Some(Control::Stop),
                    Over::Ordered(order) => {
                        self.failures = 0;
                        Some(order)
                    }
                    Over::Idle => {
                        self.failures = 0;
                        self.set(Phase::Idle);
                        self.next_order().await
                    }
                    Over::Gone(why) => {
                        if since.elapsed() >= STEADY {
                            self.failures = 0;
                        }
                        self.failed(why).await
                    }
                }
            }
            Err(_) if interrupted.is_some() => interrupted.flatten(),
            Err(ConnectError::NeedsAuth) => {
                self.set(Phase::NeedsAuth);
                let tokens = self.setup.tokens.clone();
                let renewed = async {
                    match &tokens {
                        Some(tokens) => tokens.renewed().await,
                        None => std::future::pending().await,
                    }
                };
                tokio::select! {
                    order = self.next_order() => order,
                    // Somebody has logged in.
                    () = renewed => Some(Control::Start),
                }
            }
            Err(ConnectError::Cancelled) => self.next_order().await,
            Err(ConnectError::Failed(why)) => {
                if config.keeps_tools {
                    let (cache, of) = (self.setup.cache.clone(), config.fingerprint());
                    tokio::task::spawn_blocking(move || cache.note_failure(&of));
                }
                self.failed(why).await
            }
        }
    }

    /// Tells of a failure, and waits until the server is started again.
    async fn failed(&mut self, why: String) -> Option<Control> {
        self.failures += 1;
        tracing::info!(server = %self.name, why, "an MCP server failed");
        let since_ms = self.setup.ports.session.now_ms();
        // It may be started again before anybody looks at its status.
        self.tell(ServerNews::Failed(why.clone()));
        self.set(Phase::Failed {
            why: why.into(),
            since_ms,
        });
        if self.failures > MOST_RESTARTS {
            return self.next_order().await;
        }
        let doubled = FIRST_WAIT.saturating_mul(1 << (self.failures - 1).min(16));
        tokio::select! {
            () = tokio::time::sleep(doubled.min(LONGEST_WAIT)) => Some(Control::Start),
            order = self.next_order() => order,
        }
    }

    /// Looks after a connection until it is over.
    async fn stay(&mut self, mut connected: Connected, config: &Arc<ServerConfig>) -> Over {
        let connection = connected.connection.clone();
        let listed = tokio::select! {
            listed = connection.list_tools(config) => listed,
            order = self.orders.recv() => {
                self.close(connected).await;
                return Over::Ordered(order.unwrap_or(Control::End));
            }
        };
        match listed {
            Ok(tools) => {
                let instructions = connection.instructions();
                // Whoever sees that it is connected sees its tools, too.
                let phase = Phase::Connected(connection.clone());
                self.take_tools(config, tools, |known| {
                    known.phase = phase;
                    known.instructions = instructions.map(Into::into);
                });
            }
            Err(error) => {
                self.close(connected).await;
                return Over::Gone(format!("its tools could not be listed: {error}"));
            }
        }
        let mut lists = Lists::new(&connection, config);
        let mut errors = connected.errors.take();
        let log = self.log.clone();
        let mut idle_at = Instant::now() + self.setup.idle;
        let over = loop {
            tokio::select! {
                order = self.next_order() => match order {
                    Some(Control::Start) => {}
                    order => break Over::Ordered(order.unwrap_or(Control::End)),
                },
                why = gone(&connected, &mut errors, &log) => break Over::Gone(why),
                () = connected.lists_changed.notified() => lists.ask_again(),
                listed = lists.next() => match listed {
                    Listed::Tools(Ok(tools)) => self.take_tools(config, tools, |_| {}),
                    Listed::Tools(Err(error)) => {
                        self.log.add(&format!("its tools could not be listed: {error}"));
                    }
                    Listed::Prompts(prompts) => self.take_prompts(prompts),
                },
                () = tokio::time::sleep_until(idle_at) => match connection.rests_since() {
                    Some(since) if since.elapsed() >= self.setup.idle => break Over::Idle,
                    Some(since) => idle_at = since + self.setup.idle,
                    None => idle_at = Instant::now() + self.setup.idle,
                },
            }
        };
        drop(lists);
        if matches!(over, Over::Ordered(Control::Forgotten(_))) {
            // What was asked meanwhile is answered in the same way, if it is answered at all.
            self.set(Phase::Starting);
            tokio::time::timeout(ANSWERED_WITHIN, connection.rest())
                .await
                .ok();
        }
        self.close(connected).await;
        over
    }

    /// Takes the tools that the server has now, with what is wrong with others, and in one what `also`
    /// changes.
    fn take_tools(
        &self,
        config: &Arc<ServerConfig>,
        (tools, problems): (Vec<ServerTool>, Vec<String>),
        also: impl FnOnce(&mut Known),
    ) {
        for problem in &problems {
            self.log.add(problem);
        }
        let mut changed = false;
        let tools = Arc::new(tools);
        self.update(|known| {
            changed = known.tools.as_ref() != Some(&tools);
            known.tools = Some(tools.clone());
            known.problems = Arc::new(problems);
            also(known);
        });
        if !changed {
            return;
        }
        self.tell(ServerNews::ToolsChanged);
        if config.keeps_tools {
            let (cache, of) = (self.setup.cache.clone(), config.fingerprint());
            // Nobody waits for it: without it the next start offers the tools a little later.
            tokio::task::spawn_blocking(move || cache.store(&of, &tools));
        }
    }

    fn take_prompts(&self, prompts: Vec<ServerPrompt>) {
        let Some(server) = self.server.upgrade() else {
            return;
        };
        let changed = server.known.send_if_modified(|known| {
            let changed = *known.prompts != prompts;
            known.prompts = Arc::new(prompts);
            changed
        });
        if changed {
            self.tell(ServerNews::PromptsChanged);
        }
    }

    /// Ends a connection and its program.
    async fn close(&self, connected: Connected) {
        connected.stop.cancel();
        let closed = connected.closed.cancelled();
        tokio::time::timeout(CLOSED_WITHIN, closed).await.ok();
        if let Some(process) = &connected.process {
            // Its input is closed, which most programs take as their end.
            tokio::time::timeout(CLOSED_WITHIN, process.exit())
                .await
                .ok();
            process.end().await;
        }
    }

    fn set(&self, phase: Phase) {
        self.update(|known| known.phase = phase);
    }

    fn update(&self, change: impl FnOnce(&mut Known)) {
        if let Some(server) = self.server.upgrade() {
            server.known.send_modify(change);
            self.tell(ServerNews::Status);
        }
    }

    fn tell(&self, news: ServerNews) {
        self.setup.ports.session.news(&self.name, news);
    }
}

/// Waits until the other end of a connection is gone; returns why.
async fn gone(
    connected: &Connected,
    errors: &mut Option<AbortOnDropHandle<()>>,
    log: &ServerLog,
) -> String {
    let closed = connected.closed.cancelled();
    let how = if let Some(process) = &connected.process {
        let how = tokio::select! {
            how = process.exit() => how,
            () = closed => {
                // A program that closes its output mostly ends, and its end says more.
                let end = tokio::time::timeout(END_SEEN_WITHIN, process.exit()).await;
                end.unwrap_or_else(|_| "it closed its output".to_owned())
            }
        };
        if let Some(errors) = errors {
            // What it wrote last says why.
            last_words(errors).await;
        }
        how
    } else {
        closed.await;
        "the connection broke".to_owned()
    };
    match log.last() {
        Some(line) => format!("{how}: {line}"),
        None => how,
    }
}
