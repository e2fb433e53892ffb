//! The scripts a machine is given.

use std::fmt;
use std::time::Duration;

use url::Url;

use super::Argument;

/// Linux on x86 cuts its command line here (`COMMAND_LINE_SIZE`).
const LONGEST_COMMAND_LINE: usize = 2047;

/// How long a machine waits before it tries again what failed.
const PAUSE: Duration = Duration::from_secs(5);

/// A script for iPXE; display it to get its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script(String);

/// A kernel to start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// The kernel.
    pub kernel: Url,
    /// Its initial ramdisk.
    pub initrd: Url,
    /// Its arguments; `initrd=` is added, which a kernel started by UEFI needs.
    pub arguments: Vec<Argument>,
}

/// Why a script cannot be written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidScript {
    /// iPXE loads `http` and `tftp`, here without passwords and fragments.
    #[error("iPXE cannot load {url}")]
    Url {
        /// The URL, without user and password.
        url: String,
    },
    /// Linux would cut it off.
    #[error("the kernel's arguments take {length} characters, it reads {LONGEST_COMMAND_LINE}")]
    TooLong {
        /// How long they are.
        length: usize,
    },
}

impl Script {
    /// Starts a kernel; tries again for ever if it cannot be loaded.
    pub fn boot(boot: &Kernel) -> Result<Self, InvalidScript> {
        let (kernel, initrd) = (word(&boot.kernel)?, word(&boot.initrd)?);
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

    /// Boots the first disk.
    ///
    /// UEFI goes on with its next boot option when iPXE leaves; a BIOS may not, so there the disk is
    /// started first.
    pub fn local_disk() -> Self {
        Script(
            "#!ipxe\n\
             iseq ${platform} pcbios && sanboot --no-describe --drive 0x80 ||\n\
             exit\n"
                .to_owned(),
        )
    }

    /// Shows why there is nothing to boot, then leaves the machine to its firmware's next boot option.
    pub fn refuse(reason: &str) -> Self {
        let reason = shown(reason);
        Script(format!("#!ipxe\necho Not booting: {reason}\nsleep {}\nexit\n", PAUSE.as_secs()))
    }

    /// Shows what the machine is waiting for, and asks for `script` every so often.
    pub fn wait(reason: &str, script: &Url, every: Duration) -> Result<Self, InvalidScript> {
        let (reason, url, every) = (shown(reason), word(script)?, every.as_secs().max(1));
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

/// A URL as one word. Its type has encoded white space, control characters and what is not ASCII.
fn word(url: &Url) -> Result<String, InvalidScript> {
    let has_password = !url.username().is_empty() || url.password().is_some();
    let loadable = matches!(url.scheme(), "http" | "tftp") && url.has_host();
    if has_password || !loadable || url.fragment().is_some() {
        let mut shown = url.clone();
        // Fails for URLs that cannot have them.
        let _ = shown.set_username("");
        let _ = shown.set_password(None);
        return Err(InvalidScript::Url { url: shown.into() });
    }
    // The one thing left that iPXE would read: it stands for itself when encoded (RFC 3986 §2.1).
    Ok(url.as_str().replace('$', "%24"))
}

/// Text as words for `echo`: what could end the command, comment it out or be expanded becomes a question mark.
fn shown(text: &str) -> String {
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
