//! Functions and aliases of the user that have the names of what the shell's own code uses.

use super::*;

#[tokio::test]
async fn a_shell_goes_on_when_names_of_bash_are_given_to_functions() {
    for define in [
        "builtin() { :; }",
        "builtin() { false; }",
        "builtin() { :; }; unset() { :; }",
        "unset() { :; }; exec() { :; }; builtin() { return 1; }",
        "function builtin { :; }; set -e",
        "builtin() { :; }; set -u",
        ":() { false; }",
        "printf() { :; }; read() { :; }; eval() { :; }; break() { :; }; return() { :; }; local() { :; }; jobs() { :; }",
        "alias builtin=:",
        "alias unset=: builtin=false",
    ] {
        let fixture = Fixture::new();
        let mut shell = fixture.terminal().await;
        let (_, end) = run(&mut shell, define).await;
        assert_eq!(end, CommandEnd::Exited(0), "{define}");
        let (said, end) = run(&mut shell, "echo next; ( exit 3 ) || command false").await;
        assert_eq!(
            (said.as_str(), end),
            ("next\n", CommandEnd::Exited(1)),
            "{define}"
        );
        if !define.contains("set -e") {
            // Bash reads its prompt anew after a syntax error.
            run(&mut shell, "if then").await;
            let (said, end) = run(&mut shell, "echo after").await;
            assert_eq!(
                (said.as_str(), end),
                ("after\n", CommandEnd::Exited(0)),
                "{define}"
            );
        }
    }
}

#[tokio::test]
async fn a_function_that_cannot_be_removed_closes_its_shell_with_the_cause() {
    let fixture = Fixture::new();
    let mut shell = fixture.terminal().await;
    let (said, end) = run(&mut shell, "builtin() { :; }; readonly -f builtin").await;
    assert_eq!(end, CommandEnd::Exited(125));
    assert!(said.contains("a function named builtin"), "{said}");
}

#[tokio::test]
async fn removing_such_a_function_changes_no_option_of_the_shell() {
    let fixture = Fixture::new();
    let mut shell = fixture.terminal().await;
    let options = "shopt -p; set +o; echo ${POSIXLY_CORRECT-unset}";
    let (before, _) = run(&mut shell, options).await;
    run(&mut shell, "builtin() { :; }; unset() { :; }").await;
    run(&mut shell, "command unset -f unset").await;
    let (after, _) = run(&mut shell, options).await;
    assert_eq!(before, after);
}
