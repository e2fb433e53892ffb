//! Writes scripts for iPXE into which no input can inject a command.
//!
//! iPXE's language has no quoting. iPXE splits a line at white space; a word `||`, `&&` or `;` ends a command, and a word that begins with
//! `#` ends the line. Then iPXE replaces `${…}` in each word, again and again until none is left, so that even a dollar sign from a setting
//! is expanded (`system` in `src/core/exec.c`, `expand_settings` in `src/core/settings.c`). A backslash at the end of a line joins it to
//! the next (`src/image/script.c`).
//!
//! So this module refuses harmful input instead of escaping it: a word has a type that accepts only harmless characters, and free text
//! occurs only behind `echo`, with every other character replaced.

mod argument;
mod script;

pub use argument::{Argument, InvalidArgument};
pub use script::{InvalidScript, Kernel, Script};
