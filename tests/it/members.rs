//! Every member of the requests that open a session, change its options and send messages, as the public
//! clients have them: what becomes of it over the wire. None is dropped without a word.
//!
//! The table is written by hand: a member, the requests that have it, what becomes of it, and a value that
//! asks for something.

use std::collections::BTreeSet;

use loopd_proto::session::members::{MemberUse, Request, TABLE};
use loopd_tests::{Client, Daemon, Session, Turn};
use serde_json::{Value, json};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    /// It is taken; its effect is shown where that is tested.
    Honoured,
    /// There is nothing to do for it.
    Nothing,
    /// People are told that it has no effect.
    Warned,
    /// The request is refused, and the error names it.
    Refused,
}

use Class::{Honoured, Nothing, Refused, Warned};

/// Member, requests (`c`reate, `r`esume, `u`pdate, `s`end), class, a value.
#[rustfmt::skip]
const MEMBERS: &[(&str, &str, Class, &str)] = &[
    ("additionalContentExclusionPolicies", "u", Refused, r#"[{"path": "x"}]"#),
    ("additionalDirectories", "cr", Honoured, r#"["/"]"#),
    ("agent", "cr", Honoured, r#""build""#),
    ("agentContext", "u", Nothing, r#""cli""#),
    ("agentDirectories", "cru", Honoured, r#"["/nowhere"]"#),
    ("agentMode", "s", Honoured, r#""interactive""#),
    ("allowAllMcpServerInstructions", "u", Refused, "true"),
    ("allowTranscriptRecovery", "r", Nothing, "false"),
    ("allowedModels", "cr", Refused, r#"["gpt-5"]"#),
    ("askUserDisabled", "cru", Honoured, "true"),
    ("askUserVariant", "cr", Refused, r#""elicitation""#),
    ("attachments", "s", Honoured, "[]"),
    ("authClientIdMetadataUrl", "cr", Warned, r#""https://app.example/id""#),
    ("autopilot", "cru", Honoured, r#"{"maxContinues": 1}"#),
    ("availableTools", "cru", Honoured, r#"["view"]"#),
    ("billable", "s", Nothing, "false"),
    ("canvasProvider", "cr", Warned, r#"{"id": "x"}"#),
    ("canvases", "cr", Warned, r#"[{"id": "x"}]"#),
    ("capi", "cr", Warned, r#"{"autoTier": "fast"}"#),
    ("capi", "u", Refused, r#"{"autoTier": "fast"}"#),
    ("clientName", "cru", Honoured, r#""somebody""#),
    ("cloud", "cr", Refused, r#"{"repository": {"owner": "a", "name": "b"}}"#),
    ("coauthorEnabled", "u", Refused, "true"),
    ("commands", "cr", Honoured, r#"[{"name": "greet", "description": "Greets"}]"#),
    ("configDir", "cr", Warned, r#""/nowhere""#),
    ("contextTier", "cru", Honoured, r#""default""#),
    ("continueOnAutoMode", "u", Refused, "true"),
    ("continuePendingWork", "c", Nothing, "true"),
    ("continuePendingWork", "r", Honoured, "true"),
    ("copilotUrl", "u", Refused, r#""https://elsewhere.example""#),
    ("customAgents", "cr", Honoured, r#"[{"name": "mine", "prompt": "You help."}]"#),
    ("customAgentsLocalOnly", "cru", Nothing, "true"),
    ("defaultAgent", "cr", Honoured, r#"{"excludedTools": ["edit"]}"#),
    ("diagnostics", "cr", Warned, r#"{"enabled": true}"#),
    ("disableResume", "r", Honoured, "true"),
    ("disabledInstructionSources", "cru", Honoured, r#"["x"]"#),
    ("disabledMcpServers", "cru", Honoured, r#"["x"]"#),
    ("disabledSkills", "cru", Honoured, r#"["x"]"#),
    ("displayPrompt", "s", Honoured, r#""shown""#),
    ("embeddingCacheStorage", "cr", Nothing, r#""in-memory""#),
    ("enableCitations", "cr", Honoured, "true"),
    ("enableConfigDiscovery", "cr", Honoured, "false"),
    ("enableFileChangeTracking", "cr", Honoured, "false"),
    ("enableFileHooks", "cr", Honoured, "false"),
    ("enableFileHooks", "u", Refused, "false"),
    ("enableGitHubTelemetryForwarding", "cr", Nothing, "true"),
    ("enableHostGitOperations", "cr", Nothing, "false"),
    ("enableHostGitOperations", "u", Refused, "false"),
    ("enableManagedSettings", "cr", Refused, "true"),
    ("enableOnDemandInstructionDiscovery", "cru", Honoured, "false"),
    ("enableReasoningSummaries", "u", Refused, "true"),
    ("enableScriptSafety", "u", Refused, "true"),
    ("enableSessionStore", "cr", Honoured, "false"),
    ("enableSessionStore", "u", Refused, "false"),
    ("enableSessionTelemetry", "cr", Nothing, "false"),
    ("enableSkills", "cru", Honoured, "false"),
    ("enableStreaming", "u", Honoured, "true"),
    ("enforceManagedModelDefaults", "cr", Refused, "true"),
    ("envValueMode", "cru", Honoured, r#""direct""#),
    ("eventsLogDirectory", "u", Refused, r#""/nowhere""#),
    ("eventsLogIncludesSubagents", "u", Refused, "true"),
    ("excludedBuiltinAgents", "cru", Honoured, r#"["explore"]"#),
    ("excludedManagedSettings", "cr", Refused, r#"["sandbox"]"#),
    ("excludedTools", "cru", Honoured, r#"["edit"]"#),
    ("expAssignments", "cr", Nothing, r#"{"x": 1}"#),
    ("extensionInfo", "cr", Warned, r#"{"id": "x"}"#),
    ("extensionSdkPath", "cr", Warned, r#""/nowhere""#),
    ("factories", "r", Warned, r#"[{"name": "x"}]"#),
    ("fallbackModels", "cru", Honoured, r#"["other"]"#),
    ("featureFlags", "cru", Warned, r#"{"x": true}"#),
    ("gitHubToken", "cr", Honoured, r#""token""#),
    ("gitHubTokenProviderRegistrationId", "cr", Refused, r#""x""#),
    ("githubMcpToolConfig", "cr", Warned, r#"{"enableAllTools": true}"#),
    ("hasSkillProvider", "cr", Honoured, "false"),
    ("hookDirectories", "cru", Honoured, "[]"),
    ("hooks", "cr", Honoured, "false"),
    ("ignoredSkillsLocations", "u", Refused, r#"["/nowhere"]"#),
    ("imageGeneration", "cr", Warned, r#"{"enabled": true}"#),
    ("imageGeneration", "u", Refused, r#"{"enabled": true}"#),
    ("includeSubAgentStreamingEvents", "cr", Honoured, "true"),
    ("includedBuiltinAgents", "u", Refused, r#"["explore"]"#),
    ("includedBuiltinSkills", "u", Nothing, "[]"),
    ("infiniteSessions", "cr", Honoured, r#"{"enabled": true}"#),
    ("installedPlugins", "u", Refused, r#"[{"name": "x"}]"#),
    ("instructionDirectories", "cru", Honoured, r#"["/nowhere"]"#),
    ("integrationId", "u", Nothing, r#""x""#),
    ("interactiveUser", "cr", Nothing, "true"),
    ("isExperimentalMode", "cru", Warned, "true"),
    ("largeOutput", "cr", Warned, r#"{"maxSizeBytes": 10}"#),
    ("logInteractiveShells", "u", Refused, "true"),
    ("loopdObserver", "cr", Honoured, "false"),
    ("loopdReturns", "r", Honoured, "true"),
    ("loopdUntil", "s", Honoured, r#""answer""#),
    ("lspClientName", "u", Nothing, r#""x""#),
    ("manageScheduleEnabled", "u", Refused, "true"),
    ("managedSettings", "cr", Honoured, r#"{"permissions": {"deny": ["Bash(rm *)"]}}"#),
    ("maxInlineBinaryBytes", "u", Refused, "10"),
    ("mcpOAuthTokenStorage", "cr", Honoured, r#""in-memory""#),
    ("mcpServers", "cr", Honoured, "{}"),
    ("memory", "cr", Honoured, r#"{"enabled": false}"#),
    ("messageId", "s", Honoured, r#""m-1""#),
    ("mode", "s", Honoured, r#""enqueue""#),
    ("model", "cru", Honoured, r#""scripted""#),
    ("modelCapabilities", "cr", Honoured, r#"{"supports": {"vision": false}}"#),
    ("modelCapabilitiesOverrides", "u", Honoured, r#"{"supports": {"vision": false}}"#),
    ("models", "cr", Honoured, "[]"),
    ("name", "c", Honoured, r#""my session""#),
    ("openCanvases", "r", Warned, r#"[{"id": "x"}]"#),
    ("organizationCustomInstructions", "cru", Honoured, r#""be kind""#),
    ("pluginDirectories", "cr", Honoured, r#"["/nowhere"]"#),
    ("prepend", "s", Honoured, "true"),
    ("prompt", "s", Honoured, r#""go""#),
    ("provider", "cr", Honoured, r#"{"baseUrl": "http://127.0.0.1:9"}"#),
    ("provider", "u", Refused, r#"{"baseUrl": "http://127.0.0.1:9"}"#),
    ("providers", "cr", Honoured, r#"[{"name": "p", "baseUrl": "http://127.0.0.1:9"}]"#),
    ("reasoningEffort", "cru", Honoured, r#""low""#),
    ("reasoningSummary", "cru", Honoured, r#""none""#),
    ("refreshCustomInstructions", "cr", Nothing, "true"),
    ("remoteSession", "cr", Refused, r#""export""#),
    ("requestAutoModeSwitch", "cr", Honoured, "true"),
    ("requestCanvasRenderer", "cr", Warned, "true"),
    ("requestElicitation", "cr", Honoured, "true"),
    ("requestExitPlanMode", "cr", Honoured, "true"),
    ("requestExtensions", "cr", Warned, "true"),
    ("requestHeaders", "s", Honoured, r#"{"x-test": "1"}"#),
    ("requestMcpApps", "cr", Honoured, "true"),
    ("requestPermission", "cr", Honoured, "true"),
    ("requestUserInput", "cr", Honoured, "true"),
    ("requestedEnvironmentVariables", "r", Warned, r#"["HOME"]"#),
    ("requiredTool", "s", Honoured, r#""view""#),
    ("responseFormat", "s", Refused, r#"{"type": "json_schema"}"#),
    ("runScope", "s", Honoured, "null"),
    ("runningInInteractiveMode", "u", Nothing, "true"),
    ("sandboxConfig", "cru", Refused, r#"{"enabled": true}"#),
    ("sandboxConfigSource", "u", Refused, r#""user_enabled""#),
    ("sessionCapabilities", "u", Refused, r#"["memory"]"#),
    ("sessionId", "crus", Honoured, ""),
    ("sessionLimits", "cru", Honoured, r#"{"maxTurns": 100}"#),
    ("shell", "u", Refused, r#"{"path": "/bin/zsh"}"#),
    ("shellInitProfile", "u", Refused, r#""None""#),
    ("shellProcessFlags", "u", Refused, r#"["-x"]"#),
    ("skillDirectories", "cru", Honoured, r#"["/nowhere"]"#),
    ("skipCustomInstructions", "cru", Honoured, "true"),
    ("skipEmbeddingRetrieval", "cr", Nothing, "true"),
    ("skipEmbeddingRetrieval", "u", Refused, "false"),
    ("source", "s", Honoured, r#""user""#),
    ("streaming", "cr", Honoured, "true"),
    ("subagents", "cr", Honoured, r#"{"maxDepth": 2}"#),
    ("suppressCustomAgentPrompt", "u", Refused, "true"),
    ("systemMessage", "cr", Honoured, r#"{"content": "be kind"}"#),
    ("toolFilterPrecedence", "cru", Honoured, r#""excluded""#),
    ("toolSearch", "cr", Warned, r#"{"enabled": true}"#),
    ("tools", "cr", Honoured, r#"[{"name": "report"}]"#),
    ("traceparent", "crs", Nothing, r#""00-0-0-00""#),
    ("tracestate", "crs", Nothing, r#""x=1""#),
    ("trajectoryFile", "u", Refused, r#""/nowhere""#),
    ("trustWorkingDirectory", "cr", Honoured, "null"),
    ("verbosity", "u", Refused, r#""low""#),
    ("wait", "s", Honoured, "false"),
    ("workflows", "r", Warned, r#"[{"name": "x"}]"#),
    ("workingDirectory", "cru", Honoured, r#""/""#),
];

fn request(letter: char) -> Request {
    match letter {
        'c' => Request::Create,
        'r' => Request::Resume,
        'u' => Request::Update,
        's' => Request::Send,
        other => panic!("{other} is no request"),
    }
}

#[test]
fn this_table_and_that_of_the_protocol_say_the_same() {
    let mut ours = BTreeSet::new();
    for (name, letters, class, _) in MEMBERS {
        for letter in letters.chars() {
            let method = request(letter).method();
            let is_new = ours.insert((*name, method, format!("{class:?}")));
            assert!(is_new, "{name} is there twice for {method}");
        }
    }
    let mut theirs = BTreeSet::new();
    for row in TABLE {
        let class = match row.becomes {
            MemberUse::Honoured => Honoured,
            MemberUse::Nothing => Nothing,
            MemberUse::WithoutEffect { .. } => Warned,
            MemberUse::Refused { .. } => Refused,
        };
        for asked in row.requests {
            theirs.insert((row.name, asked.method(), format!("{class:?}")));
        }
    }
    let only: Vec<_> = ours.symmetric_difference(&theirs).collect();
    assert_eq!(only, Vec::<&(&str, &str, String)>::new());
}

/// It is sent by the other method that sends messages.
const OF_ANOTHER_METHOD: &str = "loopdUntil";

/// Returns what the warnings say that a session got when it was opened or changed.
async fn told(session: &mut Session) -> String {
    // What comes before the answer to this was told by then.
    session.call("session.mode.get", json!({})).await;
    let events = session.events().into_iter();
    let warnings = events.filter(|event| {
        event["type"] == "session.warning"
            && event["data"]["warningType"] == "option_without_effect"
    });
    let texts = warnings.map(|event| event["data"]["message"].as_str().unwrap().to_owned());
    texts.collect::<Vec<_>>().join("\n")
}

async fn check(client: &Client, (name, letter, class, value): (&str, char, Class, Value)) {
    let asked = request(letter);
    let base = client.create(json!({})).await;
    let mut params = json!({});
    params[name] = value;
    if name == "configDir" {
        // With discovery it is refused.
        params["enableConfigDiscovery"] = false.into();
    }
    if asked == Request::Send && name != "prompt" {
        params["prompt"] = "go".into();
    }
    let case = format!("{} {name}", asked.method());
    if class == Refused {
        if asked != Request::Create {
            params["sessionId"] = base.id.as_str().into();
        }
        let error = client.refused(asked.method(), params).await;
        assert_eq!(error.code, -32602, "{case}: {}", error.message);
        let expected = format!("{name}: ");
        assert!(
            error.message.contains(&expected),
            "{case}: {}",
            error.message
        );
        return;
    }
    let mut session = match asked {
        Request::Create => client.create(params).await,
        Request::Resume => {
            let id = base.id.clone();
            base.destroy().await;
            client.resume(&id, params).await
        }
        Request::Update => {
            base.call(asked.method(), params).await;
            base
        }
        Request::Send => {
            let mut base = base;
            base.call(asked.method(), params).await;
            base.next("session.idle").await;
            base
        }
    };
    let told = told(&mut session).await;
    assert_eq!(told.contains(name), class == Warned, "{case}: {told}");
    session.destroy().await;
}

#[tokio::test]
async fn every_member_is_honoured_refused_by_name_or_told_to_have_no_effect() {
    let sends = MEMBERS
        .iter()
        .filter(|(name, letters, class, _)| {
            letters.contains('s')
                && *class != Refused
                && !["sessionId", OF_ANOTHER_METHOD].contains(name)
        })
        .count();
    let turns = (0..sends).map(|_| Turn::any().says("ok"));
    let daemon = Daemon::playing(turns).await;
    let client = daemon.client();
    for (name, letters, class, value) in MEMBERS {
        if *name == "sessionId" {
            continue;
        }
        let value: Value = serde_json::from_str(value).unwrap();
        for letter in letters.chars() {
            if *name == OF_ANOTHER_METHOD {
                continue;
            }
            check(&client, (name, letter, *class, value.clone())).await;
        }
    }
    daemon.finish().await;
}

#[tokio::test]
async fn a_member_that_is_a_mistake_is_refused_and_changes_nothing() {
    let daemon = Daemon::playing([Turn::user("go").says("ok")]).await;
    let client = daemon.client();
    let mut session = client.create(json!({})).await;
    let id = session.id.as_str();
    for (method, params, expected) in [
        (
            "session.create",
            json!({"sessionId": "new", "excludedTool": ["bash"]}),
            "session.create: excludedTool: there is no such member; did you mean `excludedTools`?",
        ),
        (
            "session.create",
            json!({"sessionId": "new", "autopilot": {"maxContinuez": 1}}),
            "autopilot.maxContinuez: there is no such member; did you mean `maxContinues`?",
        ),
        (
            "session.create",
            json!({"sessionId": "new", "customAgents": [{"name": "a", "prompt": "p", "tool": ["view"]}]}),
            "customAgents[0].tool: there is no such member; did you mean `tools`?",
        ),
        (
            "session.create",
            json!({"sessionId": "new", "customAgents": [{"name": "a", "prompt": "p", "modelPolicy": "required"}]}),
            "customAgents[0].modelPolicy: ",
        ),
        (
            "session.create",
            json!({"sessionId": "new", "provider": {"baseUrl": "http://x", "apiKeyCommand": "pass x"}}),
            "provider.apiKeyCommand: ",
        ),
        (
            "session.create",
            json!({"sessionId": "new", "disableResume": true}),
            "disableResume: it is no member of session.create, but of session.resume",
        ),
        (
            "session.resume",
            json!({"sessionId": id, "avaliableTools": []  , "avaliableTool": ["x"]}),
            "avaliableTool: there is no such member; did you mean `availableTools`?",
        ),
        (
            "session.options.update",
            json!({"sessionId": id, "model": "other", "excludedTool": ["x"]}),
            "session.options.update: excludedTool: there is no such member",
        ),
        (
            "session.send",
            json!({"sessionId": id, "prompt": "go", "agentmode": "plan"}),
            "session.send: agentmode: there is no such member; did you mean `agentMode`?",
        ),
        (
            "session.sendAndWait",
            json!({"sessionId": id, "prompt": "go", "agentmode": "plan"}),
            "agentmode: there is no such member; did you mean `agentMode`?",
        ),
    ] {
        let error = client.refused(method, params).await;
        assert_eq!(error.code, -32602, "{}", error.message);
        assert!(error.message.contains(expected), "{}", error.message);
    }
    let resumed = json!({"sessionId": "new"});
    let error = client.refused("session.resume", resumed).await;
    assert!(error.message.contains("not found"), "{}", error.message);
    session.ask("go").await;
    let future = json!({"fromTheFuture": 1, "tools": [{"name": "t", "shade": "red"}]});
    let mut session = client.create(future).await;
    let told = self::told(&mut session).await;
    for part in [
        "fromTheFuture: it is not known here",
        "tools[0].shade: it is not known here",
    ] {
        assert!(told.contains(part), "{told}");
    }
    let newer = json!({"requestNewest": false, "newest": null, "more": [],
        "tools": [{"name": "t", "newest": null}]});
    let mut session = client.create(newer).await;
    assert_eq!(self::told(&mut session).await, "");
    daemon.finish().await;
}

#[tokio::test]
async fn configuration_is_not_discovered_beside_a_folder_that_is_not_used() {
    let daemon = Daemon::playing([]).await;
    let both = json!({"configDir": "/x", "enableConfigDiscovery": true});
    let error = daemon.client().refused("session.create", both).await;
    assert!(error.message.contains("configDir: "), "{}", error.message);
    daemon.finish().await;
}
