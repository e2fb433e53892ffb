//! The choice of the add-ons that a cluster gets.

use crate::{
    AddOn, AddOnError, Cloud, Settings, cinder_csi, cloud_controller, flannel, gpu_plugin,
    metrics_server,
};

/// Returns the add-ons that `settings` ask for, in the order in which they are applied.
/// The pod network comes first, because the pods of most other add-ons need the network.
pub fn desired_add_ons(settings: &Settings) -> Result<Vec<AddOn>, AddOnError> {
    settings.check()?;
    let cloud = |add_on: &'static str| -> Result<&Cloud, AddOnError> {
        settings.cloud.as_ref().ok_or(AddOnError::NoCloud { add_on })
    };
    let mut add_ons = Vec::new();
    // `Settings::check` refuses every network driver but flannel.
    if settings.network.is_some() {
        add_ons.push(flannel::add_on(settings));
    }
    if let Some(balancing) = &settings.cloud_controller {
        let cloud = cloud("the cloud controller manager")?;
        add_ons.push(cloud_controller::add_on(settings, cloud, balancing));
    }
    if let Some(volumes) = &settings.volumes {
        add_ons.push(cinder_csi::add_on(settings, cloud("Cinder's CSI driver")?, volumes));
    }
    add_ons.extend(settings.gpus.iter().map(|vendor| gpu_plugin::add_on(settings, *vendor)));
    if let Some(kubelets) = settings.metrics {
        add_ons.push(metrics_server::add_on(settings, kubelets));
    }
    Ok(add_ons)
}
