//! Converts a sensor's raw reading to a value with a unit (IPMI 2.0 §36.3, §43.17).

/// The conversion from a raw reading to a value: `L((M·x + B·10^K1)·10^K2)`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Conversion {
    format: Format,
    linearization: u8,
    m: i16,
    b: i16,
    b_exponent: i8,
    result_exponent: i8,
}

/// The number format of the raw byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Unsigned,
    OnesComplement,
    TwosComplement,
}

impl Conversion {
    /// Reads the conversion from the first unit byte and the seven bytes from linearization to exponents of a full record (table 43-1,
    /// bytes 21 and 24 to 30); `None` if the readings are not numbers.
    pub(crate) fn read(units: u8, factors: [u8; 7]) -> Option<Self> {
        let format = match units >> 6 {
            0 => Format::Unsigned,
            1 => Format::OnesComplement,
            2 => Format::TwosComplement,
            _ => return None,
        };
        let [linearization, m, m_high, b, b_high, _accuracy, exponents] = factors;
        let linearization = linearization & 0x7f;
        // From 0x70 on, the factors differ from reading to reading.
        (linearization <= CUBE_ROOT).then_some(Conversion {
            format,
            linearization,
            m: ten_bits(m, m_high),
            b: ten_bits(b, b_high),
            b_exponent: four_bits(exponents),
            result_exponent: four_bits(exponents >> 4),
        })
    }

    /// Converts a raw reading.
    pub(crate) fn value(&self, raw: u8) -> f64 {
        let raw = match self.format {
            Format::Unsigned => f64::from(raw),
            Format::OnesComplement if raw & 0x80 != 0 => -f64::from(!raw),
            Format::OnesComplement => f64::from(raw),
            Format::TwosComplement => f64::from(raw as i8),
        };
        let offset = scale(f64::from(self.b), self.b_exponent);
        let linear = scale(f64::from(self.m) * raw + offset, self.result_exponent);
        match self.linearization {
            1 => linear.ln(),
            2 => linear.log10(),
            3 => linear.log2(),
            4 => linear.exp(),
            5 => 10f64.powf(linear),
            6 => linear.exp2(),
            7 => linear.recip(),
            8 => linear.powi(2),
            9 => linear.powi(3),
            10 => linear.sqrt(),
            CUBE_ROOT => linear.cbrt(),
            _ => linear,
        }
    }
}

/// The last linearization that has a formula (table 43-1, byte 24).
const CUBE_ROOT: u8 = 11;

/// Computes `value · 10^exponent`. A negative exponent divides, which gives shorter decimals than multiplying.
fn scale(value: f64, exponent: i8) -> f64 {
    let factor = 10f64.powi(i32::from(exponent.unsigned_abs()));
    if exponent < 0 { value / factor } else { value * factor }
}

/// Decodes a signed number of ten bits; the upper two are the top bits of `high`.
fn ten_bits(low: u8, high: u8) -> i16 {
    let bits = u16::from(high >> 6) << 8 | u16::from(low);
    (bits << 6) as i16 >> 6
}

/// Decodes a signed number of four bits.
fn four_bits(bits: u8) -> i8 {
    (bits << 4) as i8 >> 4
}

/// Returns the name of the unit in a record's three unit bytes.
pub(crate) fn unit_name(units: [u8; 3]) -> String {
    let [flags, base, modifier] = units;
    let name = |unit: u8| UNITS.get(usize::from(unit)).copied().unwrap_or("unknown");
    let both = match flags >> 1 & 0b11 {
        1 => format!("{}/{}", name(base), name(modifier)),
        2 => format!("{} * {}", name(base), name(modifier)),
        _ => name(base).to_owned(),
    };
    let rate = match flags >> 3 & 0b111 {
        1 => " per microsecond",
        2 => " per millisecond",
        3 => " per second",
        4 => " per minute",
        5 => " per hour",
        6 => " per day",
        _ => "",
    };
    let is_percentage = flags & 1 != 0;
    let parts = [if is_percentage { "percent " } else { "" }, &both, rate];
    parts.concat().trim().to_owned()
}

/// Sensor unit type codes (table 43-15).
#[rustfmt::skip]
const UNITS: [&str; 93] = [
    "", "degrees C", "degrees F", "degrees K", "Volts", "Amps", "Watts", "Joules", "Coulombs", "VA",
    "Nits", "lumen", "lux", "Candela", "kPa", "PSI", "Newton", "CFM", "RPM", "Hz",
    "microsecond", "millisecond", "second", "minute", "hour", "day", "week", "mil", "inches", "feet",
    "cu in", "cu feet", "mm", "cm", "m", "cu cm", "cu m", "liters", "fluid ounce", "radians",
    "steradians", "revolutions", "cycles", "gravities", "ounce", "pound", "ft-lb", "oz-in", "gauss", "gilberts",
    "henry", "millihenry", "farad", "microfarad", "ohms", "siemens", "mole", "becquerel", "PPM", "reserved",
    "Decibels", "DbA", "DbC", "gray", "sievert", "color temp deg K", "bit", "kilobit", "megabit", "gigabit",
    "byte", "kilobyte", "megabyte", "gigabyte", "word", "dword", "qword", "line", "hit", "miss",
    "retry", "reset", "overflow", "underrun", "collision", "packets", "messages", "characters", "error", "correctable error",
    "uncorrectable error", "fatal error", "grams",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(units: u8, factors: [u8; 7], raw: u8, want: f64) {
        let conversion = Conversion::read(units, factors).unwrap();
        assert_eq!(conversion.value(raw), want);
    }

    #[test]
    fn raw_bytes_are_numbers_in_three_ways() {
        let factors = [0, 1, 0, 0, 0, 0, 0];
        check(0x00, factors, 0xf6, 246.0);
        check(0x40, factors, 0xf6, -9.0);
        check(0x80, factors, 0xf6, -10.0);
        assert_eq!(Conversion::read(0xc0, factors), None);
    }

    #[test]
    fn factors_are_signed_and_scaled() {
        // A fan with 75 RPM per step.
        check(0x00, [0, 75, 0, 0, 0, 0, 0], 80, 6000.0);
        // A 12 V rail with 63 mV per step.
        check(0x00, [0, 63, 0, 0, 0, 0, 0xd0], 190, 11.97);
        // M = -1, B = -2 with exponent 1, result exponent -1: (-5 - 20) / 10.
        check(0x00, [0, 0xff, 0xc0, 0xfe, 0xc0, 0, 0xf1], 5, -2.5);
        // M = 256 needs the upper two bits.
        check(0x00, [0, 0, 0x40, 0, 0, 0, 0], 2, 512.0);
    }

    #[test]
    fn formulas_are_applied_and_tables_are_not() {
        check(0x00, [7, 1, 0, 0, 0, 0, 0], 4, 0.25);
        check(0x00, [8, 1, 0, 0, 0, 0, 0], 4, 16.0);
        assert_eq!(Conversion::read(0, [0x70, 1, 0, 0, 0, 0, 0]), None);
    }

    #[test]
    fn units_are_spelled_as_the_specification_does() {
        assert_eq!(unit_name([0x00, 18, 0]), "RPM");
        assert_eq!(unit_name([0x01, 0, 0]), "percent");
        assert_eq!(unit_name([0x02, 70, 22]), "byte/second");
        assert_eq!(unit_name([0x18, 85, 0]), "packets per second");
        assert_eq!(unit_name([0x00, 200, 0]), "unknown");
    }
}
