//! A shipped program in a specification.

use serde_json::Value;
pub use wiretwin_prog::Program;

use crate::reader::{Reader, SpecError};

/// Reads the object `program`: its name and its parameters.
pub(crate) fn read(value: Value) -> Result<Program, SpecError> {
    let mut reader = Reader::new("program", value)?;
    let allowed = format!("one of {}", Program::NAMES.join(", "));
    let given = reader.required("name", &allowed)?;
    let Some((name, parameters)) = given.as_str().and_then(|name| Some((name, Program::parameters(name)?)))
    else {
        return Err(reader.wrong("name", &given, allowed));
    };
    let mut values = Vec::with_capacity(parameters.len());
    for one in parameters {
        values.push(reader.integer(one.name, one.least, one.most, one.default)?);
    }
    let Some(program) = Program::new(name, &values) else {
        return Err(reader.wrong("name", &given, allowed));
    };
    reader.end()?;
    Ok(program)
}
