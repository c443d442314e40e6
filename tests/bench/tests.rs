//! The bench works: every part, with so little effort that it is quick. No figure is judged.

use crate::measure::Effort;
use crate::{run, table};

#[test]
fn a_run_fills_its_rows_and_leaves_nothing_behind() {
    let parts = ["turn", "hooks", "shell", "stream", "long"].map(str::to_owned);
    let rows = run(&loopd_tests::binary::path(), Effort::Smoke, &parts);
    let told = table::json(&rows);
    for row in told.as_array().unwrap() {
        assert!(row["measured"].is_number(), "nothing was measured: {row}");
    }
    assert!(table::text(&rows).lines().count() > 10);
}
