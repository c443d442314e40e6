//! Random settings from four clients at once, each client waiting for its own replies only.
//!
//! Every action is named, so that a failure reads as a story. The log must be one sequence of all
//! actions: the actions of each client stand in their order, each makes exactly the change that it
//! names to the settings before it, and an action without an event changes nothing where it stands.
//! What the session shows afterwards is what that sequence comes to.

use std::collections::HashSet;

use futures::future::join_all;
use loopd_proto::event::fact::RulesChanged;
use loopd_proto::id::SessionId;
use loopd_proto::permission::{PermissionRule, Permissions};
use loopd_store::StoredEvent;
use loopd_tests::{Daemon, Session};
use proptest::prelude::*;
use proptest::test_runner::{TestCaseError, TestRunner};
use serde_json::{Value, json};

/// How many clients there are.
const CLIENTS: usize = 4;
/// How many stories are tried; each is a daemon of its own.
const STORIES: u32 = 24;
/// The model that the harness chooses.
const DEFAULT_MODEL: &str = "scripted";

const PERMISSIONS: &str = "loopd.permissions";
const RULES: &str = "loopd.rules_changed";
const CONFIGURED: &str = "loopd.configured";
const NAMED: &str = "loopd.named";
const MODE: &str = "session.mode_changed";
const MODEL: &str = "session.model_change";

/// What a client does; numbers name things that only this client uses.
#[derive(Debug, Clone, Copy)]
enum Action {
    AddRule(u8),
    RemoveRule(u8),
    AddDirectory(u8),
    AllowAll(bool),
    AllowUrls(bool),
    ExcludeTool(u8),
    Name(u8),
    Mode(&'static str),
    Model(u8),
    Effort(&'static str),
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        4 => (0..6_u8).prop_map(Action::AddRule),
        2 => (0..6_u8).prop_map(Action::RemoveRule),
        2 => (0..4_u8).prop_map(Action::AddDirectory),
        1 => any::<bool>().prop_map(Action::AllowAll),
        1 => any::<bool>().prop_map(Action::AllowUrls),
        1 => (0..4_u8).prop_map(Action::ExcludeTool),
        1 => (0..4_u8).prop_map(Action::Name),
        1 => proptest::sample::select(vec!["interactive", "plan", "autopilot"]).prop_map(Action::Mode),
        1 => (0..4_u8).prop_map(Action::Model),
        1 => proptest::sample::select(vec!["low", "high"]).prop_map(Action::Effort),
    ]
}

/// One client and the number it has.
struct Actor {
    number: usize,
    session: Session,
}

impl Actor {
    fn named(&self, what: &str, number: u8) -> String {
        format!("{what}-{number}-of-{}", self.number)
    }

    async fn act(&self, daemon: &Daemon, action: Action) {
        let rule =
            |number| json!([{"kind": "custom-tool", "argument": self.named("tool", number)}]);
        let rules = "session.permissions.modifyRules";
        let (method, params) = match action {
            Action::AddRule(n) => (rules, json!({"scope": "session", "add": rule(n)})),
            Action::RemoveRule(n) => (rules, json!({"scope": "session", "remove": rule(n)})),
            Action::AddDirectory(n) => {
                let folder = daemon.file(&self.named("folder", n));
                std::fs::create_dir_all(&folder).unwrap();
                ("session.permissions.paths.add", json!({"path": folder}))
            }
            Action::AllowAll(enabled) => (
                "session.permissions.setApproveAll",
                json!({"enabled": enabled}),
            ),
            Action::AllowUrls(enabled) => (
                "session.permissions.urls.setUnrestrictedMode",
                json!({"enabled": enabled}),
            ),
            Action::ExcludeTool(n) => (
                "session.options.update",
                json!({"excludedTools": [self.named("tool", n)]}),
            ),
            Action::Name(n) => ("session.name.set", json!({"name": self.named("name", n)})),
            Action::Mode(mode) => ("session.mode.set", json!({"mode": mode})),
            Action::Model(n) => (
                "session.model.switchTo",
                json!({"modelId": self.named("model", n)}),
            ),
            Action::Effort(effort) => (
                "session.model.setReasoningEffort",
                json!({"reasoningEffort": effort}),
            ),
        };
        self.session.call(method, params).await;
    }
}

/// The settings that the actions change.
#[derive(Debug, Clone, Default, PartialEq)]
struct Settings {
    rules: Vec<String>,
    directories: Vec<String>,
    approve_all: bool,
    urls: bool,
    excluded: Vec<String>,
    name: Option<String>,
    mode: Option<String>,
    model: Option<String>,
    effort: Option<String>,
}

/// What an action comes to.
struct Effect {
    /// The event that tells of it.
    kind: &'static str,
    after: Settings,
    /// Whether the event is stored when nothing changes.
    always: bool,
}

impl Settings {
    /// The settings after one more event of the log.
    fn fold(&self, event: &Value) -> Self {
        let mut after = self.clone();
        let data = &event["data"];
        let text = |member: &str| data[member].as_str().map(str::to_owned);
        let last_part = |path: String| path.rsplit('/').next().unwrap_or_default().to_owned();
        match event["type"].as_str().unwrap() {
            PERMISSIONS => {
                let permissions: Permissions =
                    serde_json::from_value(data["permissions"].clone()).unwrap();
                let rules = permissions.approved.into_iter();
                after.rules = rules.filter_map(|rule| rule.argument).collect();
                let directories = permissions.directories.into_iter();
                after.directories = directories.map(last_part).collect();
                after.approve_all = permissions.approve_all;
                after.urls = permissions.unrestricted_urls;
            }
            RULES => {
                let change: RulesChanged = serde_json::from_value(data.clone()).unwrap();
                let named = |rules: Vec<PermissionRule>| -> Vec<String> {
                    rules.into_iter().filter_map(|rule| rule.argument).collect()
                };
                let removed = named(change.removed);
                after.rules.retain(|rule| !removed.contains(rule));
                after.rules.extend(named(change.added));
            }
            CONFIGURED => {
                let excluded = data["options"]["excludedTools"].clone();
                after.excluded = serde_json::from_value(excluded).unwrap_or_default();
            }
            NAMED => after.name = text("name"),
            MODE => after.mode = text("newMode"),
            MODEL => (after.model, after.effort) = (text("newModel"), text("reasoningEffort")),
            other => panic!("nobody asked for the event {other}: {event}"),
        }
        after
    }

    /// What an action of a client comes to from here.
    fn acted(&self, client: usize, action: Action) -> Effect {
        let mut after = self.clone();
        let named = |what: &str, number: u8| format!("{what}-{number}-of-{client}");
        let add = |list: &mut Vec<String>, item: String| {
            if !list.contains(&item) {
                list.push(item);
            }
        };
        let kind = match action {
            Action::AddRule(n) => {
                add(&mut after.rules, named("tool", n));
                RULES
            }
            Action::RemoveRule(n) => {
                after.rules.retain(|rule| *rule != named("tool", n));
                RULES
            }
            Action::AddDirectory(n) => {
                add(&mut after.directories, named("folder", n));
                PERMISSIONS
            }
            Action::AllowAll(enabled) => {
                after.approve_all = enabled;
                PERMISSIONS
            }
            Action::AllowUrls(enabled) => {
                after.urls = enabled;
                PERMISSIONS
            }
            Action::ExcludeTool(n) => {
                after.excluded = vec![named("tool", n)];
                CONFIGURED
            }
            Action::Name(n) => {
                after.name = Some(named("name", n));
                NAMED
            }
            Action::Mode(mode) => {
                after.mode = Some(mode.to_owned());
                MODE
            }
            Action::Model(n) => {
                (after.model, after.effort) = (Some(named("model", n)), None);
                MODEL
            }
            Action::Effort(effort) => {
                after.effort = Some(effort.to_owned());
                MODEL
            }
        };
        Effect {
            kind,
            after,
            always: matches!(kind, NAMED | MODEL),
        }
    }
}

/// The settings before the first event, and each event with the settings after it.
struct Sequence {
    start: Settings,
    events: Vec<(String, Settings)>,
}

impl Sequence {
    fn of(start: Settings, log: &[Value]) -> Self {
        let mut now = start.clone();
        let events = log.iter().map(|event| {
            now = now.fold(event);
            (event["type"].as_str().unwrap().to_owned(), now.clone())
        });
        Self {
            events: events.collect(),
            start,
        }
    }

    /// The settings after some of the events.
    fn after(&self, events: usize) -> &Settings {
        let last = events.checked_sub(1).and_then(|at| self.events.get(at));
        last.map_or(&self.start, |(_, settings)| settings)
    }

    /// Whether the stories can be told in one order that makes exactly these events.
    fn tells(&self, stories: &[Vec<Action>]) -> bool {
        let begin = (0, vec![0; stories.len()]);
        let mut seen = HashSet::from([begin.clone()]);
        let mut open = vec![begin];
        while let Some((at, done)) = open.pop() {
            let all = stories
                .iter()
                .zip(&done)
                .all(|(it, done)| it.len() == *done);
            if all && at == self.events.len() {
                return true;
            }
            let now = self.after(at);
            for (client, story) in stories.iter().enumerate() {
                let Some(action) = story.get(done[client]) else {
                    continue;
                };
                let effect = now.acted(client, *action);
                let silent = effect.after == *now && !effect.always;
                let told = self.events.get(at);
                let fits = told
                    .is_some_and(|(kind, after)| *kind == effect.kind && *after == effect.after);
                if silent || fits {
                    let mut next = (at + usize::from(!silent), done.clone());
                    next.1[client] += 1;
                    if seen.insert(next.clone()) {
                        open.push(next);
                    }
                }
            }
        }
        false
    }
}

/// What the wire shows of a session, and its state for what the wire does not list.
async fn shown(daemon: &Daemon, session: &Session) -> Settings {
    let look = async |method: &str| session.call(method, json!({})).await;
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let paths = look("session.permissions.paths.list").await;
    // The first one is the directory that the session works in.
    let paths = paths["directories"].as_array().unwrap().iter().skip(1);
    let name = |path: &Value| {
        path.as_str()
            .unwrap()
            .rsplit('/')
            .next()
            .unwrap()
            .to_owned()
    };
    let model = look("session.model.getCurrent").await;
    let state = daemon.state(&session.id).await;
    let rules = state.permissions.approved.into_iter();
    Settings {
        rules: rules.filter_map(|rule| rule.argument).collect(),
        directories: paths.map(name).collect(),
        approve_all: look("session.permissions.getMode").await["mode"] == "allow-all",
        urls: state.permissions.unrestricted_urls,
        excluded: state.options.excluded_tools.unwrap_or_default(),
        name: text(&look("session.name.get").await["name"]),
        mode: text(&look("session.mode.get").await),
        model: text(&model["modelId"]),
        effort: text(&model["reasoningEffort"]),
    }
}

/// The events of a session so far.
async fn log(daemon: &Daemon, session: &Session) -> Vec<Value> {
    let id = SessionId::from(session.id.as_str());
    let stored = daemon.app.services.store.load(&id).await;
    let events = stored.unwrap().unwrap().1;
    let parse = |event: &StoredEvent| serde_json::from_str(&event.json).unwrap();
    events.iter().map(parse).collect()
}

async fn live(stories: &[Vec<Action>]) {
    let daemon = Daemon::playing([]).await;
    let first = daemon.client().create(json!({})).await;
    let mut actors = Vec::new();
    for number in 0..CLIENTS {
        let session = daemon.client().resume(&first.id, json!({})).await;
        actors.push(Actor { number, session });
    }
    let before = log(&daemon, &first).await.len();
    let acting = actors.iter().zip(stories).map(async |(actor, story)| {
        for action in story {
            actor.act(&daemon, *action).await;
        }
    });
    join_all(acting).await;
    let start = Settings {
        mode: Some("interactive".to_owned()),
        model: Some(DEFAULT_MODEL.to_owned()),
        ..Settings::default()
    };
    let sequence = Sequence::of(start, &log(&daemon, &first).await[before..]);
    assert!(
        sequence.tells(stories),
        "the log is no sequence of the actions: {:#?}",
        sequence.events
    );
    let end = sequence.after(sequence.events.len());
    assert_eq!(shown(&daemon, &first).await, *end, "what the session shows");
    daemon.finish().await;
}

#[test]
fn each_accepted_setting_has_its_effect_once_in_the_order_of_the_log() {
    let mut runner = TestRunner::new(ProptestConfig {
        failure_persistence: None,
        cases: STORIES,
        max_shrink_iters: 60,
        ..ProptestConfig::default()
    });
    let story = proptest::collection::vec(action(), 0..8);
    let stories = proptest::collection::vec(story, CLIENTS);
    // Only the shortest failure is worth printing.
    let loud = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let outcome = runner.run(&stories, |stories| {
        let lived = std::panic::catch_unwind(|| {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            runtime.unwrap().block_on(live(&stories));
        });
        lived.map_err(|panic| {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
            TestCaseError::fail(text.unwrap_or_else(|| "a panic".to_owned()))
        })
    });
    std::panic::set_hook(loud);
    if let Err(failure) = outcome {
        panic!("{failure}");
    }
}
