use serde_json::json;

use super::*;

/// Events with ids from 1 on.
fn events(list: &[(&str, Value)]) -> Vec<Value> {
    let numbered = list.iter().enumerate();
    numbered
        .map(|(at, (kind, data))| {
            let mut event = json!({"type": kind, "data": data, "id": (at + 1).to_string(),
                "timestamp": format!("t{}", at + 1)});
            if kind.contains("delta") || kind.contains("partial") || kind.contains("retry") {
                event["ephemeral"] = true.into();
            }
            event
        })
        .collect()
}

fn folded(list: &[(&str, Value)]) -> Messages {
    let mut messages = Messages::new(None);
    for event in events(list) {
        messages.apply(&event);
    }
    messages
}

/// A message in short: its id and parts.
fn shown(messages: &Messages) -> Vec<String> {
    let show = |part: &Part| {
        let content = match &part.content {
            PartContent::Text { text } => format!("text {text}"),
            PartContent::Reasoning { text } => format!("reasoning {text}"),
            PartContent::Tool(tool) => format!(
                "{} {:?} {}",
                tool.tool,
                tool.status,
                tool.output
                    .as_deref()
                    .or(tool.partial.as_deref())
                    .unwrap_or("-")
            ),
            PartContent::File { name, .. } => format!("file {name}"),
            PartContent::Compaction { status, .. } => format!("compaction {status:?}"),
            PartContent::Cleared { messages } => format!("cleared {messages}"),
            PartContent::Subtask(task) => format!("subtask {} {:?}", task.agent, task.status),
            PartContent::Retry { .. } => "retry".to_owned(),
            PartContent::Step { phase } => format!("{phase:?}"),
            PartContent::Error { message, .. } => format!("error {message}"),
        };
        let mark = if part.transient { "~" } else { "" };
        format!("{mark}{content}")
    };
    messages
        .iter()
        .map(|message| {
            let parts: Vec<String> = message.parts.iter().map(show).collect();
            format!("{} {:?}: {}", message.id, message.role, parts.join(", "))
        })
        .collect()
}

#[test]
fn a_turn_is_one_message_with_its_tools_and_streamed_text_gives_way_to_the_whole() {
    let turn = [
        (
            "user.message",
            json!({"content": "hi", "attachments": [{"type": "file", "path": "/a.txt"}]}),
        ),
        ("assistant.turn_start", json!({"turnId": "0"})),
        ("assistant.reasoning_delta", json!({"deltaContent": "hm"})),
        ("assistant.message_delta", json!({"deltaContent": "I "})),
        ("assistant.turn_retry", json!({"turnId": "0"})),
        ("assistant.message_delta", json!({"deltaContent": "I lo"})),
        ("assistant.message_delta", json!({"deltaContent": "ok"})),
        (
            "assistant.message",
            json!({"messageId": "m", "content": "I look", "reasoningText": "hmm",
            "toolRequests": [{"toolCallId": "c", "name": "bash", "arguments": {"command": "ls"}}]}),
        ),
        (
            "tool.execution_start",
            json!({"toolCallId": "c", "toolName": "bash"}),
        ),
        (
            "tool.execution_partial_result",
            json!({"toolCallId": "c", "partialOutput": "a"}),
        ),
        (
            "tool.execution_complete",
            json!({"toolCallId": "c", "success": true, "result": {"content": "a b"}}),
        ),
        ("assistant.turn_end", json!({"turnId": "0"})),
    ];
    let user = "1 User: text hi, file /a.txt";
    let steps: [(usize, &str); 6] = [
        (4, "2 Assistant: Start, ~reasoning hm, ~text I "),
        (5, "2 Assistant: Start, ~retry"),
        (7, "2 Assistant: Start, ~retry, ~text I look"),
        (
            8,
            "2 Assistant: Start, ~retry, reasoning hmm, text I look, bash Pending -",
        ),
        (
            10,
            "2 Assistant: Start, ~retry, reasoning hmm, text I look, bash Running a",
        ),
        (
            12,
            "2 Assistant: Start, reasoning hmm, text I look, bash Completed a b, Finish",
        ),
    ];
    for (count, expected) in steps {
        let messages = folded(&turn[..count]);
        assert_eq!(shown(&messages), [user, expected], "after {count} events");
    }
}

#[test]
fn subtasks_notices_and_commands_of_people_have_their_places() {
    let messages = folded(&[
        ("assistant.turn_start", json!({"turnId": "0"})),
        (
            "assistant.message",
            json!({"messageId": "m", "content": "",
            "toolRequests": [{"toolCallId": "t", "name": "task", "arguments": {}}]}),
        ),
        (
            "subagent.started",
            json!({"toolCallId": "t", "agentName": "explore"}),
        ),
        ("assistant.turn_end", json!({"turnId": "0"})),
        (
            "session.error",
            json!({"message": "no", "errorType": "quota"}),
        ),
        (
            "tool.execution_start",
            json!({"toolCallId": "u", "toolName": "bash"}),
        ),
        (
            "tool.execution_complete",
            json!({"toolCallId": "u", "success": false, "error": {"message": "bad"}}),
        ),
        ("session.compaction_start", json!({})),
        (
            "session.compaction_complete",
            json!({"success": true, "summaryContent": "s"}),
        ),
        (
            "subagent.completed",
            json!({"toolCallId": "t", "agentName": "explore"}),
        ),
    ]);
    assert_eq!(
        shown(&messages),
        [
            "1 Assistant: Start, task Pending -, subtask explore Completed, Finish",
            "5 Notice: error no",
            "6 User: bash Failed bad",
            "8 Notice: compaction Completed",
        ]
    );
}

#[test]
fn a_rewind_takes_messages_back_or_wants_them_listed_again() {
    let mut messages = folded(&[
        ("user.message", json!({"content": "one"})),
        ("user.message", json!({"content": "two"})),
    ]);
    let rewind = |to: &str| {
        json!({"type": "session.snapshot_rewind", "ephemeral": true, "id": "r", "timestamp": "t",
            "data": {"upToEventId": to, "eventsRemoved": 1}})
    };
    assert_eq!(
        messages.apply(&rewind("2")),
        Changed::TakenBack("2".to_owned())
    );
    assert_eq!(shown(&messages), ["1 User: text one"]);
    assert_eq!(messages.apply(&rewind("elsewhere")), Changed::ListAgain);
}

#[test]
fn the_events_of_a_sub_agent_are_in_its_own_session() {
    let mut event = json!({"type": "user.message", "id": "1", "timestamp": "t", "agentId": "look",
        "data": {"content": "find it"}});
    assert_eq!(Messages::new(None).apply(&event), Changed::Nothing);
    let mut own = Messages::new(Some("look".to_owned()));
    assert_eq!(own.apply(&event), Changed::Message("1".to_owned()));
    event["agentId"] = "other".into();
    assert_eq!(own.apply(&event), Changed::Nothing);
}

#[test]
fn what_was_listed_goes_on_with_the_events_that_follow() {
    let list = [
        ("user.message", json!({"content": "hi"})),
        ("assistant.turn_start", json!({"turnId": "0"})),
        (
            "assistant.message",
            json!({"messageId": "m", "content": "yes", "toolRequests": []}),
        ),
        ("assistant.turn_end", json!({"turnId": "0"})),
    ];
    let all = events(&list);
    for split in 0..all.len() {
        let mut first = Messages::new(None);
        all[..split].iter().for_each(|event| {
            first.apply(event);
        });
        let mut second = Messages::listed(None, first.stored());
        all[split..].iter().for_each(|event| {
            second.apply(event);
        });
        assert_eq!(second.stored(), folded(&list).stored(), "split at {split}");
    }
}

/// Two turns, each with a call that runs, and a sub-agent that starts another one.
fn calling() -> Vec<(&'static str, Value)> {
    let mut list = vec![("user.message", json!({"content": "go"}))];
    for call in ["a", "b"] {
        let asks = json!({"messageId": "m", "content": call,
            "toolRequests": [{"toolCallId": call, "name": "task", "arguments": {}}]});
        let start = json!({"toolCallId": call, "toolName": "task"});
        let end = json!({"toolCallId": call, "success": true, "result": {"content": "done"}});
        list.extend([
            ("assistant.turn_start", json!({"turnId": "0"})),
            ("assistant.message", asks),
            ("system.notification", json!({"content": "news"})),
            ("tool.execution_start", start),
            (
                "subagent.started",
                json!({"toolCallId": call, "agentName": "explore"}),
            ),
            ("tool.execution_complete", end),
            ("assistant.turn_end", json!({"turnId": "0"})),
        ]);
    }
    list
}

#[test]
fn calls_of_messages_that_are_left_out_are_no_messages_of_their_own() {
    let all = folded(&calling()).stored();
    for kept in 0..=all.len() {
        let mut messages = Messages::new(None);
        for event in events(&calling()) {
            messages.apply(&event);
            messages.keep_newest(kept);
        }
        let newest = &all[all.len() - kept..];
        let found: Vec<&str> = messages.iter().map(|message| &*message.id).collect();
        let expected: Vec<&str> = newest.iter().map(|message| &*message.id).collect();
        assert_eq!(found, expected, "the newest {kept}");
    }
}

#[test]
fn a_sub_agent_of_a_sub_agent_is_in_the_messages_of_the_one_that_started_it() {
    let mut messages = Messages::new(None);
    for mut event in events(&calling()) {
        event["agentId"] = "child".into();
        if event["type"] == "subagent.started" {
            event["data"]["parentId"] = "child".into();
            event["agentId"] = "child.grandchild".into();
        }
        messages.apply(&event);
    }
    assert_eq!(shown(&messages), Vec::<String>::new());
}

#[test]
fn after_an_undo_the_messages_have_to_be_listed_again() {
    let mut messages = folded(&[("user.message", json!({"content": "one"}))]);
    let undo = json!({"type": "session.snapshot_rewind", "ephemeral": true, "id": "r",
        "timestamp": "t", "data": {"upToEventId": "1", "eventsRemoved": 1, "eventsRestored": 4}});
    assert_eq!(messages.apply(&undo), Changed::ListAgain);
}

#[test]
fn of_a_long_output_of_a_running_call_the_end_is_kept() {
    let start = json!({"toolCallId": "call", "toolName": "bash"});
    let mut events = vec![("tool.execution_start", start)];
    for _ in 0..5 {
        let more = json!({"toolCallId": "call", "partialOutput": "é".repeat(20_000)});
        events.push(("tool.execution_partial_result", more));
    }
    let end = json!({"toolCallId": "call", "partialOutput": "end"});
    events.push(("tool.execution_partial_result", end));
    let messages = folded(&events);
    let mut parts = messages.iter().flat_map(|message| &message.parts);
    let partial = parts.find_map(|part| match &part.content {
        PartContent::Tool(tool) => tool.partial.as_ref(),
        _ => None,
    });
    let partial = partial.unwrap();
    assert!(partial.ends_with("éend"));
    assert_eq!(partial.len(), 64 * 1024 - 1);
}
