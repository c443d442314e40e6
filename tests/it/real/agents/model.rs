//! The model of the parents and of their agents. It lives outside of the daemon and knows what it
//! was asked, whatever became of the answers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use loopd_tests::script::{Call, Recorded};
use loopd_tests::validator::text_of;
use loopd_tests::{Script, Turn, call};
use serde_json::{Value, json};
use tokio::sync::watch;

/// How many times in a row a parent starts agents before it rests.
const STEPS: usize = 2;

/// What the model was asked.
pub(super) struct Memory {
    /// The last conversation of each parent.
    pub(super) last: Mutex<BTreeMap<usize, Vec<Value>>>,
    /// How many requests there were.
    pub(super) asked: watch::Sender<usize>,
}

/// What a piece of work is like, by its number.
pub(super) struct Piece(u64);

impl Piece {
    /// Has a name that others have, too.
    fn shares_its_name(&self) -> bool {
        self.0.is_multiple_of(4)
    }

    /// The parent waits for the answer.
    fn is_waited_for(&self) -> bool {
        self.0 % 9 == 8
    }

    /// The parent asks for the answer before it is told.
    fn is_read(&self) -> bool {
        self.0 % 10 == 3
    }

    /// The parent has more to say when it hears the answer.
    fn is_continued(&self) -> bool {
        self.0 % 6 == 1
    }

    fn id(&self) -> String {
        format!("piece-{}", self.0)
    }

    pub(super) fn answer(number: &str) -> String {
        format!("piece {number} is done")
    }

    pub(super) fn second_answer(number: &str) -> String {
        format!("more of piece {number} is done")
    }

    fn call(&self) -> Call {
        let number = self.0;
        let name = if self.shares_its_name() {
            "same".to_owned()
        } else {
            self.id()
        };
        let mode = if self.is_waited_for() {
            "sync"
        } else {
            "background"
        };
        let arguments = json!({"description": "a piece of it", "prompt": format!("piece {number}: do it"),
                               "name": name, "mode": mode});
        call(&format!("call_{number}"), "task", arguments)
    }

    /// What its agent does before it answers.
    fn looks(&self) -> Option<Call> {
        let id = format!("look_{}", self.0);
        if self.0 % 13 == 6 {
            return Some(call(&id, "bash", json!({"command": "echo looked"})));
        }
        let globs = self.0.is_multiple_of(3);
        globs.then(|| call(&id, "glob", json!({"pattern": "*.rs"})))
    }
}

struct Mind {
    /// How many agents each parent is to start.
    tasks: usize,
    /// The last number that was given to a piece or a call.
    numbers: u64,
    continued: BTreeSet<String>,
    memory: Arc<Memory>,
}

/// Starts the model.
pub(super) async fn start(tasks: usize) -> (Script, Arc<Memory>) {
    let memory = Arc::new(Memory {
        last: Mutex::default(),
        asked: watch::Sender::new(0),
    });
    let mut mind = Mind {
        tasks,
        numbers: 0,
        continued: BTreeSet::new(),
        memory: memory.clone(),
    };
    let script = Script::answering(move |request| mind.answer(request)).await;
    (script.forgetful(), memory)
}

/// The word between two others.
pub(super) fn between<'a>(text: &'a str, start: &str, end: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(start)?;
    Some(rest.split_once(end)?.0)
}

impl Mind {
    fn answer(&mut self, request: &Recorded) -> Turn {
        self.memory.asked.send_modify(|count| *count += 1);
        let first = request.first_user_text();
        if let Some(number) = between(&first, "piece ", ": do it") {
            return agent(number, request);
        }
        let parent = between(&first, "parent ", ":").expect(&first);
        let parent = parent.parse().unwrap();
        let mut last = self.memory.last.lock().unwrap();
        last.insert(parent, request.messages().to_vec());
        drop(last);
        let calls = self.next_calls(request);
        if calls.is_empty() {
            Turn::any().says("enough for now")
        } else {
            Turn::any().calls(calls)
        }
    }

    fn next_calls(&mut self, request: &Recorded) -> Vec<Call> {
        let messages = request.messages();
        let results = messages.iter().filter(|message| message["role"] == "tool");
        let started = results.map(text_of).filter(|result| {
            let of_task = !result.starts_with("Agent is") && !result.starts_with("Agent completed");
            result.starts_with("Agent started") || (of_task && result.contains("is done"))
        });
        let missing = self.tasks.saturating_sub(started.count());
        let since = messages.iter().rev();
        let since: Vec<&Value> = since
            .take_while(|message| message["role"] != "assistant")
            .collect();
        let news: Vec<String> = since.into_iter().map(text_of).collect();
        let mut calls = self.about(&news);
        let steps = messages.iter().rev();
        let steps = steps.take_while(|message| message["role"] != "user");
        let steps = steps.filter(|message| message["role"] == "assistant");
        if steps.count() < STEPS {
            let wanted = 1 + usize::try_from(self.numbers % 5).unwrap();
            calls.extend((0..wanted.min(missing)).map(|_| Piece(self.number()).call()));
        }
        calls
    }

    fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    /// What it has to say or ask after news of its agents.
    fn about(&mut self, news: &[String]) -> Vec<Call> {
        let mut calls = Vec::new();
        let launched = news
            .iter()
            .filter_map(|text| between(text, "in background with agent_id: piece-", "."));
        let read: Vec<u64> = launched.map(|number| number.parse().unwrap()).collect();
        for number in read.into_iter().filter(|number| Piece(*number).is_read()) {
            let arguments = json!({"agent_id": Piece(number).id(), "wait": true, "timeout": 20});
            let id = format!("read_{}", self.number());
            calls.push(call(&id, "read_agent", arguments));
        }
        let told = news
            .iter()
            .flat_map(|text| text.split("<task_id>piece-").skip(1));
        for note in told.collect::<Vec<_>>() {
            let number = note.split_once("</task_id>").unwrap().0;
            let again = Piece(number.parse().unwrap()).is_continued();
            if again && self.continued.insert(number.to_owned()) {
                let message = format!("more of piece {number}");
                let arguments = json!({"agent_id": format!("piece-{number}"), "message": message});
                let id = format!("write_{}", self.number());
                calls.push(call(&id, "write_agent", arguments));
            }
        }
        calls
    }
}

fn agent(number: &str, request: &Recorded) -> Turn {
    if request.last_user_text().contains("more of piece") {
        return Turn::any().says(&Piece::second_answer(number));
    }
    let looks = Piece(number.parse().unwrap()).looks();
    match looks.filter(|_| request.last_results().is_empty()) {
        Some(look) => Turn::any().calls([look]),
        None => Turn::any().says(&Piece::answer(number)),
    }
}
