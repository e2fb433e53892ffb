//! The kinds of media of virtual drives.

/// A kind of media that a virtual drive takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MediaKind {
    Cd,
    Dvd,
    Usb,
    Floppy,
}

impl MediaKind {
    /// Every kind.
    pub const ALL: [MediaKind; 4] =
        [MediaKind::Cd, MediaKind::Dvd, MediaKind::Usb, MediaKind::Floppy];

    /// The name of the kind in the Bare Metal API.
    pub const fn as_str(self) -> &'static str {
        match self {
            MediaKind::Cd => "cd",
            MediaKind::Dvd => "dvd",
            MediaKind::Usb => "usb",
            MediaKind::Floppy => "floppy",
        }
    }
}
