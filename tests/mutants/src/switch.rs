//! The switch that every crate with mutants gets as its module `mutant`.

/// Answers whether mutant `number` is the active one. `MUTANT` names the active mutant; with `MUTANT_TRACE` no mutant is active, and the
/// numbers that are asked for are written into that file.
#[doc(hidden)]
pub(crate) fn is(number: usize) -> bool {
    use std::io::Write as _;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::sync::{Mutex, OnceLock};

    enum Mode {
        Active(Option<usize>),
        Trace(Mutex<std::fs::File>),
    }
    static MODE: OnceLock<Mode> = OnceLock::new();
    static SEEN: [AtomicU64; 1024] = [const { AtomicU64::new(0) }; 1024];

    let mode = MODE.get_or_init(|| match std::env::var_os("MUTANT_TRACE") {
        Some(path) => Mode::Trace(Mutex::new(
            std::fs::OpenOptions::new()
                .create(true)
                .append(true)
                .open(path)
                .expect("the file of MUTANT_TRACE"),
        )),
        None => Mode::Active(std::env::var("MUTANT").ok().and_then(|text| text.parse().ok())),
    });
    match mode {
        Mode::Active(active) => *active == Some(number),
        Mode::Trace(file) => {
            let bit = 1 << (number % 64);
            if SEEN[number / 64].fetch_or(bit, Ordering::Relaxed) & bit == 0 {
                let line = format!("{number}\n");
                let mut file = file.lock().expect("no writer panics");
                file.write_all(line.as_bytes()).expect("the file of MUTANT_TRACE");
            }
            false
        }
    }
}
