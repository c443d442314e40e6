//! Random settings from four clients at once, each client waiting for its own replies only.
//!
//! Every action is named, so that a failure reads as a story. What the session shows afterwards is
//! compared with a plain model: rules and directories are those that were added and not removed by
//! the client that added them; names, modes and models are in the log once for each change, and the
//! session shows the last one; a switch shows what one of the clients set last.

use std::collections::BTreeSet;

use futures::future::join_all;
use loopd_kernel::state::State;
use loopd_tests::{Daemon, Session};
use proptest::prelude::*;
use proptest::test_runner::{TestCaseError, TestRunner};
use serde_json::{Value, json};

/// How many clients there are.
const CLIENTS: usize = 4;
/// How many stories are tried; each is a daemon of its own.
const STORIES: u32 = 24;

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

/// What the clients together must have come to.
#[derive(Default)]
struct Expected {
    rules: BTreeSet<String>,
    directories: BTreeSet<String>,
    names: Vec<String>,
    models: Vec<String>,
    efforts: usize,
    /// What each client set last.
    approve_all: BTreeSet<bool>,
    urls: BTreeSet<bool>,
    excluded: BTreeSet<String>,
    modes: BTreeSet<&'static str>,
}

impl Expected {
    /// Adds what one client did, in its order.
    fn add(&mut self, actor: &Actor, story: &[Action]) {
        let (mut approve_all, mut urls, mut excluded, mut mode) = (None, None, None, None);
        for action in story {
            match *action {
                Action::AddRule(n) => {
                    self.rules.insert(actor.named("tool", n));
                }
                Action::RemoveRule(n) => {
                    self.rules.remove(&actor.named("tool", n));
                }
                Action::AddDirectory(n) => {
                    self.directories.insert(actor.named("folder", n));
                }
                Action::AllowAll(enabled) => approve_all = Some(enabled),
                Action::AllowUrls(enabled) => urls = Some(enabled),
                Action::ExcludeTool(n) => excluded = Some(actor.named("tool", n)),
                Action::Name(n) => self.names.push(actor.named("name", n)),
                Action::Mode(new) => mode = Some(new),
                Action::Model(n) => self.models.push(actor.named("model", n)),
                Action::Effort(_) => self.efforts += 1,
            }
        }
        self.approve_all.extend(approve_all);
        self.urls.extend(urls);
        self.excluded.extend(excluded);
        self.modes.extend(mode);
    }
}

/// The values of one member in the events of one kind, in the order of the log.
fn values(log: &[Value], kind: &str, member: &str) -> Vec<String> {
    let of_kind = log.iter().filter(|event| event["type"] == kind);
    let values = of_kind.map(|event| event["data"][member].as_str().unwrap_or_default());
    values.map(str::to_owned).collect()
}

fn set(values: &[String]) -> BTreeSet<&String> {
    values.iter().collect()
}

/// What the wire shows of a session, and its state for what the wire does not list.
struct Shown {
    paths: Value,
    approval: Value,
    name: Value,
    mode: Value,
    model: Value,
    state: State,
}

impl Shown {
    async fn of(daemon: &Daemon, session: &Session) -> Self {
        let look = async |method: &str| session.call(method, json!({})).await;
        Self {
            paths: look("session.permissions.paths.list").await,
            approval: look("session.permissions.getMode").await,
            name: look("session.name.get").await,
            mode: look("session.mode.get").await,
            model: look("session.model.getCurrent").await,
            state: daemon.state(&session.id).await,
        }
    }
}

fn check_permissions(expected: &Expected, shown: &Shown) {
    let permissions = &shown.state.permissions;
    let rules = permissions.approved.iter();
    let rules: Vec<_> = rules.filter_map(|rule| rule.argument.clone()).collect();
    let once: BTreeSet<String> = rules.iter().cloned().collect();
    assert_eq!(once.len(), rules.len(), "a rule is there twice");
    assert_eq!(once, expected.rules, "the rules");
    // The first one is the directory that the session works in.
    let listed = shown.paths["directories"]
        .as_array()
        .unwrap()
        .iter()
        .skip(1);
    let name = |path: &Value| {
        path.as_str()
            .unwrap()
            .rsplit('/')
            .next()
            .unwrap()
            .to_owned()
    };
    let listed: BTreeSet<String> = listed.map(name).collect();
    assert_eq!(listed, expected.directories, "the directories");
    let of_one =
        |last: &BTreeSet<bool>, shown: bool| last.contains(&shown) || (last.is_empty() && !shown);
    let allows_all = shown.approval["mode"] == "allow-all";
    assert!(of_one(&expected.approve_all, allows_all), "allow all");
    let urls = permissions.unrestricted_urls;
    assert!(of_one(&expected.urls, urls), "all addresses");
}

fn check_settings(expected: &Expected, shown: &Shown, log: &[Value]) {
    let named = values(log, "loopd.named", "name");
    assert_eq!(set(&named), set(&expected.names), "the names in the log");
    assert!(named.len() <= expected.names.len(), "a name is there twice");
    assert_eq!(shown.name["name"], json!(named.last()), "the name");
    let in_log = values(log, "session.mode_changed", "newMode");
    let last = in_log.last().map_or("interactive", String::as_str);
    assert_eq!(shown.mode, last, "the mode is the last one in the log");
    let one_of = expected.modes.is_empty() || expected.modes.contains(last);
    assert!(one_of, "the mode {last} is none that a client set last");
    let excluded = shown.state.options.excluded_tools.clone();
    let excluded = excluded.unwrap_or_default();
    match excluded.as_slice() {
        [] => assert!(expected.excluded.is_empty(), "the tool filter is lost"),
        [one] => assert!(expected.excluded.contains(one), "the tool filter"),
        _ => panic!("two tool filters: {excluded:?}"),
    }
    let models = values(log, "session.model_change", "newModel");
    let changes = expected.models.len() + expected.efforts;
    assert!(models.len() <= changes, "a model is there twice");
    assert!(
        set(&expected.models).is_subset(&set(&models)),
        "a model is lost"
    );
    if let Some(last) = models.last() {
        let current = &shown.model["modelId"];
        assert_eq!(current, last, "the model is the last one in the log");
    }
    // An effort says nothing of the model: a model is in the log from its own switch on.
    let mut waiting = expected.models.clone();
    let mut current: Option<&String> = None;
    for model in &models {
        if current == Some(model) || (current.is_none() && !expected.models.contains(model)) {
            continue;
        }
        let at = waiting.iter().position(|other| other == model);
        let at = at.unwrap_or_else(|| panic!("{model} came back without being chosen: {models:?}"));
        waiting.remove(at);
        current = Some(model);
    }
}

async fn live(stories: &[Vec<Action>]) {
    let daemon = Daemon::playing([]).await;
    let first = daemon.client().create(json!({})).await;
    let mut actors = Vec::new();
    for number in 0..CLIENTS {
        let session = daemon.client().resume(&first.id, json!({})).await;
        actors.push(Actor { number, session });
    }
    let mut expected = Expected::default();
    let acting = actors.iter().zip(stories).map(async |(actor, story)| {
        for action in story {
            actor.act(&daemon, *action).await;
        }
    });
    join_all(acting).await;
    for (actor, story) in actors.iter().zip(stories) {
        expected.add(actor, story);
    }
    let shown = Shown::of(&daemon, &first).await;
    let id = loopd_proto::id::SessionId::from(first.id.as_str());
    let stored = daemon
        .app
        .services
        .store
        .load(&id)
        .await
        .unwrap()
        .unwrap()
        .1;
    let log = stored
        .iter()
        .map(|event| serde_json::from_str(&event.json).unwrap());
    let log: Vec<Value> = log.collect();
    check_permissions(&expected, &shown);
    check_settings(&expected, &shown, &log);
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
