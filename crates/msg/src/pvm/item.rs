//! The kinds of items that are packed, in memory and in XDR.

use super::PvmError;

/// A kind of item (`pvm_pkbyte` and the others; strings are a length and octets).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// `pvm_pkbyte`: copied as they are, in XDR up to a multiple of four for each call.
    Byte,
    /// `pvm_pkshort`, `pvm_pkushort`.
    Short,
    /// `pvm_pkint`, `pvm_pkuint`.
    Int,
    /// `pvm_pklong`, `pvm_pkulong`: eight octets in memory and four in XDR.
    Long,
    /// `pvm_pkfloat`.
    Float,
    /// `pvm_pkdouble`.
    Double,
    /// `pvm_pkcplx`: two floats.
    Cplx,
    /// `pvm_pkdcplx`: two doubles.
    Dcplx,
}

impl Kind {
    /// Octets of one in memory, on a host of 64 bits.
    pub const fn in_memory(self) -> usize {
        match self {
            Self::Byte => 1,
            Self::Short => 2,
            Self::Int | Self::Float => 4,
            Self::Long | Self::Double | Self::Cplx => 8,
            Self::Dcplx => 16,
        }
    }

    /// Octets of one in XDR.
    pub const fn in_xdr(self) -> usize {
        match self {
            Self::Byte => 1,
            Self::Short | Self::Int | Self::Long | Self::Float => 4,
            Self::Double | Self::Cplx => 8,
            Self::Dcplx => 16,
        }
    }

    /// Octets that XDR never puts into two fragments: those of a number; a complex one is two.
    pub const fn together(self) -> usize {
        match self {
            Self::Byte => 1,
            Self::Double | Self::Dcplx => 8,
            _ => 4,
        }
    }
}

/// A value that can be packed.
pub trait Item: Copy {
    /// Its kind.
    const KIND: Kind;

    /// Its octets in XDR.
    ///
    /// # Errors
    /// [`PvmError::Overflow`] where XDR has no room for it.
    fn to_xdr(self, octets: &mut [u8]) -> Result<(), PvmError>;

    /// The value of octets in XDR.
    fn from_xdr(octets: &[u8]) -> Self;

    /// Its octets in memory, the first being the least significant.
    fn to_memory(self, octets: &mut [u8]);

    /// The value of octets in memory.
    fn from_memory(octets: &[u8]) -> Self;
}

macro_rules! same_width {
    ($($type:ty: $kind:ident as $xdr:ty;)*) => {$(
        impl Item for $type {
            const KIND: Kind = Kind::$kind;

            fn to_xdr(self, octets: &mut [u8]) -> Result<(), PvmError> {
                let value = <$xdr>::try_from(self).map_err(|_| PvmError::Overflow)?;
                octets.copy_from_slice(&value.to_be_bytes());
                Ok(())
            }

            fn from_xdr(octets: &[u8]) -> Self {
                <$xdr>::from_be_bytes(octets.try_into().expect("as many as the kind has")) as Self
            }

            fn to_memory(self, octets: &mut [u8]) {
                octets.copy_from_slice(&self.to_le_bytes());
            }

            fn from_memory(octets: &[u8]) -> Self {
                Self::from_le_bytes(octets.try_into().expect("as many as the kind has"))
            }
        }
    )*};
}

same_width! {
    u8: Byte as u8;
    i16: Short as i32;
    u16: Short as u32;
    i32: Int as i32;
    u32: Int as u32;
    // The manual's PvmOverflow: a long of more than 32 bits. (3.4.6 on Linux cuts it without a word.)
    i64: Long as i32;
    u64: Long as u32;
    f32: Float as f32;
    f64: Double as f64;
}

macro_rules! complex {
    ($($type:ty: $kind:ident;)*) => {$(
        impl Item for [$type; 2] {
            const KIND: Kind = Kind::$kind;

            fn to_xdr(self, octets: &mut [u8]) -> Result<(), PvmError> {
                let (real, imaginary) = octets.split_at_mut(size_of::<$type>());
                self[0].to_xdr(real)?;
                self[1].to_xdr(imaginary)
            }

            fn from_xdr(octets: &[u8]) -> Self {
                let (real, imaginary) = octets.split_at(size_of::<$type>());
                [<$type>::from_xdr(real), <$type>::from_xdr(imaginary)]
            }

            fn to_memory(self, octets: &mut [u8]) {
                let (real, imaginary) = octets.split_at_mut(size_of::<$type>());
                self[0].to_memory(real);
                self[1].to_memory(imaginary);
            }

            fn from_memory(octets: &[u8]) -> Self {
                let (real, imaginary) = octets.split_at(size_of::<$type>());
                [<$type>::from_memory(real), <$type>::from_memory(imaginary)]
            }
        }
    )*};
}

complex! {
    f32: Cplx;
    f64: Dcplx;
}
