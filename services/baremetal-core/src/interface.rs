//! The interfaces of a node, and the implementations of each.

use serde::{Deserialize, Serialize};

use crate::Driver;

/// Declares every interface: its name in the Bare Metal API, its implementations with their names, and which of them each driver supports,
/// the default first.
macro_rules! interfaces {
    ($(
        $(#[$doc:meta])*
        $interface:ident $field:ident $kind:ident {
            $($(#[$note:meta])* $variant:ident = $name:literal,)*
        } {
            $($($driver:ident)|+: $default:ident $($more:ident)*;)*
        }
    )*) => {
        /// An interface of a hardware type. Each interface of a node can be set separately.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum Interface {
            $($interface,)*
        }

        impl Interface {
            /// All interfaces, in the order in which the API shows them.
            pub const ALL: [Interface; 13] = [$(Interface::$interface,)*];

            /// Returns the name of the interface in the Bare Metal API, as in `boot_interface`.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Interface::$interface => stringify!($field),)*
                }
            }
        }

        /// The implementations that the operator chose. An interface without a choice uses the default of the driver.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        pub struct Interfaces {
            $(
                #[serde(default, skip_serializing_if = "Option::is_none")]
                pub $field: Option<$kind>,
            )*
        }

        impl Interfaces {
            /// Chooses the implementation called `name`; returns whether the interface has such an implementation.
            #[must_use]
            pub fn choose(&mut self, interface: Interface, name: &str) -> bool {
                match interface {
                    $(Interface::$interface => match $kind::named(name) {
                        Some(chosen) => {
                            self.$field = Some(chosen);
                            true
                        }
                        None => false,
                    },)*
                }
            }

            /// Leaves the choice to the driver.
            pub fn reset(&mut self, interface: Interface) {
                match interface {
                    $(Interface::$interface => self.$field = None,)*
                }
            }

            /// Returns the name of the chosen implementation.
            pub fn chosen(&self, interface: Interface) -> Option<&'static str> {
                match interface {
                    $(Interface::$interface => self.$field.map($kind::as_str),)*
                }
            }
        }

        impl Driver {
            /// Returns the implementations of `interface` that this driver supports, the default first.
            pub const fn supported(self, interface: Interface) -> &'static [&'static str] {
                match interface {
                    $(Interface::$interface => match self {
                        $($(Driver::$driver)|+ => {
                            const { &[$kind::$default.as_str(), $($kind::$more.as_str(),)*] }
                        })*
                    },)*
                }
            }
        }

        $(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
            pub enum $kind {
                $($(#[$note])* #[serde(rename = $name)] $variant,)*
            }

            impl $kind {
                /// Returns the name of the implementation in the Bare Metal API.
                pub const fn as_str(self) -> &'static str {
                    match self {
                        $($kind::$variant => $name,)*
                    }
                }

                /// Returns the implementation for nodes of `driver` that choose none.
                pub const fn default_of(driver: Driver) -> Self {
                    match driver {
                        $($(Driver::$driver)|+ => $kind::$default,)*
                    }
                }

                fn named(name: &str) -> Option<Self> {
                    [$($kind::$variant,)*].into_iter().find(|it| it.as_str() == name)
                }
            }
        )*
    };
}

interfaces! {
    /// How the settings of the firmware are changed.
    Bios bios BiosInterface {
        NoBios = "no-bios",
        Fake = "fake",
        /// By the BMC.
        Redfish = "redfish",
        Idrac = "idrac-redfish",
    } {
        FakeHardware: Fake NoBios;
        Idrac: Idrac Redfish NoBios;
        Ipmi | ManualManagement: NoBios;
        Redfish: Redfish NoBios;
    }

    /// How the ramdisk gets onto the machine.
    Boot boot BootInterface {
        /// By DHCP, TFTP and iPXE.
        Ipxe = "ipxe",
        /// By DHCP and UEFI HTTP boot of iPXE, without TFTP.
        HttpIpxe = "http-ipxe",
        /// By a virtual CD that the BMC inserts, without DHCP.
        VirtualMedia = "redfish-virtual-media",
        IdracVirtualMedia = "idrac-redfish-virtual-media",
        /// The service boots no ramdisk. If the node uses an agent, somebody else starts it.
        Fake = "fake",
    } {
        FakeHardware: Fake Ipxe HttpIpxe;
        Ipmi | ManualManagement: Ipxe HttpIpxe;
        Idrac: Ipxe HttpIpxe IdracVirtualMedia;
        Redfish: Ipxe HttpIpxe VirtualMedia;
    }

    /// How the console is reached.
    Console console ConsoleInterface {
        NoConsole = "no-console",
        Fake = "fake",
        /// The serial port, by a WebSocket of the BMC that Redfish names. Ironic has no serial console over Redfish.
        RedfishSerial = "redfish-serial",
        /// A graphical console, by the VNC server of the BMC. Ironic's `redfish-graphical` controls the web page of the BMC instead, so this
        /// name is another one.
        BmcVnc = "bmc-vnc",
        /// The name is Ironic's, because Ironic's clients ask for it. No socat runs here: the console is a WebSocket of this API.
        IpmitoolSocat = "ipmitool-socat",
    } {
        FakeHardware: Fake NoConsole;
        Ipmi: NoConsole IpmitoolSocat BmcVnc;
        ManualManagement: NoConsole;
        Idrac | Redfish: NoConsole RedfishSerial BmcVnc;
    }

    /// How the machine is installed and cleaned.
    Deploy deploy DeployInterface {
        Fake = "fake",
        /// The agent writes an image to the disk.
        Direct = "direct",
        /// Steps of the agent that the request names install the machine.
        CustomAgent = "custom-agent",
        /// The agent runs a container, whose program installs it to the disk.
        Bootc = "bootc",
        /// The machine boots an ISO image or a kernel of its user. Nothing is written to its disk.
        Ramdisk = "ramdisk",
        /// One of the others, by the image of the instance.
        Autodetect = "autodetect",
    } {
        FakeHardware: Fake Direct;
        Idrac | Ipmi | ManualManagement | Redfish: Direct CustomAgent Ramdisk Bootc Autodetect;
    }

    /// How firmware is updated.
    Firmware firmware FirmwareInterface {
        NoFirmware = "no-firmware",
        Fake = "fake",
        /// By the BMC, which tells the versions of BIOS, BMC and network adapters.
        Redfish = "redfish",
    } {
        FakeHardware: Fake NoFirmware;
        Ipmi | ManualManagement: NoFirmware;
        Idrac | Redfish: Redfish NoFirmware;
    }

    /// How the hardware is inspected.
    Inspect inspect InspectInterface {
        Fake = "fake",
        /// By asking the BMC if it knows an inventory, then booting the agent.
        Agent = "agent",
        /// By asking the BMC only.
        Redfish = "redfish",
        Idrac = "idrac-redfish",
        /// The hardware is not inspected.
        NoInspect = "no-inspect",
    } {
        FakeHardware: Fake Agent NoInspect;
        Idrac: Agent Idrac NoInspect;
        Ipmi | ManualManagement: Agent NoInspect;
        Redfish: Agent Redfish NoInspect;
    }

    /// How the next boot device is set.
    Management management ManagementInterface {
        Fake = "fake",
        Ipmitool = "ipmitool",
        Redfish = "redfish",
        Idrac = "idrac-redfish",
        /// The boot device is never set: the machine's firmware always tries the network first, or a person chooses.
        Noop = "noop",
    } {
        FakeHardware: Fake Noop;
        Idrac: Idrac;
        Ipmi: Ipmitool Noop;
        ManualManagement: Noop;
        Redfish: Redfish Noop;
    }

    /// How the machine is connected to networks.
    Network network NetworkInterface {
        /// The service knows nothing of the machine's networks, and forgets every VIF.
        Noop = "noop",
        /// VIFs are attached to ports. All networks of the machine are always connected.
        Flat = "flat",
        /// The machine is connected to a network of the service or to those of its VIFs, by ports in Neutron that name its switch ports.
        Neutron = "neutron",
    } {
        FakeHardware | Idrac | Ipmi | ManualManagement | Redfish: Noop Flat Neutron;
    }

    /// How the machine is switched on and off.
    Power power PowerInterface {
        /// Nothing is switched; the record alone changes.
        Fake = "fake",
        Ipmitool = "ipmitool",
        Redfish = "redfish",
        Idrac = "idrac-redfish",
    } {
        FakeHardware | ManualManagement: Fake;
        Idrac: Idrac Redfish;
        Ipmi: Ipmitool;
        Redfish: Redfish;
    }

    /// How disks are combined.
    Raid raid RaidInterface {
        NoRaid = "no-raid",
        Fake = "fake",
        /// By the BMC, whose storage controllers make volumes.
        Redfish = "redfish",
        Idrac = "idrac-redfish",
        /// By steps of the agent, which makes software RAID.
        Agent = "agent",
    } {
        FakeHardware: Fake NoRaid Agent;
        Idrac: Idrac NoRaid Agent;
        Ipmi | ManualManagement: NoRaid Agent;
        Redfish: Redfish NoRaid Agent;
    }

    /// How a broken installation is repaired.
    Rescue rescue RescueInterface {
        NoRescue = "no-rescue",
        Fake = "fake",
        /// The ramdisk is the rescue system; its agent sets the password.
        Agent = "agent",
    } {
        FakeHardware: Fake NoRescue Agent;
        Idrac | Ipmi | ManualManagement | Redfish: NoRescue Agent;
    }

    /// How remote volumes are attached.
    Storage storage StorageInterface {
        Noop = "noop",
        Fake = "fake",
    } {
        FakeHardware: Noop Fake;
        Idrac | Ipmi | ManualManagement | Redfish: Noop;
    }

    /// How functions of one vendor are called.
    Vendor vendor VendorInterface {
        NoVendor = "no-vendor",
        Fake = "fake",
        /// Subscriptions to the events of the BMC, and its virtual drives.
        Redfish = "redfish",
        Idrac = "idrac-redfish",
    } {
        FakeHardware: Fake NoVendor;
        Idrac: Idrac Redfish NoVendor;
        Ipmi | ManualManagement: NoVendor;
        Redfish: Redfish NoVendor;
    }
}

impl Driver {
    /// Returns the implementation of `interface` for nodes that choose none.
    pub const fn default(self, interface: Interface) -> &'static str {
        self.supported(interface)[0]
    }
}

/// The interfaces that act on the BMC over Redfish, under the name of the standard or of a maker. The driver of the protocol knows how the
/// machines of a maker differ.
macro_rules! over_redfish {
    ($($kind:ident: $($variant:ident)|+;)*) => {
        $(impl $kind {
            /// Returns whether this is done over Redfish.
            pub const fn is_redfish(self) -> bool {
                matches!(self, $($kind::$variant)|+)
            }
        })*
    };
}

over_redfish! {
    BiosInterface: Redfish | Idrac;
    BootInterface: VirtualMedia | IdracVirtualMedia;
    FirmwareInterface: Redfish;
    InspectInterface: Redfish | Idrac;
    ManagementInterface: Redfish | Idrac;
    RaidInterface: Redfish | Idrac;
}

impl ConsoleInterface {
    /// Returns whether the console shows the screen of the machine, and not its serial port.
    pub const fn is_graphical(self) -> bool {
        match self {
            ConsoleInterface::BmcVnc => true,
            ConsoleInterface::NoConsole
            | ConsoleInterface::Fake
            | ConsoleInterface::IpmitoolSocat
            | ConsoleInterface::RedfishSerial => false,
        }
    }
}

impl DeployInterface {
    /// Returns the implementation called `name`, if `driver` supports it.
    pub(crate) fn of_driver(driver: Driver, name: &str) -> Option<Self> {
        Self::named(name).filter(|it| driver.supported(Interface::Deploy).contains(&it.as_str()))
    }
}

impl InspectInterface {
    /// Returns whether the hardware is looked at.
    pub(crate) const fn looks(self) -> bool {
        match self {
            InspectInterface::Agent | InspectInterface::Redfish | InspectInterface::Idrac => true,
            InspectInterface::Fake | InspectInterface::NoInspect => false,
        }
    }
}

/// The error for an implementation that the driver does not support.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{}_interface: driver {driver} does not support {raw:?}; it supports {}",
    interface.as_str(),
    driver.supported(*interface).join(", ")
)]
pub struct UnsupportedInterface {
    pub driver: Driver,
    pub interface: Interface,
    /// The name that was given, cut to 64 characters for the message.
    pub raw: String,
}

impl Interfaces {
    /// Checks that `driver` supports every chosen implementation.
    pub fn check(&self, driver: Driver) -> Result<(), UnsupportedInterface> {
        self.unsupported(driver).next().map_or(Ok(()), Err)
    }

    /// Returns every chosen implementation that `driver` does not support.
    pub fn unsupported(&self, driver: Driver) -> impl Iterator<Item = UnsupportedInterface> {
        let chosen = Interface::ALL.into_iter().filter_map(|it| Some((it, self.chosen(it)?)));
        chosen
            .filter(move |(interface, chosen)| !driver.supported(*interface).contains(chosen))
            .map(move |(interface, chosen)| UnsupportedInterface {
                driver,
                interface,
                raw: chosen.to_owned(),
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_driver_has_a_default_for_every_interface() {
        for driver in Driver::ALL {
            for interface in Interface::ALL {
                let default = driver.default(interface);
                let mut interfaces = Interfaces::default();
                assert!(interfaces.choose(interface, default), "{default}");
                assert_eq!(interfaces.chosen(interface), Some(default));
                assert_eq!(interfaces.check(driver), Ok(()));
            }
            assert_eq!(BootInterface::default_of(driver).as_str(), driver.default(Interface::Boot));
        }
    }

    /// The order of `ironic/drivers/redfish.py`.
    #[test]
    fn what_a_bmc_changes_by_redfish_is_changed_by_redfish_unless_the_node_says_otherwise() {
        for interface in [Interface::Bios, Interface::Firmware, Interface::Raid] {
            assert_eq!(Driver::Redfish.default(interface), "redfish", "{interface:?}");
        }
        for interface in [Interface::Bios, Interface::Management, Interface::Power, Interface::Raid]
        {
            assert_eq!(Driver::Idrac.default(interface), "idrac-redfish", "{interface:?}");
        }
        assert_eq!(Driver::Idrac.default(Interface::Firmware), "redfish");
        assert_eq!(Driver::Idrac.supported(Interface::Management), ["idrac-redfish"]);
        for driver in [Driver::Ipmi, Driver::ManualManagement] {
            assert_eq!(driver.default(Interface::Firmware), "no-firmware");
            assert_eq!(driver.default(Interface::Raid), "no-raid");
        }
    }

    #[test]
    fn an_implementation_of_another_driver_is_refused() {
        let mut interfaces = Interfaces::default();
        assert!(!interfaces.choose(Interface::Boot, "pxe"), "there is no such implementation");
        assert!(interfaces.choose(Interface::Boot, "redfish-virtual-media"));
        let refused = "boot_interface: driver ipmi does not support \"redfish-virtual-media\"; it supports ipxe, http-ipxe";
        assert_eq!(
            interfaces.check(Driver::Ipmi).map_err(|why| why.to_string()),
            Err(refused.to_owned())
        );
        interfaces.reset(Interface::Boot);
        assert_eq!(interfaces.check(Driver::Ipmi), Ok(()));
    }

    #[test]
    fn a_stored_choice_is_parsed() {
        let stored = r#"{"boot":"http-ipxe","inspect":"no-inspect"}"#;
        let read: Interfaces = serde_json::from_str(stored).unwrap();
        assert_eq!(read.boot, Some(BootInterface::HttpIpxe));
        assert_eq!(serde_json::to_string(&read).unwrap(), stored);
        assert!(serde_json::from_str::<Interfaces>(r#"{"boot":"floppy"}"#).is_err());
    }

    #[test]
    fn an_interface_of_a_newer_program_is_left_out() {
        let read: Interfaces = serde_json::from_str(r#"{"tape":"x","boot":"ipxe"}"#).unwrap();
        assert_eq!(serde_json::to_string(&read).unwrap(), r#"{"boot":"ipxe"}"#);
    }
}
