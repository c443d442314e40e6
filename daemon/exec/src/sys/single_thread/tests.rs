use super::*;

/// Makes the test program usable as a holder. This cannot be in a test, because the `main` of the
/// test harness starts threads first.
#[used]
#[unsafe(link_section = ".init_array")]
static BEFORE_MAIN: extern "C" fn() = {
    extern "C" fn before_main() {
        if crate::process::holder::run_if_asked().is_some() {
            SingleThread(()).exit_now();
        }
    }
    before_main
};
