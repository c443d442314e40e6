use super::*;

const NOW: Timestamp = Timestamp(1_000_000_000_000);

fn input(id: Option<&str>, content: &str) -> TodoInput {
    TodoInput {
        id: id.map(str::to_owned),
        content: content.to_owned(),
        status: TodoStatus::Pending,
        priority: None,
        description: None,
        depends_on: None,
    }
}

fn ids(list: &TodoList) -> Vec<&str> {
    list.todos.iter().map(|todo| todo.id.as_str()).collect()
}

fn edges(list: &TodoList) -> Vec<(&str, &str)> {
    let edges = list.dependencies.iter();
    edges
        .map(|edge| (edge.todo_id.as_str(), edge.depends_on.as_str()))
        .collect()
}

#[test]
fn entries_without_an_id_get_one_and_keep_it() {
    let first = rewritten(
        &TodoList::default(),
        vec![
            input(None, "read"),
            input(Some("2"), "write"),
            input(None, "test"),
        ],
        NOW,
    )
    .unwrap();
    let mut unique = ids(&first);
    unique.sort_unstable();
    unique.dedup();
    assert_eq!(unique.len(), 3);
    let again = rewritten(
        &first,
        vec![input(None, "test"), input(None, "read")],
        Timestamp(0),
    )
    .unwrap();
    let before = ids(&first);
    assert_eq!(ids(&again).first(), before.last());
    assert_eq!(ids(&again).last(), before.first());
    let made = again.todos.first().map(|todo| todo.created_at.as_str());
    assert_eq!(made, Some("2001-09-09 01:46:40"));
}

#[test]
fn what_depended_on_an_entry_that_is_gone_waits_no_more() {
    let mut b = input(Some("b"), "two");
    b.depends_on = Some(vec!["a".to_owned(), "a".to_owned()]);
    let list = rewritten(&TodoList::default(), vec![input(Some("a"), "one"), b], NOW).unwrap();
    assert_eq!(edges(&list), [("b", "a")]);
    let kept = rewritten(
        &list,
        vec![input(Some("a"), "one"), input(Some("b"), "two")],
        NOW,
    )
    .unwrap();
    assert_eq!(edges(&kept), [("b", "a")]);
    let gone = rewritten(&list, vec![input(Some("b"), "two")], NOW).unwrap();
    assert_eq!(edges(&gone), []);
}

#[test]
fn a_list_that_is_too_long_is_refused_before_it_is_read() {
    let many = |count: usize| (0..count).map(|at| input(None, &format!("todo {at}")));
    let wrong = rewritten(&TodoList::default(), many(100_000).collect(), NOW);
    let expected = TodoProblem::TooMany {
        count: 100_000,
        limit: MOST_TODOS,
    };
    assert_eq!(wrong, Err(expected));
    let mut one = input(Some("a"), "one");
    one.depends_on = Some(vec!["b".to_owned(); 100_000]);
    let wrong = rewritten(&TodoList::default(), vec![one], NOW);
    let expected = TodoProblem::TooManyDependencies {
        count: 100_000,
        limit: MOST_DEPENDENCIES,
    };
    assert_eq!(wrong, Err(expected));
    let list = rewritten(&TodoList::default(), many(MOST_TODOS).collect(), NOW).unwrap();
    let numbers: Vec<String> = (1..=MOST_TODOS).map(|at| at.to_string()).collect();
    assert_eq!(ids(&list), numbers);
}
