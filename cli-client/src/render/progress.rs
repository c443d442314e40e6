//! The todo list as a checklist, and how far a fleet is.

use std::fmt::Write as _;

use loopd_sdk::{FleetEnd, FleetProgress, Todo, TodoList, TodoStatus};

use super::line::shorten;
use super::text::Text;
use crate::terminal::Style;

impl Text {
    /// Shows what has changed in the todo list; at first that is all of it.
    pub(super) fn show_todos(&mut self, list: &TodoList) -> anyhow::Result<()> {
        for line in checklist(&self.todos, list) {
            self.note(Style::Dim, &line)?;
        }
        self.todos = list.clone();
        Ok(())
    }

    pub(super) fn show_fleet(&mut self, progress: &FleetProgress) -> anyhow::Result<()> {
        self.note(Style::Dim, &fleet_line(progress))
    }
}

/// Returns the lines about what has changed between two lists; none if nothing has.
fn checklist(before: &TodoList, now: &TodoList) -> Vec<String> {
    let is_same = |todo: &Todo| {
        let before = before.get(&todo.id);
        before.is_some_and(|it| it.status == todo.status && it.content == todo.content)
    };
    let gone = before.todos.iter().filter(|it| now.get(&it.id).is_none());
    let gone: Vec<&Todo> = gone.collect();
    let changed: Vec<&Todo> = now.todos.iter().filter(|todo| !is_same(todo)).collect();
    if changed.is_empty() && gone.is_empty() {
        return Vec::new();
    }
    let count = |status| now.todos.iter().filter(|it| it.status == status).count();
    let done = count(TodoStatus::Completed);
    let total = now.todos.len() - count(TodoStatus::Cancelled);
    let mut lines = vec![format!("todos: {done} of {total} done")];
    lines.extend(changed.into_iter().map(|todo| {
        let (mark, note) = match todo.status {
            TodoStatus::Pending => (' ', ""),
            TodoStatus::InProgress => ('>', ""),
            TodoStatus::Completed => ('x', ""),
            TodoStatus::Cancelled => ('-', " (cancelled)"),
            TodoStatus::Blocked => ('!', " (blocked)"),
        };
        format!("  [{mark}] {}{note}", one_line(&todo.content))
    }));
    lines.extend(gone.into_iter().map(|todo| {
        let title = one_line(&todo.content);
        format!("  [-] {title} (taken off the list)")
    }));
    lines
}

fn one_line(text: &str) -> String {
    shorten(&text.replace('\n', " "))
}

/// Returns a line about how far a fleet is.
pub(crate) fn fleet_line(progress: &FleetProgress) -> String {
    let name = match progress.ended {
        None => "fleet",
        Some(FleetEnd::Finished) => "fleet finished",
        Some(FleetEnd::Stopped) => "fleet stopped",
    };
    let waiting = match (progress.ended, progress.waiting) {
        (None, 1) => "waits",
        (None, _) => "wait",
        (Some(_), _) => "not begun",
    };
    let mut line = format!("{name}: {} of {} done", progress.done, progress.total);
    for (number, what) in [(progress.blocked, "blocked"), (progress.waiting, waiting)] {
        if number > 0 {
            // Writing into a text does not fail.
            write!(line, ", {number} {what}").ok();
        }
    }
    let workers = progress.running.iter();
    let at_work: Vec<&str> = workers.map(|worker| worker.todo_id.as_str()).collect();
    if !at_work.is_empty() {
        write!(line, "; at work: {}", at_work.join(", ")).ok();
    }
    shorten(&line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use loopd_sdk::proto::event::todo::TodoPriority;

    fn list(todos: &[(&str, TodoStatus)]) -> TodoList {
        let todos = todos.iter().map(|(id, status)| Todo {
            id: (*id).to_owned(),
            content: format!("Do {id}"),
            status: *status,
            priority: TodoPriority::default(),
            description: None,
            created_at: String::new(),
        });
        TodoList {
            todos: todos.collect(),
            ..TodoList::default()
        }
    }

    #[test]
    fn only_what_has_changed_is_shown() {
        use TodoStatus::{Blocked, Cancelled, Completed, InProgress, Pending};
        let first = list(&[("a", Pending), ("b", Pending), ("c", Pending)]);
        assert_eq!(
            checklist(&TodoList::default(), &first),
            [
                "todos: 0 of 3 done",
                "  [ ] Do a",
                "  [ ] Do b",
                "  [ ] Do c"
            ]
        );
        assert!(checklist(&first, &first).is_empty());
        let next = list(&[("a", Completed), ("b", InProgress), ("c", Pending)]);
        assert_eq!(
            checklist(&first, &next),
            ["todos: 1 of 3 done", "  [x] Do a", "  [>] Do b"]
        );
        let last = list(&[("a", Completed), ("b", Cancelled), ("d", Blocked)]);
        assert_eq!(
            checklist(&next, &last),
            [
                "todos: 1 of 2 done",
                "  [-] Do b (cancelled)",
                "  [!] Do d (blocked)",
                "  [-] Do c (taken off the list)"
            ]
        );
    }
}
