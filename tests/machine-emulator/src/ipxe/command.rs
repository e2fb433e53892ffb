//! The commands of iPXE: <https://ipxe.org/cmd>.

use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::time::Duration;

use bmc_emulator::{Firmware, MachineSpec};
use url::Url;

use super::words;
use crate::causes::chain;
use crate::cd;
use crate::discard;
use crate::event::Event;
use crate::fetch;
use crate::handover::Handover;
use crate::machine::Machine;
use crate::rack_context::RackContext;

/// The continuation after a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Flow {
    Next,
    /// Continue after this label.
    Goto(String),
    /// A kernel runs.
    Boot(Handover),
    LocalDisk,
    Exit,
    /// Run another script, and then continue.
    Call(Url),
    /// Run another script instead of this one.
    Replace(Url),
}

/// A file that iPXE has loaded.
#[derive(Clone, Debug)]
struct Image {
    name: String,
    arguments: Vec<String>,
    bytes: u64,
    /// Whether `kernel` selected the image, so that `boot` starts it.
    selected: bool,
}

/// The machine that a script runs on, with iPXE's settings and loaded images.
pub(super) struct Environment<'a> {
    pub(super) machine: &'a Machine,
    pub(super) world: &'a RackContext,
    settings: HashMap<String, String>,
    images: Vec<Image>,
}

/// Returns the settings that a script can use.
fn settings(spec: &MachineSpec, address: Ipv4Addr) -> Vec<(String, String)> {
    let platform = match spec.firmware {
        Firmware::Bios => "pcbios",
        Firmware::Uefi => "efi",
    };
    let mac = spec.nics.first().map(|nic| nic.mac.to_string()).unwrap_or_default();
    let set = |name: &str, value: String| (name.to_owned(), value);
    vec![
        set("platform", platform.to_owned()),
        set("buildarch", "x86_64".to_owned()),
        set("mac", mac),
        set("ip", address.to_string()),
        set("uuid", spec.uuid.to_string()),
        set("serial", spec.serial.clone()),
        set("manufacturer", spec.manufacturer.clone()),
        set("product", spec.model.clone()),
    ]
}

impl<'a> Environment<'a> {
    pub(super) fn new(machine: &'a Machine, world: &'a RackContext, address: Ipv4Addr) -> Self {
        let settings = HashMap::from_iter(settings(machine.spec(), address));
        Environment { machine, world, settings, images: Vec::new() }
    }

    /// Replaces the settings in a word.
    pub(super) fn expand(&self, word: &str) -> String {
        words::expand(word, &self.settings)
    }

    /// Runs one command; the error is the text that iPXE would print.
    pub(super) async fn command(&mut self, words: &[String]) -> Result<Flow, String> {
        let Some((name, arguments)) = words.split_first() else { return Ok(Flow::Next) };
        let first = arguments.first().map(String::as_str);
        match (name.as_str(), first) {
            ("set", Some(setting)) => {
                let setting = setting.split(':').next().unwrap_or(setting).to_owned();
                self.settings.insert(setting, arguments[1..].join(" "));
                Ok(Flow::Next)
            }
            ("clear", Some(setting)) => {
                self.settings.remove(setting);
                Ok(Flow::Next)
            }
            ("isset", _) => match first.is_some_and(|value| !value.is_empty()) {
                true => Ok(Flow::Next),
                false => Err("it is not set".to_owned()),
            },
            ("iseq", Some(one)) => match arguments.get(1).map(String::as_str) == Some(one) {
                true => Ok(Flow::Next),
                false => Err("they differ".to_owned()),
            },
            ("echo", _) => {
                self.machine.tell(Event::Echo(arguments.join(" ")));
                Ok(Flow::Next)
            }
            ("sleep", Some(seconds)) => {
                let seconds = seconds.parse().map_err(|_| format!("{seconds} is no number"))?;
                tokio::time::sleep(self.world.pace.of(Duration::from_secs(seconds))).await;
                Ok(Flow::Next)
            }
            ("goto", Some(label)) => Ok(Flow::Goto(label.to_owned())),
            ("exit", _) => Ok(Flow::Exit),
            ("dhcp" | "ifopen" | "ifconf" | "ifstat", _) => Ok(Flow::Next),
            ("imgfree", _) => {
                self.images.retain(|image| first.is_some_and(|name| image.name != name));
                Ok(Flow::Next)
            }
            ("kernel" | "initrd" | "imgfetch" | "module", _) => {
                self.load(name == "kernel", arguments).await
            }
            ("boot", _) => self.boot(),
            ("chain", _) => self.chain(arguments).await,
            ("sanboot", _) => self.sanboot(arguments).await,
            _ => Err(format!("{name}: no such command, or too few arguments")),
        }
    }

    /// Boots the first local disk, or the ISO image at a URL.
    async fn sanboot(&self, arguments: &[String]) -> Result<Flow, String> {
        if arguments.windows(2).any(|pair| pair == ["--drive", "0x80"]) {
            return Ok(Flow::LocalDisk);
        }
        let url = arguments.last().filter(|word| word.starts_with("http://"));
        let url = url.ok_or("only the first local disk and http URLs can be started so")?;
        let url = Url::parse(url).map_err(|_| format!("{url} is not a URL"))?;
        cd::boot_url(self.machine, self.world, &url).await.map(Flow::Boot)
    }

    async fn load(&mut self, selected: bool, arguments: &[String]) -> Result<Flow, String> {
        let (options, rest) = options(arguments);
        let (url, arguments) = rest.split_first().ok_or("a URL is missing")?;
        let url = Url::parse(url).map_err(|_| format!("{url} is not a URL"))?;
        let mut breaks = false;
        self.machine.misbehave(|faults| {
            breaks = faults.break_downloads > 0;
            faults.break_downloads = faults.break_downloads.saturating_sub(1);
        });
        if breaks {
            return Err("the connection was reset".to_owned());
        }
        let bytes = self.fetch(&url).await?;
        if selected {
            self.images.iter_mut().for_each(|image| image.selected = false);
        }
        let last = url.path_segments().and_then(|mut segments| segments.next_back());
        let named = options.iter().find(|(option, _)| matches!(*option, "--name" | "-n"));
        let name = named.map(|(_, name)| *name).or(last).unwrap_or_default().to_owned();
        self.images.push(Image { name, arguments: arguments.to_vec(), bytes, selected });
        Ok(Flow::Next)
    }

    /// Downloads a kernel or a ramdisk, and returns its size.
    async fn fetch(&self, url: &Url) -> Result<u64, String> {
        let is_slow = self.machine.faults().download_rate.is_some();
        if self.world.spares_processors()
            && !is_slow
            && let Ok(bytes) = discard::download(url).await
        {
            return Ok(bytes);
        }
        let fetched = fetch::download(self.machine, &self.world.http, url, |_| ()).await;
        fetched.map_err(|error| chain(&error))
    }

    fn boot(&self) -> Result<Flow, String> {
        let kernel =
            self.images.iter().find(|image| image.selected).ok_or("no kernel is loaded")?;
        let others = self.images.iter().filter(|image| !image.selected);
        Ok(Flow::Boot(Handover {
            command_line: kernel.arguments.join(" "),
            kernel_bytes: kernel.bytes,
            ramdisk_bytes: others.map(|image| image.bytes).sum(),
        }))
    }

    async fn chain(&self, arguments: &[String]) -> Result<Flow, String> {
        let (options, rest) = options(arguments);
        let url = rest.first().ok_or("a URL is missing")?;
        let url = Url::parse(url).map_err(|_| format!("{url} is not a URL"))?;
        if options.iter().any(|(option, _)| matches!(*option, "--replace" | "-r")) {
            // A script that cannot be loaded does not replace the current one.
            let text = fetch::text(&self.world.http, &url).await.map_err(|error| chain(&error))?;
            return match text.starts_with("#!ipxe") {
                true => Ok(Flow::Replace(url)),
                false => Err("it is not a script".to_owned()),
            };
        }
        Ok(Flow::Call(url))
    }
}

/// Splits off the options at the beginning, each with the word after it.
fn options(arguments: &[String]) -> (Vec<(&str, &str)>, &[String]) {
    let mut found = Vec::new();
    let mut rest = arguments;
    while let [option, after @ ..] = rest
        && option.starts_with('-')
    {
        let takes_word = matches!(&**option, "--name" | "-n" | "--timeout" | "-t");
        let value = if takes_word { after.first().map(String::as_str) } else { None };
        found.push((option.as_str(), value.unwrap_or_default()));
        rest = if takes_word { after.get(1..).unwrap_or_default() } else { after };
    }
    (found, rest)
}
