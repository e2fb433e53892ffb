//! The iPXE scripts for the situations of a machine: boot, wait, refuse, local disk.

use std::fmt;
use std::time::Duration;

use url::Url;

use super::Argument;

/// The longest command line of Linux on x86 (`COMMAND_LINE_SIZE`); Linux cuts off the rest.
const LONGEST_COMMAND_LINE: usize = 2047;

/// How long a machine waits before it retries a failed step.
const PAUSE: Duration = Duration::from_secs(5);

/// A script for iPXE; `Display` prints its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script(String);

/// A kernel to start, with its ramdisk and arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    pub kernel: Url,
    pub initrd: Url,
    /// The script adds `initrd=`, which a kernel started by UEFI needs.
    pub arguments: Vec<Argument>,
}

/// The reasons why a script cannot be written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidScript {
    /// iPXE loads from `http` and `tftp` URLs; here they must have no password and no fragment.
    #[error("iPXE cannot load {url}")]
    Url {
        /// The URL, without user and password.
        url: String,
    },
    /// Linux would cut off the arguments.
    #[error(
        "the kernel's arguments have {length} characters; Linux reads at most {LONGEST_COMMAND_LINE}"
    )]
    TooLong {
        /// Length of the arguments in characters.
        length: usize,
    },
}

impl Script {
    /// Starts a kernel; retries for ever if the kernel cannot be loaded.
    pub fn boot(boot: &Kernel) -> Result<Self, InvalidScript> {
        let (kernel, initrd) = (url_word(&boot.kernel)?, url_word(&boot.initrd)?);
        let mut arguments = "initrd=initrd".to_owned();
        for argument in &boot.arguments {
            arguments += &format!(" {argument}");
        }
        if arguments.len() > LONGEST_COMMAND_LINE {
            return Err(InvalidScript::TooLong { length: arguments.len() });
        }
        let pause = PAUSE.as_secs();
        Ok(Script(format!(
            "#!ipxe\n\
             :again\n\
             imgfree\n\
             kernel --name kernel {kernel} {arguments} || goto failed\n\
             initrd --name initrd {initrd} || goto failed\n\
             boot || goto failed\n\
             :failed\n\
             echo The system could not be loaded, trying again in {pause} seconds\n\
             sleep {pause}\n\
             goto again\n"
        )))
    }

    /// Boots an ISO image over HTTP; retries for ever if the image cannot be loaded.
    pub fn iso(image: &Url) -> Result<Self, InvalidScript> {
        let (image, pause) = (url_word(image)?, PAUSE.as_secs());
        Ok(Script(format!(
            "#!ipxe\n\
             :again\n\
             sanboot --no-describe {image} || goto failed\n\
             :failed\n\
             echo The image could not be booted, trying again in {pause} seconds\n\
             sleep {pause}\n\
             goto again\n"
        )))
    }

    /// Prints why there is nothing to boot, then exits to the firmware's next boot option.
    pub fn refuse(reason: &str) -> Self {
        let reason = safe_for_echo(reason);
        Script(format!("#!ipxe\necho Not booting: {reason}\nsleep {}\nexit\n", PAUSE.as_secs()))
    }

    /// Prints the reason why the machine waits, and fetches `script` again at an interval of `every`.
    pub fn wait(reason: &str, script: &Url, every: Duration) -> Result<Self, InvalidScript> {
        let (reason, url, every) =
            (safe_for_echo(reason), url_word(script)?, every.as_secs().max(1));
        Ok(Script(format!(
            "#!ipxe\n\
             echo Waiting: {reason}\n\
             :again\n\
             sleep {every}\n\
             chain --replace --autofree {url} || goto again\n"
        )))
    }
}

impl fmt::Display for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Turns a URL into one word. The type `Url` has percent-encoded white space, control characters and all that is not ASCII.
fn url_word(url: &Url) -> Result<String, InvalidScript> {
    let has_password = !url.username().is_empty() || url.password().is_some();
    let loadable = matches!(url.scheme(), "http" | "tftp") && url.has_host();
    if has_password || !loadable || url.fragment().is_some() {
        let mut shown = url.clone();
        // Fails for a URL that cannot have a user or a password, which is harmless.
        let _ = shown.set_username("");
        let _ = shown.set_password(None);
        return Err(InvalidScript::Url { url: shown.into() });
    }
    // `$` is the only character left that iPXE would interpret. The encoded form means the same (RFC 3986 §2.1).
    Ok(url.as_str().replace('$', "%24"))
}

/// Makes text safe for `echo`: a character that could end the command, begin a comment or be expanded becomes a question mark.
fn safe_for_echo(text: &str) -> String {
    let harmless = |c: char| match c {
        c if c.is_ascii_alphanumeric() || " .,:!?()/_+=@'-".contains(c) => c,
        c if c.is_whitespace() => ' ',
        _ => '?',
    };
    let text: String = text.chars().take(400).map(harmless).collect();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests;
