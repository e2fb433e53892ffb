//! The indicators of one machine and its components.

use async_trait::async_trait;
use hardware::{Indicator, IndicatorComponent, IndicatorState};

use crate::BmcError;

/// The indicators of one machine and its components: lamps by which a person finds them.
#[async_trait]
pub trait Indicators: Send + Sync {
    /// Returns the indicators with their states.
    async fn indicators(&self) -> Result<Vec<Indicator>, BmcError>;

    /// Sets the indicator with this id among those of such components.
    async fn set_indicator(
        &self,
        component: IndicatorComponent,
        id: &str,
        state: IndicatorState,
    ) -> Result<(), BmcError>;
}
