//! Reductions of two arrays, element by element, as MPI libraries make them: in compiled loops.

use std::ops::{Add, Mul};

use numpy::{Element, PyArray1, PyArrayMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::prelude::*;

/// The operations that libraries have on every type of number (MPI-4.1, clause 6.9.2).
#[derive(Clone, Copy)]
enum Operation {
    Sum,
    Product,
    Most,
    Least,
}

/// What the operations need; whole numbers wrap around.
trait Number: Element + Copy + PartialOrd {
    fn plus(self, other: Self) -> Self;
    fn times(self, other: Self) -> Self;
}

macro_rules! numbers {
    ($($kind:ty: $plus:expr, $times:expr;)*) => {$(
        impl Number for $kind {
            fn plus(self, other: Self) -> Self {
                $plus(self, other)
            }

            fn times(self, other: Self) -> Self {
                $times(self, other)
            }
        }
    )*};
}

numbers! {
    f64: Add::add, Mul::mul;
    f32: Add::add, Mul::mul;
    i64: i64::wrapping_add, i64::wrapping_mul;
    i32: i32::wrapping_add, i32::wrapping_mul;
    i16: i16::wrapping_add, i16::wrapping_mul;
    i8: i8::wrapping_add, i8::wrapping_mul;
    u64: u64::wrapping_add, u64::wrapping_mul;
    u32: u32::wrapping_add, u32::wrapping_mul;
    u16: u16::wrapping_add, u16::wrapping_mul;
    u8: u8::wrapping_add, u8::wrapping_mul;
}

/// Combines `a` and `b` where both are arrays of `T` as the processor reads them.
fn of<'py, T: Number>(
    operation: Operation,
    a: &Bound<'py, PyUntypedArray>,
    b: &Bound<'py, PyUntypedArray>,
) -> Option<Bound<'py, PyAny>> {
    let (one, other) = (a.cast::<PyArray1<T>>().ok()?, b.cast::<PyArray1<T>>().ok()?);
    if one.len() != other.len() || ![one, other].iter().all(|array| array.data().is_aligned()) {
        return None;
    }
    let (one, other) = (one.try_readonly().ok()?, other.try_readonly().ok()?);
    // Memory of NumPy's, which asks for large pages where a library has a buffer already.
    let into = PyArray1::<T>::zeros(a.py(), one.len(), false);
    {
        let mut into = into.try_readwrite().ok()?;
        let pairs = one.as_slice().ok()?.iter().zip(other.as_slice().ok()?);
        let all = into.as_slice_mut().ok()?.iter_mut().zip(pairs);
        // The choice is outside of the loop, which is then one of vectors.
        match operation {
            Operation::Sum => all.for_each(|(to, (a, b))| *to = a.plus(*b)),
            Operation::Product => all.for_each(|(to, (a, b))| *to = a.times(*b)),
            Operation::Most => all.for_each(|(to, (a, b))| *to = if a > b { *a } else { *b }),
            Operation::Least => all.for_each(|(to, (a, b))| *to = if a < b { *a } else { *b }),
        }
    }
    Some(into.into_any())
}

/// Combines two arrays of numbers; `None` where this has no loop for the operation or the arrays.
#[pyfunction]
fn combined<'py>(
    operation: &str,
    a: &Bound<'py, PyUntypedArray>,
    b: &Bound<'py, PyUntypedArray>,
) -> Option<Bound<'py, PyAny>> {
    let operation = match operation {
        "SUM" => Operation::Sum,
        "PROD" => Operation::Product,
        "MAX" => Operation::Most,
        "MIN" => Operation::Least,
        _ => return None,
    };
    of::<f64>(operation, a, b)
        .or_else(|| of::<i64>(operation, a, b))
        .or_else(|| of::<f32>(operation, a, b))
        .or_else(|| of::<i32>(operation, a, b))
        .or_else(|| of::<u64>(operation, a, b))
        .or_else(|| of::<u32>(operation, a, b))
        .or_else(|| of::<i16>(operation, a, b))
        .or_else(|| of::<u16>(operation, a, b))
        .or_else(|| of::<i8>(operation, a, b))
        .or_else(|| of::<u8>(operation, a, b))
}

/// Adds this file's functions to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(combined, module)?)
}
