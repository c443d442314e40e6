//! What every subcommand works with, and how `loop` opens sessions: with its model, its permission
//! rules and its handlers.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context, bail};
use loopd_sdk::proto::method::{ModeGet, PermissionsModifyRules, SessionGetMetadata};
use loopd_sdk::proto::params::permission::{ModifyRulesParams, RuleScope};
use loopd_sdk::proto::params::session::Of;
use loopd_sdk::{
    AutopilotOptions, Client, ConnectOptions, ListFilter, Metadata, Mode, Session, SessionConfig,
    SessionId,
};

use crate::allow;
use crate::answer::{DeniedUnasked, InPlanMode, with_handlers};
use crate::args::Options;
use crate::model;
use crate::terminal::{Style, Terminal};
use crate::turnstile::Turnstile;

/// The options, environment and terminal of this run.
pub(crate) struct App {
    pub(crate) options: Options,
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) directory: PathBuf,
    pub(crate) terminal: Terminal,
    pub(crate) turnstile: Turnstile,
    pub(crate) denied_unasked: DeniedUnasked,
    pub(crate) planning: InPlanMode,
}

impl App {
    pub(crate) fn new(options: Options, env: BTreeMap<String, String>) -> anyhow::Result<Self> {
        Ok(Self {
            options,
            terminal: Terminal::new(&env),
            directory: std::env::current_dir().context("the current directory cannot be read")?,
            env,
            turnstile: Turnstile::new(),
            denied_unasked: DeniedUnasked::default(),
            planning: InPlanMode::default(),
        })
    }

    pub(crate) fn connect_options(&self) -> ConnectOptions {
        ConnectOptions {
            cwd: Some(self.directory.clone()),
            env: Some(self.env.clone()),
            allow_all: self.options.yolo,
            ..ConnectOptions::default()
        }
    }

    pub(crate) async fn connect(&self) -> anyhow::Result<Client> {
        Ok(Client::connect(self.connect_options()).await?)
    }

    pub(crate) fn variable(&self, name: &str) -> Option<&str> {
        let value = self.env.get(name).map(String::as_str);
        value.filter(|value| !value.is_empty())
    }

    fn config(&self) -> SessionConfig {
        let mut config = SessionConfig::new().client_name("loop");
        config.options.enable_config_discovery = Some(true);
        // Said each time, so that --no-hooks does not hold for what comes after it.
        config.options.enable_file_hooks = Some(!self.options.no_hooks);
        config.options.model.clone_from(&self.options.model);
        config.options.autopilot = self.options.run.max_continues.map(|most| AutopilotOptions {
            max_continues: Some(most),
            ..AutopilotOptions::default()
        });
        config.options.session_limits = self.options.limits.limits();
        with_handlers(
            config,
            &self.terminal,
            &self.turnstile,
            &self.denied_unasked,
            &self.planning,
        )
    }

    /// Creates a session in this directory.
    pub(crate) async fn create(&self, client: &Client) -> anyhow::Result<Session> {
        let named = self.options.model.clone();
        let wanted = named.as_deref().or(self.variable("LOOPD_MODEL"));
        // Fails before there is a session if no provider can serve the model.
        let chosen = client.model_choice(named.clone()).await?;
        if let Some(hint) = model::hint(&chosen, wanted) {
            let hint = self.terminal.styled(Style::Dim, &format!("loop: {hint}"));
            self.terminal.notice(&hint);
        }
        let mut config = self.config();
        config.options.agent.clone_from(&self.options.agent);
        let session = client.create(config).await?;
        let rules = allow::default_rules(&self.directory.to_string_lossy());
        self.add_rules(&session, rules.collect()).await?;
        self.set_mode(&session).await?;
        Ok(session)
    }

    /// Switches a session to the mode that the command line names.
    pub(crate) async fn set_mode(&self, session: &Session) -> anyhow::Result<()> {
        let named = self.options.mode.map(Mode::from);
        let autopilot = self.options.run.autopilot.then_some(Mode::Autopilot);
        if let Some(mode) = named.or(autopilot) {
            session.set_mode(mode).await?;
            self.planning.set(mode);
        }
        Ok(())
    }

    /// Joins a session to continue it.
    pub(crate) async fn resume(&self, client: &Client, id: SessionId) -> anyhow::Result<Session> {
        if self.options.model.is_some() {
            // Fails before the session has a model that no provider can serve.
            client.model_choice(self.options.model.clone()).await?;
        }
        let session = client.resume(id, self.config()).await?;
        self.apply_options(&session).await?;
        let params = Of {
            session_id: session.id().clone(),
        };
        let mode = session.call::<ModeGet>(&params).await?;
        self.planning.set(mode);
        if mode == Mode::Plan {
            let told = "the session is in plan mode, in which nothing is changed until a plan is approved; to \
                        leave it: --mode interactive";
            self.terminal
                .notice(&self.terminal.styled(Style::Dim, told));
        }
        Ok(session)
    }

    /// Gives the agent and the rules of the command line to a session that is there already.
    pub(crate) async fn apply_options(&self, session: &Session) -> anyhow::Result<()> {
        if let Some(agent) = &self.options.agent {
            session.select_agent(agent).await?;
        }
        self.add_rules(session, Vec::new()).await?;
        self.set_mode(session).await
    }

    async fn add_rules(
        &self,
        session: &Session,
        mut rules: Vec<loopd_sdk::PermissionRule>,
    ) -> anyhow::Result<()> {
        rules.extend(self.options.allow_tool.iter().cloned());
        let deny = self.options.deny_tool.clone();
        if rules.is_empty() && deny.is_empty() {
            return Ok(());
        }
        let params = ModifyRulesParams {
            session_id: session.id().clone(),
            scope: RuleScope::Session,
            add: rules,
            remove: Vec::new(),
            remove_all: false,
            deny,
        };
        session.call::<PermissionsModifyRules>(&params).await?;
        Ok(())
    }

    /// Returns the most recently changed session of this directory, or an error if there is none.
    pub(crate) async fn last_here(&self, client: &Client) -> anyhow::Result<SessionId> {
        match self.last_here_if_any(client).await? {
            Some(session) => Ok(session),
            None => bail!(
                "no session has worked in {} yet; begin one with loop \"…\"",
                self.directory.display()
            ),
        }
    }

    /// Returns the most recently changed session of this directory.
    pub(crate) async fn last_here_if_any(
        &self,
        client: &Client,
    ) -> anyhow::Result<Option<SessionId>> {
        let filter = ListFilter {
            cwd: Some(self.directory.to_string_lossy().into_owned()),
            ..ListFilter::default()
        };
        let sessions = client.sessions_where(filter).await?;
        Ok(sessions.into_iter().next().map(|last| last.session_id))
    }
}

/// Finds the only session whose id begins with `beginning`.
pub(crate) async fn find_session(client: &Client, beginning: &str) -> anyhow::Result<SessionId> {
    let sessions = client.sessions().await?;
    let mut fitting: Vec<Metadata> = sessions
        .into_iter()
        .filter(|session| session.session_id.as_str().starts_with(beginning))
        .collect();
    if let Some(exact) = fitting
        .iter()
        .find(|session| session.session_id.as_str() == beginning)
    {
        return Ok(exact.session_id.clone());
    }
    match (fitting.pop(), fitting.len()) {
        (Some(session), 0) => Ok(session.session_id),
        (None, _) => match unlisted(client, beginning).await? {
            Some(id) => Ok(id),
            None => bail!("no session begins with `{beginning}`; see loop sessions"),
        },
        (Some(_), others) => bail!(
            "{} sessions begin with `{beginning}`; give more of the id, see loop sessions",
            others + 1
        ),
    }
}

/// Finds the session of a sub-agent. Such sessions are not listed, so the id must be complete.
async fn unlisted(client: &Client, id: &str) -> anyhow::Result<Option<SessionId>> {
    let session_id = SessionId::from(id);
    let found = client
        .call::<SessionGetMetadata>(&Of { session_id })
        .await?;
    Ok(found.session.map(|session| session.session_id))
}
