//! Which commands may leave something in the background.

use super::leaves_job;

#[test]
fn a_command_that_ends_in_an_ampersand_may_leave_a_job() {
    for (command, leaves) in [
        ("sleep 9 &", true),
        ("make & tail -f log", true),
        ("(sleep 9 &) ; echo x", true),
        ("a && b", false),
        ("make >& log", false),
        ("make &> log", false),
        ("make 2>&1 | tee log", false),
        ("make |& tee log", false),
        ("echo 'a & b' \"c & d\" e\\&", false),
    ] {
        assert_eq!(leaves_job(command), leaves, "{command}");
    }
}
