//! Files with mistakes: what is said, and what is used all the same.

use super::{own, settings};

#[test]
fn no_json() {
    let said = own("{\"version\":1,\n\"hooks\":{\"preToolUse\":[{\"bash\":\"x\"}]");
    assert!(
        said.starts_with("! f, line 2: is not valid JSON: EOF"),
        "{said}"
    );
}

#[test]
fn an_empty_file_and_a_list() {
    assert_eq!(own(""), "! f: is empty");
    assert_eq!(own("// later\n"), "! f: is empty");
    assert_eq!(own("[]"), "! f, line 1: has to be a JSON object");
}

#[test]
fn an_unknown_version() {
    assert_eq!(
        own("{\"version\":2,\"hooks\":{\"preToolUse\":[{\"bash\":\"x\"}]}}"),
        "! f, line 1: has version 2; only version 1 is known"
    );
}

#[test]
fn a_list_that_is_none() {
    assert_eq!(
        own(
            "{\"version\":1,\"hooks\":{\n\"agentStop\":[{\"bash\":\"a\"}],\n\"preToolUse\":{\"bash\":\"x\"}}}"
        ),
        "2: agentStop bash `a`\n! f, line 3: `preToolUse` has to be a list of hooks and is not used"
    );
    assert_eq!(
        own(
            "{\"hooks\":{\"$comment\":\"ours\",\"agentStop\":null,\n\"preToolUse\":[{\"bash\":\"x\"}]}}"
        ),
        "2: preToolUse bash `x`\n! f, line 1: `$comment` is no kind of hook; did you mean `PreCompact`?"
    );
    assert_eq!(
        own("{\"version\":1,\"hooks\":[]}"),
        "! f, line 1: `hooks` has to be an object of lists by kind of hook"
    );
}

#[test]
fn an_unknown_kind_names_the_nearest() {
    assert_eq!(
        own(
            "{\"version\":1,\"hooks\":{\n\"preToolUsed\":[{\"bash\":\"x\"}],\n\"agentStop\":[{\"bash\":\"a\"}]}}"
        ),
        "3: agentStop bash `a`\n! f, line 2: `preToolUsed` is no kind of hook; did you mean `preToolUse`?"
    );
    assert_eq!(
        own("{\"hooks\":{\"pretooluse\":[],\"PreTooluse\":[],\"onStop\":[]}}"),
        "! f, line 1: `pretooluse` is no kind of hook; did you mean `preToolUse`?\n\
         ! f, line 1: `PreTooluse` is no kind of hook; did you mean `PreToolUse`?\n\
         ! f, line 1: `onStop` is no kind of hook; did you mean `Stop`?"
    );
}

#[test]
fn an_event_that_only_claude_has() {
    assert_eq!(
        own("{\"hooks\":{\"TeammateIdle\":[{\"hooks\":[]}]}}"),
        "! f, line 1: nothing in loopd corresponds to the event `TeammateIdle`: its hooks never run"
    );
}

#[test]
fn a_mistake_drops_its_entry() {
    let text = "{\"version\":1,\"hooks\":{\"preToolUse\":[\n{\"bash\":\"a\"},\n{\"type\":\"command\"},\n{\"bash\":5},\n\"x\",\n{\"bash\":\"b\"}]}}";
    assert_eq!(
        own(text),
        "2: preToolUse bash `a`\n6: preToolUse bash `b`\n\
         ! f, line 3: this preToolUse hook is not used: it needs one of `bash`, `command` and `exec`\n\
         ! f, line 4: this preToolUse hook is not used: `bash`: invalid type: integer `5`, expected a string\n\
         ! f, line 5: a hook has to be an object"
    );
}

#[test]
fn a_mistake_in_settings_drops_all() {
    let text = "{\"hooks\":{\"preToolUse\":[\n{\"bash\":\"a\"},\n{\"bash\":\"\"}]}}";
    assert_eq!(
        settings(text),
        "! f, line 3: this preToolUse hook is not used: `bash` is empty\n\
         ! f: none of its hooks is used: in settings, one mistake drops all hooks; in a file of hooks, such as .github/hooks/a.json, it drops only its own"
    );
}

#[test]
fn a_matcher_that_is_no_regex() {
    let text = "{\"version\":1,\"hooks\":{\"preToolUse\":[{\"bash\":\"a\",\"matcher\":\"bash(\"},{\"bash\":\"b\"}]}}";
    assert_eq!(
        own(text),
        "1: preToolUse bash `b`\n\
         ! f, line 1: this preToolUse hook is not used: its `matcher` cannot be used as a regular expression: unclosed group"
    );
}

#[test]
fn a_matcher_where_there_is_nothing_to_match() {
    let text = r#"{"version":1,"hooks":{"agentStop":[{"bash":"a","matcher":"x"}]}}"#;
    assert_eq!(
        own(text),
        "1: agentStop bash `a`\n! f, line 1: `matcher` is not used: hooks of agentStop run every time"
    );
}

#[test]
fn members_that_are_not_known_are_named() {
    let text = r#"{"version":1,"hooks":{"preToolUse":[{"bash":"a","timeoutSecs":5}]}}"#;
    assert_eq!(
        own(text),
        "1: preToolUse bash `a`\n! f, line 1: `timeoutSecs` is not known and not used"
    );
    let text = r#"{"hooks":{"Stop":[{"hook":"x","hooks":[{"command":"a"}]}]}}"#;
    assert_eq!(
        own(text),
        "1: Stop bash `a`\n! f, line 1: `hook` of a group is not known and not used"
    );
}

#[test]
fn timeouts_out_of_bounds() {
    let wrong = "! f, line 1: this preToolUse hook is not used: the timeout has to be a number of seconds above 0";
    // Some people write milliseconds. A guard with a long timeout is better than none.
    let long = "1: preToolUse bash `a` 3600s\n\
                ! f, line 1: the timeout of 60000 is in seconds; the longest possible one, 3600 seconds, is used";
    let table = [
        ("0", wrong),
        ("-1", wrong),
        ("\"10\"", wrong),
        ("null", "1: preToolUse bash `a`"),
        ("60000", long),
    ];
    for (timeout, expected) in table {
        let text = format!(
            "{{\"version\":1,\"hooks\":{{\"preToolUse\":[{{\"bash\":\"a\",\"timeoutSec\":{timeout}}}]}}}}"
        );
        assert_eq!(own(&text), expected, "{timeout}");
    }
}

#[test]
fn addresses_that_are_not_safe() {
    let said = |kind: &str, url: &str| {
        own(&format!(
            "{{\"hooks\":{{\"{kind}\":[{{\"type\":\"http\",\"url\":\"{url}\"}}]}}}}"
        ))
    };
    for url in [
        "http://example.com",
        "http://localhost.example.com",
        "http://127.0.0.1@example.com",
        "http://127.example.com",
        "ftp://localhost",
        "file:///x",
        "",
    ] {
        assert_eq!(
            said("postToolUse", url),
            format!(
                "! f, line 1: this postToolUse hook is not used: `url` has to begin with https://, not `{url}`"
            )
        );
    }
    assert_eq!(
        said("preToolUse", "http://localhost:1"),
        "! f, line 1: this preToolUse hook is not used: `url` of a preToolUse hook has to begin with https://: its answer can allow a tool call"
    );
    assert_eq!(
        said("postToolUse", "http://[::1]:9/x"),
        "1: postToolUse POST http://[::1]:9/x {} []"
    );
}

#[test]
fn types_that_are_not_supported() {
    let said = |kind: &str, entry: &str| own(&format!("{{\"hooks\":{{\"{kind}\":[{entry}]}}}}"));
    assert_eq!(
        said("PreToolUse", "{\"type\":\"agent\",\"prompt\":\"x\"}"),
        "! f, line 1: this PreToolUse hook is not used: the type `agent` is not supported; the types are `command`, `http` and `prompt`"
    );
    assert_eq!(
        said("Stop", "{\"type\":\"prompt\",\"prompt\":\"x\"}"),
        "! f, line 1: this Stop hook is not used: a hook of type `prompt` is only possible for sessionStart"
    );
    assert_eq!(
        said("PreToolUse", "{\"powershell\":\"x\"}"),
        "! f, line 1: this PreToolUse hook is not used: it has commands for other systems only"
    );
    assert_eq!(
        said("PreToolUse", "{\"exec\":\"x\",\"bash\":\"y\"}"),
        "! f, line 1: this PreToolUse hook is not used: `exec` cannot be combined with `bash`, `powershell` or `command`"
    );
    assert_eq!(
        said("PreToolUse", "{\"command\":\"x\",\"asyncRewake\":true}"),
        "! f, line 1: this PreToolUse hook is not used: `asyncRewake` is not supported; use `async`"
    );
    assert_eq!(
        said("Stop", "{\"command\":\"x\",\"if\":\"Bash(ls)\"}"),
        "! f, line 1: this Stop hook is not used: `if` is not possible: hooks of Stop are for no tool"
    );
    assert_eq!(
        said("PreToolUse", "{\"command\":\"x\",\"if\":\"git push\"}"),
        "! f, line 1: this PreToolUse hook is not used: `if` has to be like `Bash(git *)`, not `git push`"
    );
    assert_eq!(
        said("PreToolUse", "{\"command\":\"x\",\"onFailure\":\"open\"}"),
        "! f, line 1: this PreToolUse hook is not used: `onFailure` has to be `continue` or `block`, not `open`"
    );
}

#[test]
fn what_only_others_can_run_leaves_the_rest_of_the_settings_alone() {
    let text = "{\"hooks\":{\n\"Stop\":[{\"hooks\":[{\"type\":\"agent\",\"prompt\":\"x\"}]}],\n\
                \"TaskCompleted\":[],\n\"PreToolUse\":[{\"matcher\":\"(\",\"hooks\":[{\"command\":\"a\"}]},\n\
                {\"hooks\":[{\"command\":\"b\"}]}]}}";
    assert_eq!(
        settings(text),
        "5: PreToolUse bash `b`\n\
         ! f, line 2: this Stop hook is not used: the type `agent` is not supported; the types are `command`, `http` and `prompt`\n\
         ! f, line 3: nothing in loopd corresponds to the event `TaskCompleted`: its hooks never run\n\
         ! f, line 4: this PreToolUse hook is not used: its `matcher` cannot be used as a regular expression: unclosed group"
    );
}

#[test]
fn a_matcher_that_is_no_text() {
    let text = "{\"hooks\":{\"PostToolUse\":[\n{\"matcher\":{\"tools\":[\"Write\"]},\"hooks\":[{\"command\":\"a\"}]},\n{\"hooks\":[{\"command\":\"b\"}]}]}}";
    assert_eq!(
        own(text),
        "3: PostToolUse bash `b`\n\
         ! f, line 2: the hooks of this group are not used: its `matcher` has to be text like \"Edit|Write\""
    );
    assert!(settings(text).ends_with("it drops only its own"));
}

#[test]
fn kinds_outside_of_the_block() {
    assert_eq!(
        own("{\n\"PreToolUse\":[{\"command\":\"a\"}]}"),
        "! f, line 2: `PreToolUse` is not used: it has to be inside of `hooks`"
    );
    assert_eq!(own("{\"version\":1}"), "! f: has no `hooks`");
}

#[test]
fn a_guard_nobody_waits_for() {
    let text = r#"{"hooks":{"PreToolUse":[{"command":"a","async":true}]}}"#;
    assert_eq!(
        own(text),
        "1: PreToolUse bash `a` in background\n\
         ! f, line 1: this PreToolUse hook cannot deny anything: with `async` nobody waits for its answer"
    );
}
