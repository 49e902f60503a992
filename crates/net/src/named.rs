//! Enumerations whose members have names, in files and tables.

/// One enumeration: its documentation, its name, a colon, and its members, each with its name.
macro_rules! named {
    ($(#[$of:meta])* $name:ident: $($(#[$doc:meta])* $member:ident = $text:literal,)*) => {
        $(#[$of])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum $name { $($(#[$doc])* $member,)* }

        impl $name {
            /// All of them, in the order of their numbers.
            pub const ALL: &'static [Self] = &[$(Self::$member,)*];

            /// Its name in files, tables and figures.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$member => $text,)* }
            }
        }
    };
}

pub(crate) use named;
