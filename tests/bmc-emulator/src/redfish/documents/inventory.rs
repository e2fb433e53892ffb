//! The hardware of the machine: processors, memory, drives, network cards.

use serde_json::{Value, json};

use crate::redfish::RedfishFace;
use crate::redfish::resource::Resource;

/// The model of every processor.
pub(super) const PROCESSOR: &str = "Emulated Processor 2.40GHz";

/// The most logical processors in one socket.
const LARGEST_SOCKET: u32 = 64;

/// The size of the largest memory module.
const LARGEST_DIMM_MIB: u64 = 64 * 1024;

const MOST_DIMMS: u64 = 32;

impl RedfishFace {
    /// The number of processors.
    pub(crate) fn processor_count(&self) -> usize {
        match self.machine.spec().cpus {
            cpus if cpus > LARGEST_SOCKET && cpus.is_multiple_of(2) => 2,
            _ => 1,
        }
    }

    /// The number of memory modules: as few equal ones as possible.
    pub(crate) fn dimm_count(&self) -> usize {
        let memory = self.machine.spec().memory_mib;
        let fits =
            |count: &u64| memory.is_multiple_of(*count) && memory / count <= LARGEST_DIMM_MIB;
        (1..=MOST_DIMMS).find(fits).unwrap_or(1) as usize
    }

    pub(super) fn processor(&self, index: usize) -> Value {
        let threads = self.machine.spec().cpus / self.processor_count() as u32;
        json!({
            "@odata.type": "#Processor.v1_13_0.Processor",
            "Id": last_segment(&Resource::Processor(index).path(self.profile)),
            "Name": "Processor",
            "Socket": format!("CPU {}", index + 1),
            "ProcessorType": "CPU",
            "ProcessorArchitecture": "x86",
            "InstructionSet": "x86-64",
            "Manufacturer": "Emulated",
            "Model": PROCESSOR,
            "MaxSpeedMHz": 3600,
            "TotalCores": threads,
            "TotalThreads": threads,
            "Status": super::healthy_status(),
        })
    }

    pub(super) fn dimm(&self, index: usize) -> Value {
        let spec = self.machine.spec();
        json!({
            "@odata.type": "#Memory.v1_13_0.Memory",
            "Id": last_segment(&Resource::Dimm(index).path(self.profile)),
            "Name": format!("DIMM {}", index + 1),
            "MemoryType": "DRAM",
            "MemoryDeviceType": "DDR4",
            "CapacityMiB": spec.memory_mib / self.dimm_count() as u64,
            "OperatingSpeedMhz": 3200,
            "Manufacturer": "Emulated",
            "PartNumber": "EM-DDR4-3200",
            "SerialNumber": format!("{}-M{}", spec.serial, index + 1),
            "ErrorCorrection": "MultiBitECC",
            "Status": super::healthy_status(),
        })
    }

    pub(super) fn storage(&self) -> Value {
        let disks = 0..self.machine.spec().disks.len();
        let drives: Vec<Value> = disks.map(|index| self.link(Resource::Drive(index))).collect();
        json!({
            "@odata.type": "#Storage.v1_10_0.Storage",
            "Id": self.profile.ids.storage,
            "Name": "Storage",
            "Status": super::healthy_status(),
            "Drives@odata.count": drives.len(),
            "Drives": drives,
            "Volumes": self.link(Resource::Volumes),
        })
    }

    pub(super) fn drive(&self, index: usize) -> Option<Value> {
        let disk = self.machine.spec().disks.get(index)?;
        let is_nvme = disk.name.starts_with("nvme");
        let mut drive = json!({
            "@odata.type": "#Drive.v1_14_0.Drive",
            "Id": last_segment(&Resource::Drive(index).path(self.profile)),
            "Name": format!("Drive {}", index + 1),
            "Manufacturer": "Emulated",
            "Model": disk.model,
            "SerialNumber": disk.serial,
            "CapacityBytes": disk.size_bytes,
            "MediaType": if disk.rotational { "HDD" } else { "SSD" },
            "Protocol": if is_nvme { "NVMe" } else { "SATA" },
            "BlockSizeBytes": 512,
            "FailurePredicted": false,
            "Status": super::healthy_status(),
        });
        if disk.rotational {
            drive["RotationSpeedRPM"] = json!(7200);
        }
        Some(drive)
    }

    pub(super) fn nic(&self, index: usize) -> Option<Value> {
        let nic = self.machine.spec().nics.get(index)?;
        let mac = nic.mac.to_string().to_uppercase();
        Some(json!({
            "@odata.type": "#EthernetInterface.v1_8_0.EthernetInterface",
            "Id": last_segment(&Resource::Nic(index).path(self.profile)),
            "Name": format!("Ethernet Interface {}", index + 1),
            "InterfaceEnabled": true,
            "PermanentMACAddress": mac,
            "MACAddress": mac,
            "SpeedMbps": nic.speed_mbps,
            "FullDuplex": true,
            "LinkStatus": "LinkUp",
            "Status": super::healthy_status(),
        }))
    }
}

/// The last segment of a path, which is an id.
fn last_segment(path: &str) -> &str {
    path.trim_end_matches('/').rsplit('/').next().unwrap_or_default()
}
