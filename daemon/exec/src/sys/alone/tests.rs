use super::*;

/// Lets the test program be a holder, too: its own `main` starts threads before any test runs.
#[used]
#[unsafe(link_section = ".init_array")]
static BEFORE_MAIN: extern "C" fn() = {
    extern "C" fn before_main() {
        if crate::process::holder::run_if_asked().is_some() {
            Alone(()).leave();
        }
    }
    before_main
};
