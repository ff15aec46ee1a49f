//! Shows that something is going on, where it takes longer than anybody likes to wait in silence.

use std::io::{self, Write};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use indicatif::ProgressBar;

use super::context::Context;

/// How long a command may be silent.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often a spinner turns.
const TICK: Duration = Duration::from_millis(100);

/// Does some work, and says on stderr what it is if it takes longer than two seconds: with a spinner where a person
/// watches, with one line elsewhere.
pub(super) fn with_progress<T>(context: &Context, what: &str, work: impl FnOnce() -> T) -> T {
    let interactive = context.interactive;
    thread::scope(|scope| {
        let (running, ended) = mpsc::channel();
        scope.spawn(move || watch(&ended, PATIENCE, what, interactive, &mut io::stderr()));
        let result = work();
        drop(running);
        result
    })
}

/// Waits for the end of the work, which is when the other side of the channel is dropped.
fn watch(
    ended: &Receiver<()>,
    patience: Duration,
    what: &str,
    interactive: bool,
    err: &mut dyn Write,
) {
    if ended.recv_timeout(patience) != Err(RecvTimeoutError::Timeout) {
        return;
    }
    if interactive {
        let spinner = ProgressBar::new_spinner().with_message(what.to_owned());
        spinner.enable_steady_tick(TICK);
        let _ = ended.recv();
        spinner.finish_and_clear();
    } else {
        // Without a stderr there is nobody to be told.
        let _ = writeln!(err, "still {what}");
        let _ = ended.recv();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Passes on what is written.
    struct Tell(mpsc::Sender<String>);

    impl Write for Tell {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let _ = self.0.send(String::from_utf8_lossy(bytes).into_owned());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn work_that_takes_long_is_told_once() {
        let (running, ended) = mpsc::channel();
        let (tell, told) = mpsc::channel();
        let watcher = thread::spawn(move || {
            watch(&ended, Duration::ZERO, "checking", false, &mut Tell(tell));
        });
        assert_eq!(told.recv().as_deref(), Ok("still "));
        drop(running);
        watcher.join().expect("no panic");
        assert_eq!(told.iter().collect::<String>(), "checking\n");
    }

    #[test]
    fn work_that_is_done_at_once_is_not_told() {
        let (running, ended) = mpsc::channel();
        drop(running);
        let mut said = Vec::new();
        watch(
            &ended,
            Duration::from_secs(3600),
            "checking",
            false,
            &mut said,
        );
        assert!(said.is_empty());
    }
}
