//! The environment of this process: copied once, and without secrets in the original, which other
//! processes of this user could read.

use std::collections::BTreeMap;

use loopd_sdk::proto::secret_variables::private_variables;

/// Copies the environment and takes the secrets out of the original. The kernel refuses to show the
/// memory and the environment of this process to others from then on.
///
/// Must be called before a second thread runs.
pub(crate) fn take() -> BTreeMap<String, String> {
    let env = loopd_sdk::environment();
    #[cfg(target_os = "linux")]
    {
        let hidden = rustix::process::DumpableBehavior::NotDumpable;
        // Without it the secrets are overwritten all the same.
        rustix::process::set_dumpable_behavior(hidden).ok();
    }
    #[cfg(unix)]
    forget(&private_variables(&env, None));
    env
}

/// Removes variables and overwrites their values, which the system shows in `/proc/<pid>/environ`.
#[cfg(unix)]
#[expect(
    unsafe_code,
    reason = "the environment that the process was started with belongs to no value"
)]
fn forget(names: &[&str]) {
    unsafe extern "C" {
        static environ: *const *mut std::ffi::c_char;
    }
    // SAFETY: `environ` is an array of C strings that ends with a null pointer. This is the only
    // thread, so that nobody else reads or changes it. The strings are writable: they lie on the
    // stack of the process or were allocated. Only bytes between `=` and the final zero change.
    unsafe {
        let mut entry = environ;
        while !entry.is_null() && !(*entry).is_null() {
            let text = std::ffi::CStr::from_ptr(*entry).to_bytes();
            let length = text.len();
            let equals = text.iter().position(|byte| *byte == b'=');
            let is_named = |at: usize| {
                let name = text.get(..at);
                names.iter().any(|it| name == Some(it.as_bytes()))
            };
            if let Some(at) = equals.filter(|at| is_named(*at)) {
                (*entry).add(at + 1).write_bytes(0, length - at - 1);
            }
            entry = entry.add(1);
        }
        for name in names {
            std::env::remove_var(name);
        }
    }
}
