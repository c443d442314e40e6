//! Agents of a random life: started, let go, heard, spoken to again, ended.

use loopd_kernel::command::{Command, TaskAnswer, TaskEnd, TaskStart};
use loopd_proto::event::session::ModelMetrics;
use loopd_proto::event::task::{
    AgentWork, Execution, ExternalWork, TaskOutcome, TaskWork, WorkUsage,
};
use loopd_proto::id::TaskId;

use super::World;

impl World {
    /// Something happens to one of a few agents, or to work of a client.
    pub(super) fn agent(&mut self, which: u8, how: u8) {
        let name = format!("agent-{}", which % 3);
        let id = TaskId::from(name.as_str());
        let answer = format!("answer {which} {how}");
        self.give(match how % 10 {
            0 | 1 => Command::TaskStarted(Box::new(TaskStart {
                call: (which & 4 != 0).then(|| format!("call-{}", which % 2).into()),
                description: String::new(),
                started_at: None,
                work: work(&name, which),
                id,
            })),
            2 => Command::TaskPromoted(id),
            3 | 4 => Command::TaskAnswered {
                id,
                answer: TaskAnswer {
                    response: answer,
                    usage: usage(how),
                    delivered: which & 8 != 0,
                },
            },
            5 => Command::TaskContinued {
                id,
                message: "more".to_owned(),
            },
            6 | 7 => Command::TaskEnded {
                id,
                end: TaskEnd {
                    result: (how & 16 != 0).then_some(answer),
                    usage: (how & 32 != 0).then(|| usage(how)),
                    delivered: which & 8 != 0,
                    ..TaskEnd::new(match which % 3 {
                        0 => TaskOutcome::Completed,
                        1 => TaskOutcome::Failed,
                        _ => TaskOutcome::Cancelled,
                    })
                },
            },
            8 if which & 8 == 0 => Command::TaskNoted {
                id,
                note: "half".to_owned(),
            },
            8 => Command::TasksDelivered(vec![id]),
            _ => Command::RemoveTask(id),
        });
    }
}

fn work(name: &str, which: u8) -> TaskWork {
    if which & 0x30 == 0x30 {
        return TaskWork::External(ExternalWork {
            agent_type: "client-task".to_owned(),
            prompt: String::new(),
        });
    }
    TaskWork::Agent(Box::new(AgentWork {
        agent_type: "explore".to_owned(),
        name: name.to_owned(),
        prompt: "look".to_owned(),
        session_id: format!("session-{name}").into(),
        execution: if which & 0x10 == 0 {
            Execution::Background
        } else {
            Execution::Sync
        },
        model: Some("model".to_owned()),
        requested_model: None,
        output_file: None,
        worktree: None,
    }))
}

/// What an agent took so far, whatever it was.
fn usage(how: u8) -> WorkUsage {
    let mut usage = WorkUsage {
        tool_calls: how.into(),
        api_duration_ms: how.into(),
        nano_credits: how.into(),
        ..WorkUsage::default()
    };
    let metrics = ModelMetrics::default();
    usage.models.insert(format!("model-{}", how % 2), metrics);
    usage
}
