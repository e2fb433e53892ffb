//! Updates of firmware (DSP0268 `UpdateService`), by an action or by a push of the image (DSP0266 §12.6), and their tasks (DSP0266 §12).

use async_trait::async_trait;
use bmc::{BmcError, FirmwareImage, FirmwareUpdates, ImageTransfer, Result};
use hardware::BmcTask;
use reqwest::StatusCode;
use serde_json::{Value, json};
use url::Url;

use crate::answer::Answer;
use crate::document::Document;
use crate::inspection::firmware::adapter_name;
use crate::quirks;
use crate::service::{Resource, Service};
use crate::upload::Upload;

const SIMPLE_UPDATE: &str = "#UpdateService.SimpleUpdate";
const PUSH_URI: &str = "MultipartHttpPushUri";

#[async_trait]
impl FirmwareUpdates for Service {
    async fn transfer(&self) -> Result<ImageTransfer> {
        self.transfer_of(&self.update_service().await?.body)
    }

    async fn version(&self, component: &str) -> Result<Option<String>> {
        let system = self.system().await?.body;
        let listed = match component {
            "bios" => return Ok(system.text("BiosVersion")),
            "bmc" => self.bmc_firmware(&system).await?.into_iter().collect(),
            _ => self.adapter_firmware(&system).await?,
        };
        let found = listed.into_iter().find(|found| found.component == component);
        Ok(found.map(|found| found.version))
    }

    async fn tasks(&self) -> Result<Option<Vec<String>>> {
        self.listed_tasks().await
    }

    async fn update_since(&self, known: &[String]) -> Result<Option<String>> {
        let service = self.update_service().await?.body;
        self.task_since(known, |task| self.is_update(&service, task)).await
    }

    async fn request(&self, component: &str, image: FirmwareImage) -> Result<Option<String>> {
        let service = self.update_service().await?;
        let target = self.target_of(component, &service.body).await?;
        let answer = match image {
            FirmwareImage::At(image) => self.simple_update(&service, &image, &target).await?,
            FirmwareImage::Stream(image) => {
                let nothing = || cannot("take a pushed image: it has no MultipartHttpPushUri");
                let address = service.body.at(PUSH_URI).as_str().ok_or_else(nothing)?;
                let address = self.origin.follow(address)?;
                let upload = Upload::new(&json!({"Targets": [target]}), image);
                self.upload(&address, upload).await?
            }
        };
        let answer = answer.accepted(&self.origin.host())?;
        Ok(self.task_of(&answer))
    }

    async fn task(&self, task: &str) -> Result<BmcTask> {
        self.task_state(task).await
    }
}

impl Service {
    async fn update_service(&self) -> Result<Resource> {
        let nothing = || cannot("update firmware: it has no UpdateService");
        let url = self.root().await?.update_service.clone().ok_or_else(nothing)?;
        let answer = self.fetch(&url).await?;
        if answer.status == StatusCode::NOT_FOUND {
            return Err(nothing());
        }
        self.resource(&url, answer)
    }

    fn transfer_of(&self, service: &Value) -> Result<ImageTransfer> {
        if service.truth("ServiceEnabled") == Some(false) {
            return Err(cannot("update firmware: its UpdateService is switched off"));
        }
        if self.action(service, SIMPLE_UPDATE).is_some() {
            return Ok(ImageTransfer::Pull);
        }
        if service.at(PUSH_URI).is_string() {
            let largest = service.count("MaxImageSizeBytes").filter(|largest| *largest > 0);
            return Ok(ImageTransfer::Push { largest });
        }
        Err(cannot(
            "update firmware: it has neither the action SimpleUpdate nor MultipartHttpPushUri",
        ))
    }

    /// Calls the action. A service that takes no targets is asked again without.
    async fn simple_update(&self, service: &Resource, image: &Url, target: &str) -> Result<Answer> {
        let nothing = || cannot("fetch an image: it has no action SimpleUpdate");
        let action = self.action(&service.body, SIMPLE_UPDATE).ok_or_else(nothing)?;
        let protocol = image.scheme().to_ascii_uppercase();
        let allowed = self.allowed(&service.body, SIMPLE_UPDATE, "TransferProtocol").await?;
        if allowed.is_some_and(|allowed| !allowed.contains(&protocol)) {
            return Err(cannot(&format!("fetch an image over {}", image.scheme())));
        }
        let mut body =
            json!({"ImageURI": image, "TransferProtocol": protocol, "Targets": [target]});
        let answer = self.post(&action, body.clone()).await?;
        if !quirks::some_services_take_no_targets(&answer.messages()) {
            return Ok(answer);
        }
        if let Some(body) = body.as_object_mut() {
            body.remove("Targets");
        }
        self.post(&action, body).await
    }

    /// Returns the resource that stands for `component` as the target of an update: its entry in the firmware inventory or, if no entry
    /// shows that it belongs to the device, the device.
    async fn target_of(&self, component: &str, service: &Value) -> Result<String> {
        let device = self.device(component).await?;
        let device = device.trim_end_matches('/');
        let belongs = |entry: &&Value| {
            let related = entry.items("RelatedItem").iter().filter_map(Document::id);
            let below = related.filter_map(|id| id.strip_prefix(device));
            let mut below = below.map(|rest| rest.is_empty() || rest.starts_with(['/', '#']));
            entry.truth("Updateable") != Some(false) && below.any(|is_below| is_below)
        };
        let inventory = match self.link(service, "FirmwareInventory") {
            Some(inventory) => self.members(&inventory).await?,
            None => Vec::new(),
        };
        let entry = inventory.iter().find(belongs).and_then(Document::id);
        Ok(entry.unwrap_or(device).to_owned())
    }

    /// Returns the path of the device with this firmware.
    async fn device(&self, component: &str) -> Result<String> {
        let system = self.system().await?;
        let unknown = || cannot(&format!("update {component}: it does not list the component"));
        match component {
            "bios" => Ok(system.url.path().to_owned()),
            "bmc" => {
                let managers = self.managers(&system.body).await?;
                managers.first().map(|url| url.path().to_owned()).ok_or_else(unknown)
            }
            _ => {
                let adapters = self.adapters(&system.body).await?;
                let is_meant = |it: &&Value| adapter_name(it).as_deref() == Some(component);
                let found = adapters.iter().find(is_meant).and_then(Document::id);
                found.map(str::to_owned).ok_or_else(unknown)
            }
        }
    }

    /// Whether `task` updates firmware, as far as it tells its request.
    fn is_update(&self, service: &Value, task: &Value) -> bool {
        let Some(target) = task.at("Payload").at("TargetUri").as_str() else { return true };
        let Ok(target) = self.origin.follow(target) else { return false };
        let push = service.at(PUSH_URI).as_str().and_then(|uri| self.origin.follow(uri).ok());
        let ways = [self.action(service, SIMPLE_UPDATE), push];
        let same =
            |way: &Url| way.path().trim_end_matches('/') == target.path().trim_end_matches('/');
        ways.iter().flatten().any(same)
    }
}

fn cannot(what: &str) -> BmcError {
    BmcError::Unsupported { what: what.to_owned() }
}
