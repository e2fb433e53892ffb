//! Scripts for iPXE that cannot be talked into anything else.
//!
//! iPXE's language has no quoting. A line is split at white space; a word `||`, `&&` or `;` ends a
//! command, a word that begins with `#` the line; then `${…}` is replaced in each word, again and again
//! until none is left, so that even a dollar sign brought in by a setting is expanded
//! (`system` in `src/core/exec.c`, `expand_settings` in `src/core/settings.c`). A backslash at its end
//! joins a line to the next (`src/image/script.c`). So nothing here is escaped that could be refused:
//! words come as types that can only be made of harmless characters, and text is for `echo` alone,
//! with everything else replaced.

mod argument;
mod script;

pub use argument::{Argument, InvalidArgument};
pub use script::{InvalidScript, Kernel, Script};
