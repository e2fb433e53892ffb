//! Boots from the virtual CD: downloads the BMC's image and searches it for the agent's parameters.
//!
//! The parameters are a line in a file that the ramdisk reads, or follow `linux …` (GRUB) or `append …` (ISOLINUX) in the configuration of
//! a boot loader. An ISO image without parameters is a live system.

use url::Url;

use crate::causes::chain;
use crate::event::Event;
use crate::fetch;
use crate::handover::Handover;
use crate::machine::Machine;
use crate::rack_context::RackContext;

/// The longest line of parameters, in bytes.
const LONGEST_LINE: usize = 8 << 10;
/// The text by which the agent's parameters are recognized.
const SIGN: &[u8] = b"ipa-api-url=http";
/// The beginning of the primary volume descriptor of an ISO image (ECMA-119 §8.4).
const ISO: &[u8] = b"\x01CD001\x01";

/// Boots from the CD in the drive.
pub(crate) async fn boot(machine: &Machine, world: &RackContext) -> Result<Handover, String> {
    let url = machine.chassis().media().ok_or("the CD drive is empty")?;
    boot_url(machine, world, &url).await
}

pub(crate) async fn boot_url(
    machine: &Machine,
    world: &RackContext,
    url: &Url,
) -> Result<Handover, String> {
    let mut search = Search::default();
    let fetched = fetch::download(machine, &world.http, url, |piece| search.see(piece)).await;
    let bytes = fetched.map_err(|error| chain(&error))?;
    let is_live = search.found.is_none() && search.is_iso;
    let command_line = if is_live { Some(String::new()) } else { search.found };
    let command_line = command_line.ok_or("the CD holds no kernel command line for an agent")?;
    machine.tell(Event::LoadedLoader("the virtual CD".to_owned(), bytes));
    Ok(Handover { command_line, kernel_bytes: 0, ramdisk_bytes: bytes })
}

/// Searches a stream of pieces for the line, and for the sign of an ISO image.
#[derive(Default)]
struct Search {
    window: Vec<u8>,
    found: Option<String>,
    is_iso: bool,
}

impl Search {
    fn see(&mut self, piece: &[u8]) {
        if self.found.is_some() {
            return;
        }
        self.window.extend(piece);
        self.found = command_line(&self.window);
        self.is_iso |= self.window.windows(ISO.len()).any(|octets| octets == ISO);
        let surplus = self.window.len().saturating_sub(LONGEST_LINE);
        self.window.drain(..surplus);
    }
}

/// Returns the command line in these octets, if it is complete: printable text between other octets.
fn command_line(octets: &[u8]) -> Option<String> {
    let is_text = |octet: &u8| matches!(octet, b' '..=b'~' | b'\t');
    let at = octets.windows(SIGN.len()).position(|window| window == SIGN)?;
    let begin = octets[..at].iter().rposition(|octet| !is_text(octet)).map_or(0, |at| at + 1);
    let end = at + octets[at..].iter().position(|octet| !is_text(octet))?;
    let line = String::from_utf8_lossy(&octets[begin..end]);
    let mut words: Vec<&str> = line.split_whitespace().collect();
    let named_before = match words.first() {
        // A GRUB line has the kernel's name before the parameters.
        Some(&("linux" | "linuxefi")) => 2,
        Some(&("append" | "APPEND")) => 1,
        Some(_) | None => 0,
    };
    words.drain(..named_before.min(words.len()));
    Some(words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_is_found_in_a_file_and_in_the_configuration_of_a_boot_loader() {
        let file = b"\x07etc/arguments\0\0ipa-api-url=http://x BOOTIF=y\n       ";
        assert_eq!(command_line(file).as_deref(), Some("ipa-api-url=http://x BOOTIF=y"));
        let grub = b"\0\0menuentry x {\n  linux /kernel quiet ipa-api-url=http://x ipa-agent-token=t    \n}\n";
        assert_eq!(
            command_line(grub).as_deref(),
            Some("quiet ipa-api-url=http://x ipa-agent-token=t")
        );
        let isolinux = b"label x\n append initrd=/r ipa-api-url=http://x\n";
        assert_eq!(command_line(isolinux).as_deref(), Some("initrd=/r ipa-api-url=http://x"));
        assert_eq!(command_line(b"  linux /kernel quiet\n"), None);
        assert_eq!(command_line(b"# see ipa-api-url= in the README\n"), None);
    }

    #[test]
    fn an_iso_image_is_recognized() {
        let mut search = Search::default();
        search.see(&[0; 32 << 10]);
        search.see(b"\x01CD0");
        assert!(!search.is_iso);
        search.see(b"01\x01 LIVE");
        assert!(search.is_iso && search.found.is_none());
    }

    #[test]
    fn the_line_is_found_wherever_pieces_end() {
        let text = [vec![b'\n'; 20_000], b" linux /k ipa-api-url=http://x  \n".to_vec()].concat();
        for size in [7, 1000, 20_010] {
            let mut search = Search::default();
            text.chunks(size).for_each(|piece| search.see(piece));
            assert_eq!(search.found.as_deref(), Some("ipa-api-url=http://x"));
        }
    }
}
