//! Values out of JSON through serde, with errors that carry the path, the value and what is allowed.
//!
//! serde_json's own reader describes an error in one sentence. A plan's error is data, so this reader keeps the
//! path as it descends and takes apart what serde says of a field, a variant or a type while it is still apart.

use std::fmt;

use serde::de::{self, DeserializeOwned, DeserializeSeed, Deserializer, Expected, Unexpected, Visitor};
use serde_json::{Map, Value};

use crate::error::PlanError;

/// Reads a value of type `T` out of JSON text.
///
/// # Errors
/// [`PlanError`] for what is not JSON, and for the first key that is unknown, missing or wrong.
pub fn from_json<T: DeserializeOwned>(text: &str) -> Result<T, PlanError> {
    let value: Value = serde_json::from_str(text)
        .map_err(|error| PlanError::new("", format!("not JSON ({error})"), "a JSON object"))?;
    from_value(&value)
}

/// Reads a value of type `T` out of a JSON value.
///
/// # Errors
/// [`PlanError`] for the first key that is unknown, missing or wrong.
pub fn from_value<T: DeserializeOwned>(value: &Value) -> Result<T, PlanError> {
    T::deserialize(Reader { value }).map_err(|error| error.placed(value))
}

/// An error on its way up, the value being filled in where it is known.
#[derive(Debug)]
struct Fault(PlanError);

/// Stands for the value until the reader that holds it fills it in.
const UNKNOWN: &str = "";

impl Fault {
    fn allowed(allowed: impl ToString) -> Self {
        Self(PlanError::new("", UNKNOWN, allowed.to_string()))
    }

    /// The error with the value it speaks of, unless that is known.
    fn at(mut self, value: &Value) -> Self {
        if self.0.value == UNKNOWN {
            self.0.value = value.to_string();
        }
        self
    }

    fn placed(self, value: &Value) -> PlanError {
        self.at(value).0
    }

    fn under(self, segment: &str) -> Self {
        Self(self.0.under(segment))
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Fault {}

impl de::Error for Fault {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::allowed(message)
    }

    fn invalid_type(_: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::allowed(expected)
    }

    fn invalid_value(_: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::allowed(expected)
    }

    fn invalid_length(_: usize, expected: &dyn Expected) -> Self {
        Self::allowed(expected)
    }

    fn unknown_variant(_: &str, expected: &'static [&'static str]) -> Self {
        Self::allowed(expected.join(", "))
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        let allowed = format!("no such key; the keys are {}", expected.join(", "));
        Self(PlanError::new(field, UNKNOWN, allowed))
    }

    fn missing_field(field: &'static str) -> Self {
        Self(PlanError::new(field, "nothing", "this key must be given"))
    }
}

/// Reads one value.
struct Reader<'a> {
    value: &'a Value,
}

impl<'de> Deserializer<'de> for Reader<'_> {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        let value = self.value;
        match value {
            Value::Null => visitor.visit_unit(),
            Value::Bool(flag) => visitor.visit_bool(*flag),
            Value::Number(number) => match (number.as_u64(), number.as_i64()) {
                (Some(number), _) => visitor.visit_u64(number),
                (None, Some(number)) => visitor.visit_i64(number),
                (None, None) => visitor.visit_f64(number.as_f64().unwrap_or(f64::NAN)),
            },
            Value::String(text) => visitor.visit_str(text),
            Value::Array(items) => {
                let mut list = List { items: items.iter(), index: 0 };
                visitor.visit_seq(&mut list)
            }
            Value::Object(members) => {
                visitor.visit_map(Members { rest: members.iter(), members, next: None })
            }
        }
        .map_err(|error: Fault| error.at(value))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.value {
            Value::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        // serde would take a list for a struct, field by field.
        match self.value {
            Value::Object(_) => self.deserialize_any(visitor),
            other => Err(Fault::allowed("a table of keys and values").at(other)),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        let value = self.value;
        let Value::String(name) = value else {
            return Err(Fault::allowed(variants.join(", ")).at(value));
        };
        visitor.visit_enum(de::value::StrDeserializer::<Fault>::new(name)).map_err(|error| error.at(value))
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct
        seq tuple tuple_struct map identifier ignored_any
    }
}

/// The items of a list, in their order.
struct List<'a> {
    items: std::slice::Iter<'a, Value>,
    index: usize,
}

impl<'de> de::SeqAccess<'de> for List<'_> {
    type Error = Fault;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Fault> {
        let Some(value) = self.items.next() else { return Ok(None) };
        let index = self.index;
        self.index += 1;
        seed.deserialize(Reader { value })
            .map(Some)
            .map_err(|error| error.at(value).under(&format!("[{index}]")))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.items.len())
    }
}

/// The members of an object, in the order of their keys.
struct Members<'a> {
    rest: serde_json::map::Iter<'a>,
    members: &'a Map<String, Value>,
    next: Option<(&'a String, &'a Value)>,
}

impl<'de> de::MapAccess<'de> for Members<'_> {
    type Error = Fault;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Fault> {
        self.next = self.rest.next();
        let Some((key, _)) = self.next else { return Ok(None) };
        let key = de::value::StrDeserializer::<Fault>::new(key);
        // An unknown key names itself; its value is looked up here, where the object is at hand.
        seed.deserialize(key).map(Some).map_err(|error| match self.members.get(&error.0.key) {
            Some(value) => error.at(value),
            None => error,
        })
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Fault> {
        let Some((key, value)) = self.next.take() else {
            return Err(Fault::allowed("a value after its key"));
        };
        seed.deserialize(Reader { value }).map_err(|error| error.at(value).under(key))
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(deny_unknown_fields, rename_all = "kebab-case")]
    struct Outer {
        name: String,
        #[serde(default)]
        parts: Vec<Part>,
        kind: Option<Kind>,
    }

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(deny_unknown_fields)]
    struct Part {
        size: u32,
    }

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(rename_all = "kebab-case")]
    enum Kind {
        FatTree,
        Star,
    }

    fn wrong(text: &str) -> (String, String, String) {
        let error = from_json::<Outer>(text).unwrap_err();
        (error.key, error.value, error.allowed)
    }

    #[test]
    fn a_value_is_read() {
        let text = r#"{"name": "x", "parts": [{"size": 1}, {"size": 2}], "kind": "fat-tree"}"#;
        let expected = Outer {
            name: "x".into(),
            parts: vec![Part { size: 1 }, Part { size: 2 }],
            kind: Some(Kind::FatTree),
        };
        assert_eq!(from_json::<Outer>(text), Ok(expected));
        assert_eq!(from_json::<Outer>(r#"{"name": "x", "kind": null}"#).unwrap().kind, None);
    }

    #[test]
    fn an_error_carries_the_path_the_value_and_what_is_allowed() {
        let cases = [
            ("{", "", "not JSON (EOF while parsing an object at line 1 column 1)", "a JSON object"),
            ("[1]", "", "[1]", "a table of keys and values"),
            ("{}", "name", "nothing", "this key must be given"),
            (r#"{"name": 7}"#, "name", "7", "a string"),
            (r#"{"name": "x", "speed": [1]}"#, "speed", "[1]", "no such key; the keys are name, parts, kind"),
            (r#"{"name": "x", "parts": {}}"#, "parts", "{}", "a sequence"),
            (r#"{"name": "x", "parts": [{"size": 1}, {"size": -1}]}"#, "parts[1].size", "-1", "u32"),
            (r#"{"name": "x", "parts": [{"size": 4294967296}]}"#, "parts[0].size", "4294967296", "u32"),
            (r#"{"name": "x", "parts": [{}]}"#, "parts[0].size", "nothing", "this key must be given"),
            (
                r#"{"name": "x", "parts": [{"size": 1, "s": 2}]}"#,
                "parts[0].s",
                "2",
                "no such key; the keys are size",
            ),
            (r#"{"name": "x", "kind": "bus"}"#, "kind", "\"bus\"", "fat-tree, star"),
            (r#"{"name": "x", "kind": 4}"#, "kind", "4", "fat-tree, star"),
        ];
        for (text, key, value, allowed) in cases {
            let found = wrong(text);
            assert_eq!((found.0.as_str(), found.1.as_str()), (key, value), "{text}");
            assert!(found.2.contains(allowed), "{text}: {}", found.2);
        }
    }
}
