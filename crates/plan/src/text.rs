//! The short form of a network: `fat-tree:hosts=64,rate=100Gbit/s`.

use serde_json::{Map, Value};

use crate::error::PlanError;

/// The table that a text stands for.
///
/// # Errors
/// [`PlanError`] where a part has no `=`, or a key is given twice.
pub(crate) fn table(text: &str) -> Result<Value, PlanError> {
    let (name, rest) = text.split_once(':').unwrap_or((text, ""));
    let mut members = Map::new();
    members.insert("topology".into(), Value::String(name.trim().into()));
    for part in rest.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let Some((key, value)) = part.split_once('=') else {
            return Err(PlanError::new("", format!("`{text}`"), format!("key=value in place of `{part}`")));
        };
        let (key, value) = (key.trim(), value.trim());
        let number = value.parse::<u64>().map_or_else(|_| Value::String(value.into()), Value::from);
        if members.insert(key.into(), number).is_some() {
            return Err(PlanError::new(key, format!("`{value}`"), "each key once"));
        }
    }
    Ok(Value::Object(members))
}
