//! Conversions to the type with which an API shows the value of a field.

/// Converts values to variants of `Shown<'a>`: `bool => Boolean` shows a `bool` as `Shown::Boolean`.
#[macro_export]
macro_rules! shown_from {
    ($($value:ty => $variant:ident,)+) => {$(
        impl<'a> From<$value> for Shown<'a> {
            fn from(value: $value) -> Self {
                Shown::$variant(value)
            }
        }
    )+};
}
