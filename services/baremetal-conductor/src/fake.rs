//! `fake-hardware`: a BMC without a machine that carries out every request immediately, for clients and benchmarks.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use bmc::{Bmc, BmcError, Boot, Power, SerialConsole, SerialSession, VirtualDrive, VirtualMedia};
use bytes::Bytes;
use hardware::{BootDevice, BootOverride, MediaKind, Persistence, PowerChange, PowerState};
use tokio::sync::mpsc;
use url::Url;

/// The power, boot device and virtual drive of a machine that does not exist.
struct Fake {
    power: Mutex<PowerState>,
    boot: Mutex<BootOverride>,
    image: Mutex<Option<Url>>,
}

/// The boot device of a new machine, as in Ironic.
const FIRST_BOOT: BootOverride =
    BootOverride { device: BootDevice::Pxe, persistence: Persistence::Once, mode: None };

/// Makes a BMC without a machine. The power state starts as the node's last known state.
pub(crate) fn bmc(power: Option<PowerState>) -> Bmc {
    let fake = Arc::new(Fake {
        power: Mutex::new(power.unwrap_or(PowerState::Off)),
        boot: Mutex::new(FIRST_BOOT),
        image: Mutex::new(None),
    });
    Bmc {
        power: fake.clone(),
        interrupt: None,
        boot: fake.clone(),
        boot_settings: None,
        clock: None,
        bios: None,
        firmware: None,
        raid: None,
        media: Some(fake),
        inspection: None,
        sensors: None,
        indicators: None,
        events: None,
        serial: Some(Arc::new(Port)),
        account: None,
    }
}

#[async_trait]
impl Power for Fake {
    async fn state(&self) -> Result<PowerState, BmcError> {
        Ok(*self.power.lock().unwrap_or_else(PoisonError::into_inner))
    }

    async fn request(&self, change: PowerChange) -> Result<(), BmcError> {
        *self.power.lock().unwrap_or_else(PoisonError::into_inner) = change.leads_to();
        Ok(())
    }
}

#[async_trait]
impl Boot for Fake {
    async fn get(&self) -> Result<Option<BootOverride>, BmcError> {
        Ok(Some(*self.boot.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    async fn set(&self, wanted: BootOverride) -> Result<(), BmcError> {
        *self.boot.lock().unwrap_or_else(PoisonError::into_inner) = wanted;
        Ok(())
    }

    async fn supported(&self) -> Result<Vec<BootDevice>, BmcError> {
        Ok(BootDevice::ALL.to_vec())
    }
}

#[async_trait]
impl VirtualMedia for Fake {
    async fn insert(&self, url: &Url) -> Result<(), BmcError> {
        *self.image.lock().unwrap_or_else(PoisonError::into_inner) = Some(url.clone());
        Ok(())
    }

    async fn eject(&self) -> Result<(), BmcError> {
        *self.image.lock().unwrap_or_else(PoisonError::into_inner) = None;
        Ok(())
    }

    async fn eject_all(&self, _: Option<MediaKind>) -> Result<(), BmcError> {
        self.eject().await
    }

    async fn content(&self) -> Result<VirtualDrive, BmcError> {
        let image = self.image.lock().unwrap_or_else(PoisonError::into_inner);
        let image = image.as_ref().map(Url::to_string);
        Ok(VirtualDrive { media_types: vec!["CD".to_owned()], inserted: image.is_some(), image })
    }
}

/// A serial port that echoes its input.
struct Port;

/// The first output of the port.
const GREETING: Bytes = Bytes::from_static(b"This is not a machine: it echoes what you type.\r\n");
/// The number of pieces that wait in each direction.
const PIECES: usize = 64;

#[async_trait]
impl SerialConsole for Port {
    async fn open(&self) -> Result<SerialSession, BmcError> {
        let (says, output) = mpsc::channel(PIECES);
        let (input, mut hears) = mpsc::channel(PIECES);
        tokio::spawn(async move {
            let mut next = Some(GREETING);
            while let Some(said) = next {
                if says.send(Ok(said)).await.is_err() {
                    break;
                }
                next = tokio::select! {
                    heard = hears.recv() => heard,
                    () = says.closed() => None,
                };
            }
        });
        Ok(SerialSession { output, input })
    }
}
