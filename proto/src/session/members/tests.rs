//! What becomes of members.
#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use serde_json::json;
use serde_json::value::to_raw_value;

use super::*;
use crate::params::session::SendFields;
use crate::provider::{ModelConfig, ProviderConfig};
use crate::session::opening::own_members;
use crate::session::{
    AutopilotOptions, ClientCommand, ClientOffer, ClientTool, CustomAgent, DefaultAgent,
    MemoryOptions, PolicyParams, SectionOverride, SessionOptions, SystemMessageConfig,
};

fn checked(request: Request, members: Value) -> Result<Vec<String>, String> {
    let raw = to_raw_value(&members).unwrap_or_default();
    let found = check(request, &raw)?;
    Ok(found.into_iter().map(|it| it.name).collect())
}

/// A member that is read and not in the table would be refused, and one in the table that nobody reads would
/// be dropped.
#[test]
fn the_table_has_what_is_read_and_nothing_else() {
    let read_by = |request: Request| -> Vec<&str> {
        let groups: Vec<&[&str]> = match request {
            Request::Create | Request::Resume => vec![
                members_of::<SessionOptions>(),
                members_of::<ClientOffer>(),
                members_of::<PolicyParams>(),
                own_members(request),
            ],
            Request::Send => vec![members_of::<SendFields>(), &["loopdUntil"]],
            Request::Update => vec![crate::params::options::read_members()],
        };
        groups.concat()
    };
    for request in [
        Request::Create,
        Request::Resume,
        Request::Send,
        Request::Update,
    ] {
        let read = read_by(request);
        let rows = TABLE.iter().filter(|row| row.requests.contains(&request));
        for row in rows.clone() {
            let is_read = read.contains(&row.name);
            let is_honoured = matches!(row.becomes, MemberUse::Honoured);
            assert!(
                is_read || !is_honoured,
                "{request:?} {}: nobody reads it",
                row.name
            );
        }
        for name in read {
            let row = rows.clone().find(|row| row.name == name);
            assert!(
                row.is_some(),
                "{request:?} {name}: the table does not have it"
            );
        }
    }
}

#[test]
fn no_member_is_there_twice_for_a_request() {
    for (at, row) in TABLE.iter().enumerate() {
        let mut others = TABLE.iter().skip(at + 1).filter(|it| it.name == row.name);
        assert!(
            others.all(|it| it
                .requests
                .iter()
                .all(|other| !row.requests.contains(other))),
            "{}",
            row.name
        );
    }
}

#[test]
fn nested_members_are_those_that_are_read() {
    for (member, read) in [
        ("autopilot", members_of::<AutopilotOptions>()),
        ("commands", members_of::<ClientCommand>()),
        ("customAgents", members_of::<CustomAgent>()),
        ("defaultAgent", members_of::<DefaultAgent>()),
        ("memory", members_of::<MemoryOptions>()),
        ("models", members_of::<ModelConfig>()),
        ("provider", members_of::<ProviderConfig>()),
        ("providers", members_of::<ProviderConfig>()),
        ("systemMessage", members_of::<SystemMessageConfig>()),
    ] {
        let mut nested = NESTED.iter();
        let known = nested.find(|it| it.member == member).map(|it| it.known);
        let mut known = known.unwrap_or_default().to_vec();
        let mut read = read.to_vec();
        known.sort_unstable();
        read.sort_unstable();
        assert_eq!(known, read, "{member}");
    }
    let tools = NESTED.iter().find(|it| it.member == "tools");
    let known = tools.map(|it| it.known).unwrap_or_default();
    for name in members_of::<ClientTool>() {
        assert!(known.contains(name), "tools: {name}");
    }
    assert_eq!(members_of::<SectionOverride>(), ["action", "content"]);
}

#[test]
fn a_member_that_is_a_mistake_is_refused_with_the_one_that_was_meant() {
    let table = [
        (
            json!({"excludedTool": ["bash"]}),
            "excludedTool: there is no such member; did you mean `excludedTools`?",
        ),
        (
            json!({"disableResume": true}),
            "disableResume: it is no member of session.create, but of session.resume",
        ),
        (
            json!({"autopilot": {"maxContinuez": 1}}),
            "autopilot.maxContinuez: there is no such member; did you mean `maxContinues`?",
        ),
        (
            json!({"customAgents": [{"name": "a", "prompt": "p", "tool": ["view"]}]}),
            "customAgents[0].tool: there is no such member; did you mean `tools`?",
        ),
        (
            json!({"subagents": {"agents": {"explore": {"modle": "x"}}}}),
            "subagents.agents.explore.modle: there is no such member; did you mean `model`?",
        ),
        (
            json!({"provider": {"baseURI": "x"}}),
            "provider.baseURI: there is no such member; did you mean `baseUrl`?",
        ),
    ];
    for (members, expected) in table {
        let error = checked(Request::Create, members.clone()).unwrap_err();
        assert!(error.starts_with(expected), "{members}: {error}");
    }
    let error = checked(Request::Update, json!({"fromTheFuture": 1})).unwrap_err();
    assert!(
        error.starts_with("fromTheFuture: it is not known here"),
        "{error}"
    );
}

#[test]
fn what_asks_for_nothing_is_no_mistake() {
    let quiet = json!({"newest": null, "requestNewest": false, "hasNewest": false, "list": [], "object": {},
        "tools": [{"name": "t", "newest": null}], "cloud": null, "sandboxConfig": {"enabled": false},
        "remoteSession": "off", "askUserVariant": "legacy", "canvases": [], "toolSearch": {"enabled": false}});
    assert_eq!(checked(Request::Create, quiet), Ok(Vec::new()));
}

#[test]
fn what_has_no_effect_is_named() {
    let members = json!({"canvases": [{}], "capi": {"autoTier": "fast"}, "fromTheFuture": {"deep": 1}, "allowAll": false,
        "tools": [{"name": "t", "shade": 1}]});
    let named = checked(Request::Create, members);
    let expected = [
        "allowAll",
        "canvases",
        "capi",
        "fromTheFuture",
        "tools[0].shade",
    ];
    assert_eq!(named, Ok(expected.map(str::to_owned).to_vec()));
}
