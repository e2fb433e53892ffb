//! Updates of a machine's firmware.

use async_trait::async_trait;
use bytes::Bytes;
use hardware::BmcTask;
use tokio::sync::mpsc;
use url::Url;

use crate::BmcError;

/// How an image of firmware gets to a BMC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageTransfer {
    /// The BMC fetches the image.
    Pull,
    /// The client sends the image.
    Push {
        /// The size limit of an image in bytes; `None` if the BMC does not tell any.
        largest: Option<u64>,
    },
}

/// An image of firmware.
#[derive(Debug)]
pub enum FirmwareImage {
    /// The address from which the BMC fetches the image.
    At(Url),
    Stream(ImageStream),
}

/// An image that is sent while it is downloaded.
#[derive(Debug)]
pub struct ImageStream {
    /// The name of the file.
    pub name: String,
    /// The number of bytes.
    pub length: u64,
    /// The bytes in order. After an error, the image is incomplete and the BMC gets no more of it.
    pub bytes: mpsc::Receiver<std::io::Result<Bytes>>,
}

/// Updates of the firmware of one machine's components: `bios`, `bmc`, and network adapters, which are called as
/// [`crate::Inspection::main_firmware`] calls them.
#[async_trait]
pub trait FirmwareUpdates: Send + Sync {
    /// Returns how images get to the BMC.
    async fn transfer(&self) -> Result<ImageTransfer, BmcError>;

    /// Reads the version of a component; `None` if the BMC does not tell it.
    async fn version(&self, component: &str) -> Result<Option<String>, BmcError>;

    /// Lists the tasks that the BMC knows; `None` if the BMC has no list of tasks.
    async fn tasks(&self) -> Result<Option<Vec<String>>, BmcError>;

    /// Returns a task of an update that is not in `known`, which [`FirmwareUpdates::tasks`] listed before.
    async fn update_since(&self, known: &[String]) -> Result<Option<String>, BmcError>;

    /// Requests the update of `component` and returns its task, or `None` if the BMC has none.
    ///
    /// Not idempotent: a second request can begin a second update.
    async fn request(
        &self,
        component: &str,
        image: FirmwareImage,
    ) -> Result<Option<String>, BmcError>;

    /// Reads the state of a task.
    async fn task(&self, task: &str) -> Result<BmcTask, BmcError>;
}
