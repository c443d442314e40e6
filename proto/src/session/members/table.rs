//! The members, each with what becomes of it.

use serde_json::Value;

use super::MemberUse::{Honoured, Nothing, Refused, WithoutEffect};
use super::Request::{Create, Resume, Send, Update};
use super::{Member, MemberUse, Request};

const OPENING: &[Request] = &[Create, Resume];
const ALL_OPTIONS: &[Request] = &[Create, Resume, Update];

const fn row(name: &'static str, requests: &'static [Request], becomes: MemberUse) -> Member {
    Member {
        name,
        requests,
        becomes,
    }
}

/// Nothing here does what the member asks for, and nothing depends on it.
const fn without(why: &'static str) -> MemberUse {
    WithoutEffect {
        unless: is_empty,
        why,
    }
}

const fn refused(unless: fn(&Value) -> bool, why: &'static str) -> MemberUse {
    Refused { unless, why }
}

/// The member cannot be changed while a session is live.
const fn fixed(why: &'static str) -> MemberUse {
    refused(is_null, why)
}

fn is_null(value: &Value) -> bool {
    value.is_null()
}

/// Whether a value asks for nothing.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(set) => !set,
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::String(text) => text.is_empty(),
        Value::Number(_) => false,
    }
}

fn is_switched_off(value: &Value) -> bool {
    is_empty(value) || value.get("enabled") == Some(&Value::Bool(false))
}

fn is_not_true(value: &Value) -> bool {
    *value != Value::Bool(true)
}

fn is_not_false(value: &Value) -> bool {
    *value != Value::Bool(false)
}

fn is_any_of(value: &Value, words: &[&str]) -> bool {
    is_empty(value) || value.as_str().is_some_and(|text| words.contains(&text))
}

const NO_CANVASES: &str = "there are no canvases here";
const NO_EXTENSIONS: &str = "there are no extensions here";
const NOT_LIVE: &str = "it cannot be changed in a session; open the session with it";
const NOT_HERE: &str = "nothing here does what it asks for; leave it out";

/// What becomes of each member. Its name may have a row for some requests and another for others.
#[rustfmt::skip]
pub const TABLE: &[Member] = &[
    row("sessionId", &[Create, Resume, Send, Update], Honoured),
    row("additionalDirectories", OPENING, Honoured),
    row("agent", OPENING, Honoured),
    row("agentDirectories", ALL_OPTIONS, Honoured),
    row("askUserDisabled", ALL_OPTIONS, Honoured),
    row("autopilot", ALL_OPTIONS, Honoured),
    row("availableTools", ALL_OPTIONS, Honoured),
    row("clientName", ALL_OPTIONS, Honoured),
    row("commands", OPENING, Honoured),
    row("contextTier", ALL_OPTIONS, Honoured),
    // Nothing is pending in a new session.
    row("continuePendingWork", &[Create], Nothing),
    row("continuePendingWork", &[Resume], Honoured),
    row("customAgents", OPENING, Honoured),
    row("defaultAgent", OPENING, Honoured),
    row("disableResume", &[Resume], Honoured),
    row("disabledInstructionSources", ALL_OPTIONS, Honoured),
    row("disabledMcpServers", ALL_OPTIONS, Honoured),
    row("disabledSkills", ALL_OPTIONS, Honoured),
    row("enableCitations", OPENING, Honoured),
    row("enableConfigDiscovery", OPENING, Honoured),
    row("enableFileChangeTracking", OPENING, Honoured),
    row("enableFileHooks", OPENING, Honoured),
    row("enableOnDemandInstructionDiscovery", ALL_OPTIONS, Honoured),
    row("enableSessionStore", OPENING, Honoured),
    row("enableSkills", ALL_OPTIONS, Honoured),
    row("enableStreaming", &[Update], Honoured),
    row("envValueMode", ALL_OPTIONS, Honoured),
    row("excludedBuiltinAgents", ALL_OPTIONS, Honoured),
    row("excludedTools", ALL_OPTIONS, Honoured),
    row("fallbackModels", ALL_OPTIONS, Honoured),
    row("gitHubToken", OPENING, Honoured),
    row("hasSkillProvider", OPENING, Honoured),
    row("hookDirectories", ALL_OPTIONS, Honoured),
    row("hooks", OPENING, Honoured),
    row("includeSubAgentStreamingEvents", OPENING, Honoured),
    row("infiniteSessions", OPENING, Honoured),
    row("instructionDirectories", ALL_OPTIONS, Honoured),
    row("loopdObserver", OPENING, Honoured),
    row("loopdReturns", &[Resume], Honoured),
    row("managedSettings", OPENING, Honoured),
    row("mcpOAuthTokenStorage", OPENING, Honoured),
    row("mcpServers", OPENING, Honoured),
    row("memory", OPENING, Honoured),
    row("model", ALL_OPTIONS, Honoured),
    row("modelCapabilities", OPENING, Honoured),
    row("modelCapabilitiesOverrides", &[Update], Honoured),
    row("models", OPENING, Honoured),
    row("name", &[Create], Honoured),
    row("organizationCustomInstructions", ALL_OPTIONS, Honoured),
    row("pluginDirectories", OPENING, Honoured),
    row("provider", OPENING, Honoured),
    row("providers", OPENING, Honoured),
    row("reasoningEffort", ALL_OPTIONS, Honoured),
    row("reasoningSummary", ALL_OPTIONS, Honoured),
    row("requestAutoModeSwitch", OPENING, Honoured),
    row("requestElicitation", OPENING, Honoured),
    row("requestExitPlanMode", OPENING, Honoured),
    row("requestMcpApps", OPENING, Honoured),
    row("requestPermission", OPENING, Honoured),
    row("requestUserInput", OPENING, Honoured),
    row("sessionLimits", ALL_OPTIONS, Honoured),
    row("skillDirectories", ALL_OPTIONS, Honoured),
    row("skipCustomInstructions", ALL_OPTIONS, Honoured),
    row("streaming", OPENING, Honoured),
    row("subagents", OPENING, Honoured),
    row("systemMessage", OPENING, Honoured),
    row("toolFilterPrecedence", ALL_OPTIONS, Honoured),
    row("tools", OPENING, Honoured),
    row("trustWorkingDirectory", OPENING, Honoured),
    row("workingDirectory", ALL_OPTIONS, Honoured),

    // Messages.
    row("agentMode", &[Send], Honoured),
    row("attachments", &[Send], Honoured),
    row("displayPrompt", &[Send], Honoured),
    row("loopdUntil", &[Send], Honoured),
    row("messageId", &[Send], Honoured),
    row("mode", &[Send], Honoured),
    row("prepend", &[Send], Honoured),
    row("prompt", &[Send], Honoured),
    row("requestHeaders", &[Send], Honoured),
    row("requiredTool", &[Send], Honoured),
    row("runScope", &[Send], Honoured),
    row("source", &[Send], Honoured),
    row("wait", &[Send], Honoured),
    // The daemon bills nobody.
    row("billable", &[Send], Nothing),
    row("responseFormat", &[Send], refused(is_null,
        "answers cannot be held to a schema yet; ask for the form in the prompt")),

    // Who the caller is, and where its traces go; the daemon keeps neither.
    row("agentContext", &[Update], Nothing),
    row("enableGitHubTelemetryForwarding", OPENING, Nothing),
    row("enableSessionTelemetry", OPENING, Nothing),
    row("expAssignments", OPENING, Nothing),
    row("integrationId", &[Update], Nothing),
    row("interactiveUser", OPENING, Nothing),
    row("lspClientName", &[Update], Nothing),
    row("runningInInteractiveMode", &[Update], Nothing),
    row("traceparent", &[Create, Resume, Send], Nothing),
    row("tracestate", &[Create, Resume, Send], Nothing),

    // What is so anyway: a damaged log is never shortened, agents run on this machine, nothing is embedded,
    // nobody looks at git for the model, instructions are read anew, and no skills are built in.
    row("allowTranscriptRecovery", &[Resume], Nothing),
    row("customAgentsLocalOnly", ALL_OPTIONS, Nothing),
    row("embeddingCacheStorage", OPENING, Nothing),
    row("enableHostGitOperations", OPENING, Nothing),
    row("includedBuiltinSkills", &[Update], Nothing),
    row("refreshCustomInstructions", OPENING, Nothing),
    row("skipEmbeddingRetrieval", OPENING, Nothing),

    // Accepted, and people are told.
    row("authClientIdMetadataUrl", OPENING, without("servers are told no address that describes the app")),
    row("canvasProvider", OPENING, without(NO_CANVASES)),
    row("canvases", OPENING, without(NO_CANVASES)),
    row("capi", OPENING, without("the options of that provider are not used")),
    row("configDir", OPENING, without("the app's environment says where configuration is, as with COPILOT_HOME")),
    row("diagnostics", OPENING, without("no language servers are asked for diagnostics")),
    row("extensionInfo", OPENING, without(NO_EXTENSIONS)),
    row("extensionSdkPath", OPENING, without(NO_EXTENSIONS)),
    row("factories", &[Resume], without("there are no factories here")),
    row("featureFlags", ALL_OPTIONS, without("nothing here can be switched by such flags")),
    row("githubMcpToolConfig", OPENING, without("no server of GitHub is built in; name it in `mcpServers`")),
    row("imageGeneration", OPENING, WithoutEffect { unless: is_switched_off, why: "images cannot be made" }),
    row("isExperimentalMode", ALL_OPTIONS, without("nothing here is experimental in that sense")),
    row("largeOutput", OPENING, without("large results are saved to files at the usual size")),
    row("openCanvases", &[Resume], without(NO_CANVASES)),
    row("requestCanvasRenderer", OPENING, without(NO_CANVASES)),
    row("requestExtensions", OPENING, without(NO_EXTENSIONS)),
    row("requestedEnvironmentVariables", &[Resume], without(NO_EXTENSIONS)),
    row("toolSearch", OPENING, WithoutEffect { unless: is_switched_off, why: "models always see all tools" }),
    row("workflows", &[Resume], without("there are no workflows here")),

    // Narrows what a session may do, or changes who answers.
    row("allowedModels", OPENING, refused(is_empty,
        "the choice of models cannot be narrowed yet; leave it out and name one model")),
    row("askUserVariant", OPENING, refused(|value| is_any_of(value, &["legacy"]),
        "questions to users have the form `legacy` here; leave it out")),
    row("cloud", OPENING, refused(is_null, "sessions run on this machine; leave it out")),
    row("enableManagedSettings", OPENING, refused(is_not_true,
        "the policy of an account or a device cannot be fetched here; give its rules as managedSettings")),
    row("enforceManagedModelDefaults", OPENING, refused(is_not_true,
        "there is no fetched policy whose defaults could be enforced")),
    row("excludedManagedSettings", OPENING, refused(is_empty,
        "there is no fetched policy to leave anything out of")),
    row("gitHubTokenProviderRegistrationId", OPENING, refused(is_empty,
        "a client cannot be asked for this token; give it as gitHubToken")),
    row("remoteSession", OPENING, refused(|value| is_any_of(value, &["off"]),
        "sessions cannot be reached from elsewhere; leave it out")),
    row("sandboxConfig", ALL_OPTIONS, refused(is_switched_off,
        "commands cannot be sandboxed yet; leave it out or set `enabled` to false")),

    // Not while a session is live.
    row("additionalContentExclusionPolicies", &[Update], fixed(NOT_HERE)),
    row("allowAllMcpServerInstructions", &[Update], fixed(NOT_HERE)),
    row("capi", &[Update], fixed(NOT_HERE)),
    row("coauthorEnabled", &[Update], refused(is_empty, "commits get no trailer here; set it to false")),
    row("continueOnAutoMode", &[Update], fixed(NOT_HERE)),
    row("copilotUrl", &[Update], fixed(NOT_HERE)),
    row("enableFileHooks", &[Update], fixed(NOT_LIVE)),
    row("enableHostGitOperations", &[Update], fixed(NOT_LIVE)),
    row("enableReasoningSummaries", &[Update], fixed("name the form as reasoningSummary")),
    row("enableScriptSafety", &[Update], fixed(NOT_HERE)),
    row("enableSessionStore", &[Update], fixed(NOT_LIVE)),
    row("eventsLogDirectory", &[Update], fixed(NOT_HERE)),
    row("eventsLogIncludesSubagents", &[Update], fixed(NOT_HERE)),
    row("ignoredSkillsLocations", &[Update], fixed("name the skills as disabledSkills")),
    row("imageGeneration", &[Update], refused(is_switched_off, NOT_HERE)),
    row("includedBuiltinAgents", &[Update], fixed("name the others as excludedBuiltinAgents")),
    row("installedPlugins", &[Update], refused(is_empty, "name plugins as pluginDirectories when the session is opened")),
    row("logInteractiveShells", &[Update], fixed(NOT_HERE)),
    row("manageScheduleEnabled", &[Update], refused(is_empty, "there is no tool for schedules; set it to false")),
    row("maxInlineBinaryBytes", &[Update], fixed(NOT_HERE)),
    row("provider", &[Update], fixed(NOT_LIVE)),
    row("sandboxConfigSource", &[Update], fixed(NOT_HERE)),
    row("sessionCapabilities", &[Update], fixed(NOT_HERE)),
    row("shell", &[Update], fixed(NOT_HERE)),
    row("shellInitProfile", &[Update], fixed(NOT_HERE)),
    row("shellProcessFlags", &[Update], fixed(NOT_HERE)),
    row("skipEmbeddingRetrieval", &[Update], refused(is_not_false, "nothing is embedded here; set it to true")),
    row("suppressCustomAgentPrompt", &[Update], fixed(NOT_HERE)),
    row("trajectoryFile", &[Update], fixed(NOT_HERE)),
    row("verbosity", &[Update], fixed(NOT_HERE)),
];
