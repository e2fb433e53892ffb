#![doc = include_str!("../README.md")]

/// Declares an enum with the word of each variant.
///
/// ```
/// words::words! {
///     /// Whether a lamp is lit.
///     #[derive(Clone, Copy, Debug, PartialEq, Eq)]
///     pub enum Lamp {
///         Lit = "lit",
///         /// Also if it is broken.
///         Dark = "dark",
///     }
/// }
///
/// assert_eq!(Lamp::ALL, [Lamp::Lit, Lamp::Dark]);
/// assert_eq!(Lamp::Lit.to_string(), "lit");
/// assert_eq!(Lamp::find("dark"), Some(Lamp::Dark));
/// assert_eq!(Lamp::find("Dark"), None);
/// ```
#[macro_export]
macro_rules! words {
    (
        $(#[$about:meta])*
        pub enum $name:ident { $($(#[$what:meta])* $variant:ident = $word:literal,)+ }
    ) => {
        $(#[$about])*
        pub enum $name {
            $($(#[$what])* $variant,)+
        }

        impl $name {
            /// All values, in the order of their declaration.
            pub const ALL: [$name; [$($word),+].len()] = [$($name::$variant),+];

            /// Returns the word.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $($name::$variant => $word,)+
                }
            }

            /// Returns the value with this word.
            pub fn find(word: &str) -> Option<$name> {
                $name::ALL.into_iter().find(|it| it.as_str() == word)
            }
        }

        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

/// Converts types with `FromStr` and `Display` from and to `String`, as `#[serde(try_from = "String", into = "String")]` needs it.
///
/// ```
/// #[derive(Debug, PartialEq)]
/// struct Port(u16);
///
/// impl std::str::FromStr for Port {
///     type Err = std::num::ParseIntError;
///
///     fn from_str(raw: &str) -> Result<Port, std::num::ParseIntError> {
///         raw.parse().map(Port)
///     }
/// }
///
/// impl std::fmt::Display for Port {
///     fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
///         self.0.fmt(f)
///     }
/// }
///
/// words::strings!(Port);
///
/// assert_eq!(Port::try_from("80".to_owned()), Ok(Port(80)));
/// assert!(Port::try_from("http".to_owned()).is_err());
/// assert_eq!(String::from(Port(80)), "80");
/// ```
#[macro_export]
macro_rules! strings {
    ($($name:ident),+) => {$(
        impl TryFrom<String> for $name {
            type Error = <$name as ::std::str::FromStr>::Err;

            fn try_from(raw: String) -> Result<Self, Self::Error> {
                raw.parse()
            }
        }

        impl From<$name> for String {
            fn from(value: $name) -> String {
                value.to_string()
            }
        }
    )+};
}
