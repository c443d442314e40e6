use std::fs::File;
use std::io::Read;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use super::is_there;

/// Whether the end of input is a closed terminal decides whether a question is answered, so it has to
/// be known when the end of input comes, not a moment later.
#[test]
fn a_terminal_that_is_closed_is_not_there_when_its_input_ends() {
    for round in 0..400 {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC);
        let master = master.unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let mut side = File::open(name.to_str().unwrap()).unwrap();
        assert!(is_there(&side));
        let reader = std::thread::spawn(move || {
            // The end comes as an error or as nothing.
            let read = side.read(&mut [0; 8]).unwrap_or(0);
            (read, is_there(&side))
        });
        drop(master);
        assert_eq!(reader.join().unwrap(), (0, false), "round {round}");
    }
}
