//! The indicators of a machine: lamps by which a person finds a component.

words::words! {
    /// The component that has an indicator, in the words of the Bare Metal API.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum IndicatorComponent {
        Chassis = "chassis",
        System = "system",
        Disk = "disk",
    }
}

words::words! {
    /// The state of an indicator, in the words of the Bare Metal API.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum IndicatorState {
        Blinking = "blinking",
        Off = "off",
        On = "on",
        Unknown = "unknown",
    }
}

/// An indicator of a component.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Indicator {
    pub component: IndicatorComponent,
    /// The name of the indicator among those of the components of its kind.
    pub id: String,
    pub is_read_only: bool,
    /// The states that the indicator can have, in the order of their words.
    pub states: Vec<IndicatorState>,
    /// The state that the indicator has now.
    pub state: IndicatorState,
}

impl Indicator {
    /// Returns the name in the Bare Metal API: the indicator and its component.
    pub fn name(&self) -> String {
        format!("{}@{}", self.id, self.component)
    }
}
